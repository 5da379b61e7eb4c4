package plotting

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// randomVectors has a different spread along every direction, turned at random, so that no component is an axis.
func randomVectors(r *rand.Rand, n, d int) [][]float64 {
	turn := mat.NewDense(d, d, nil)
	for i := range d {
		for j := range d {
			turn.Set(i, j, r.NormFloat64())
		}
	}
	vectors := make([][]float64, n)
	for i := range vectors {
		v := make([]float64, d)
		for k := range d {
			x := r.NormFloat64() * math.Pow(0.6, float64(k))
			for j := range d {
				v[j] += x * turn.At(k, j)
			}
		}
		vectors[i] = v
	}
	return vectors
}

// eigenProjection is principal components by the textbook: eigenvectors of the covariance matrix, which is built
// entry by entry and solved by another algorithm than the singular value decomposition of project.
func eigenProjection(vectors [][]float64, centre []float64) (xy [][2]float64, share [2]float64) {
	n, d, m := len(vectors), len(centre), mean(vectors)
	cov := mat.NewSymDense(d, nil)
	for i := range d {
		for j := i; j < d; j++ {
			sum := 0.0
			for _, v := range vectors {
				sum += (v[i] - m[i]) * (v[j] - m[j])
			}
			cov.SetSym(i, j, sum/float64(n-1))
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(cov, true) {
		panic("eigenvalues did not converge")
	}
	values := eig.Values(nil) // ascending
	var axes mat.Dense
	eig.VectorsTo(&axes)
	xy = make([][2]float64, n)
	for k := range min(2, d) {
		share[k] = values[d-1-k] / mat.Trace(cov)
		for i, v := range vectors {
			for j := range d {
				xy[i][k] += (v[j] - centre[j]) * axes.At(j, d-1-k)
			}
		}
	}
	return xy, share
}

func TestProjectAgainstEigenvectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []struct{ n, d int }{{2, 2}, {6, 3}, {45, 12}, {8, 30}, {30, 1}, {3, 60}} {
		vectors := randomVectors(r, size.n, size.d)
		centre := randomVectors(r, 1, size.d)[0] // not the mean of the vectors
		got := project(vectors, centre)
		want, share := eigenProjection(vectors, centre)
		for k := range min(2, size.d, size.n-1) {
			if math.Abs(got.variance[k]-share[k]) > 1e-10 {
				t.Errorf("n %d, D %d: component %d has %.12f of the variance, want %.12f", size.n, size.d, k+1, got.variance[k], share[k])
			}
			same, flipped, scale := 0.0, 0.0, 0.0
			for i := range vectors {
				same = math.Max(same, math.Abs(got.xy[i][k]-want[i][k]))
				flipped = math.Max(flipped, math.Abs(got.xy[i][k]+want[i][k]))
				scale = math.Max(scale, math.Abs(want[i][k]))
			}
			if min(same, flipped) > 1e-8*scale {
				t.Errorf("n %d, D %d: component %d differs by %g of %g", size.n, size.d, k+1, min(same, flipped), scale)
			}
		}
	}
}

// TestProjectSign: the same points in another order are the same picture, not a mirrored one.
func TestProjectSign(t *testing.T) {
	vectors := randomVectors(rand.New(rand.NewPCG(5, 6)), 20, 7)
	centre := mean(vectors)
	first := project(vectors, centre).xy
	slices.Reverse(vectors)
	second := project(vectors, centre).xy
	slices.Reverse(second)
	for i := range first {
		if math.Hypot(first[i][0]-second[i][0], first[i][1]-second[i][1]) > 1e-9 {
			t.Fatalf("point %d is at %v, and at %v when the order is reversed", i, first[i], second[i])
		}
	}
}

func TestProjectScale(t *testing.T) {
	vectors := randomVectors(rand.New(rand.NewPCG(7, 8)), 9, 4)
	want := project(vectors, mean(vectors))
	for _, scale := range []float64{1e-200, 1e200} {
		scaled := make([][]float64, len(vectors))
		for i, v := range vectors {
			for _, x := range v {
				scaled[i] = append(scaled[i], x*scale)
			}
		}
		got := project(scaled, mean(scaled))
		for i := range got.xy {
			if math.Abs(got.xy[i][0]/scale-want.xy[i][0]) > 1e-9 || math.Abs(got.variance[1]-want.variance[1]) > 1e-9 {
				t.Fatalf("times %g: point %d at %v, variance %v; want %v, %v", scale, i, got.xy[i], got.variance, want.xy[i], want.variance)
			}
		}
	}
}

func TestProjectDegenerate(t *testing.T) {
	for name, vectors := range map[string][][]float64{
		"none":      {},
		"one":       {{1, 2, 3}},
		"equal":     {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}},
		"two equal": {{0.1, 0.2, 0.3}, {0.1, 0.2, 0.3}},
	} {
		centre := []float64{1, 2, 3}
		if len(vectors) > 0 {
			centre = vectors[0]
		}
		p := project(vectors, centre)
		if p.variance != [2]float64{} {
			t.Errorf("%s: variance %v, want none", name, p.variance)
		}
		for i, at := range p.xy {
			if at != [2]float64{} {
				t.Errorf("%s: point %d at %v, want the origin", name, i, at)
			}
		}
	}
	line := project([][]float64{{0, 0}, {3, 4}, {6, 8}}, []float64{0, 0})
	if math.Abs(line.variance[0]-1) > 1e-12 || line.variance[1] != 0 || math.Abs(math.Abs(line.xy[2][0])-10) > 1e-12 {
		t.Errorf("a line of length 10: variance %v, end %v", line.variance, line.xy[2])
	}
}

// TestHull checks the definition: every corner is a point, every point is on the left of every edge, no corner is flat.
func TestHull(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	side := func(a, b, p [2]float64) float64 { return (b[0]-a[0])*(p[1]-a[1]) - (b[1]-a[1])*(p[0]-a[0]) }
	for range 300 {
		points := make([][2]float64, 3+r.IntN(12))
		for i := range points {
			points[i] = [2]float64{float64(r.IntN(6)), float64(r.IntN(6))} // small whole numbers: ties, lines, exact
		}
		corners := hull(points)
		flat := true
		for i := range points {
			for j := range points {
				flat = flat && side(points[0], points[i], points[j]) == 0
			}
		}
		if flat != (corners == nil) {
			t.Fatalf("%v: hull %v, all on a line: %v", points, corners, flat)
		}
		for i, a := range corners {
			b, c := corners[(i+1)%len(corners)], corners[(i+2)%len(corners)]
			if !slices.Contains(points, a) || side(a, b, c) <= 0 {
				t.Fatalf("%v: corner %v of %v is no point or flat", points, a, corners)
			}
			for _, p := range points {
				if side(a, b, p) < 0 {
					t.Fatalf("%v: %v is outside the edge %v %v", points, p, a, b)
				}
			}
		}
	}
}

// TestToneIsDistinct: 28 groups have 28 looks.
func TestToneIsDistinct(t *testing.T) {
	type look struct {
		color any
		mark  mark
	}
	seen := map[look]int{}
	for i := range len(palette) * len(marks) {
		c, m := tone(i)
		if j, dup := seen[look{c, m}]; dup {
			t.Errorf("groups %d and %d look the same", j, i)
		}
		seen[look{c, m}] = i
	}
}
