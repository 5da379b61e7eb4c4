package plotting

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// projection is the image of vectors on their first two principal components.
type projection struct {
	xy       [][2]float64 // one for each vector, relative to the centre
	variance [2]float64   // share of the total variance, 0 to 1; 0 when there is none
}

// project finds the principal components of vectors and projects vectors − centre on the first two. All vectors are
// finite and of the length of centre. Fewer than two vectors, or all equal, span nothing: the components are zero.
// A component's sign is free; here its entry of largest size is positive, so that the same data give the same picture.
func project(vectors [][]float64, centre []float64) projection {
	p := projection{xy: make([][2]float64, len(vectors))}
	n, d := len(vectors), len(centre)
	if n < 2 || d == 0 {
		return p
	}
	rows := mat.NewDense(n, d, nil)
	scale := largestDeviation(vectors, centre)
	if scale == 0 {
		return p
	}
	for i, v := range vectors {
		for j, x := range v {
			rows.Set(i, j, x/scale-centre[j]/scale) // so that squares neither overflow nor vanish
		}
	}
	var pc stat.PC
	if !pc.PrincipalComponents(rows, nil) { // centres on the mean of rows; directions don't depend on centre
		return p
	}
	var directions mat.Dense
	pc.VectorsTo(&directions)
	p.variance = shares(pc.VarsTo(nil))
	for k := range min(2, n, d) {
		if p.variance[k] == 0 {
			continue
		}
		axis := mat.Col(nil, k, &directions)
		sign := scale * math.Copysign(1, axis[largest(axis)])
		for i := range vectors {
			p.xy[i][k] = sign * mat.Dot(rows.RowView(i), mat.NewVecDense(d, axis))
		}
	}
	return p
}

// shares are the first two variances as parts of their sum; rounding noise counts as none.
func shares(variances []float64) (s [2]float64) {
	total := 0.0
	for _, v := range variances {
		total += v
	}
	for k := range min(2, len(variances)) {
		if share := variances[k] / total; share > 1e-20 {
			s[k] = share
		}
	}
	return s
}

func largestDeviation(vectors [][]float64, centre []float64) float64 {
	most := 0.0
	for _, v := range vectors {
		for j, x := range v {
			most = math.Max(most, math.Abs(x-centre[j]))
		}
	}
	return most
}

// largest is the index of the entry of largest size, the first of equals.
func largest(v []float64) (at int) {
	for i, x := range v {
		if math.Abs(x) > math.Abs(v[at])*(1+1e-9) {
			at = i
		}
	}
	return at
}

// mean is the mean of vectors of equal length.
func mean(vectors [][]float64) []float64 {
	m := make([]float64, len(vectors[0]))
	for _, v := range vectors {
		for j, x := range v {
			m[j] += x / float64(len(vectors))
		}
	}
	return m
}

// hull is the convex hull of points, counter-clockwise (A. M. Andrew's monotone chain, 1979); nil when they span no area.
func hull(points [][2]float64) [][2]float64 {
	sorted := slices.Clone(points)
	slices.SortFunc(sorted, func(a, b [2]float64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	sorted = slices.Compact(sorted)
	turn := func(o, a, b [2]float64) float64 { return (a[0]-o[0])*(b[1]-o[1]) - (a[1]-o[1])*(b[0]-o[0]) }
	half := func(points [][2]float64) (chain [][2]float64) {
		for _, p := range points {
			for len(chain) > 1 && turn(chain[len(chain)-2], chain[len(chain)-1], p) <= 0 {
				chain = chain[:len(chain)-1]
			}
			chain = append(chain, p)
		}
		return chain[:len(chain)-1]
	}
	if len(sorted) < 3 {
		return nil
	}
	lower := half(sorted)
	slices.Reverse(sorted)
	if corners := append(lower, half(sorted)...); len(corners) > 2 {
		return corners
	}
	return nil
}
