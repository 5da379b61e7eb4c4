package circles_square_26

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"skep/problems/spec"
	"skep/problems/value"
)

// paperRule is the check of D.1 as its evaluator writes it, in float64.
func paperRule(c [][3]float64, eps float64) bool {
	for i, a := range c {
		if a[2] < 0 || a[0]-a[2] < -eps || a[0]+a[2] > 1+eps || a[1]-a[2] < -eps || a[1]+a[2] > 1+eps {
			return false
		}
		for _, b := range c[i+1:] {
			if math.Sqrt((a[0]-b[0])*(a[0]-b[0])+(a[1]-b[1])*(a[1]-b[1])) < a[2]+b[2]-eps {
				return false
			}
		}
	}
	return true
}

// strictly is exact by another formula than the verifier's: big.Float at a precision at which nothing here rounds
// (each number has at most 53 bits between 2^-1074 and 2^1024), and a square root compared by squares only.
func strictly(c [][3]float64) bool {
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(x) }
	one := f(1)
	for i, a := range c {
		x, y, r := f(a[0]), f(a[1]), f(a[2])
		right, upper := f(0).Add(x, r), f(0).Add(y, r)
		if r.Sign() < 0 || x.Cmp(r) < 0 || y.Cmp(r) < 0 || right.Cmp(one) > 0 || upper.Cmp(one) > 0 {
			return false
		}
		for _, b := range c[i+1:] {
			dx, dy, s := f(0).Sub(x, f(b[0])), f(0).Sub(y, f(b[1])), f(0).Add(r, f(b[2]))
			left := f(0).Mul(dx, dx)
			if left.Add(left, f(0).Mul(dy, dy)).Cmp(s.Mul(s, s)) < 0 {
				return false
			}
		}
	}
	return true
}

// grown blows up random centers' circles until they touch, in turn, so that most constraints hold with equality up to rounding.
func grown(random *rand.Rand) [][3]float64 {
	c := make([][3]float64, count)
	for i := range c {
		c[i] = [3]float64{random.Float64(), random.Float64(), 0}
	}
	for i := range c {
		r := min(c[i][0], 1-c[i][0], c[i][1], 1-c[i][1])
		for j := range c {
			if j != i {
				r = min(r, math.Hypot(c[i][0]-c[j][0], c[i][1]-c[j][1])-c[j][2])
			}
		}
		c[i][2] = max(r, 0)
	}
	return c
}

// TestNearTouching: random packings whose circles touch, moved by around the tolerance, by around zero, by units in the last
// place. The strict verdict must be that of another exact formula; the tolerant one that of the paper's rule in float64 wherever
// moving its tolerance by the rounding error changes nothing.
func TestNearTouching(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	strict, tolerant := map[bool]int{}, map[bool]int{}
	for trial := range 240 {
		c := grown(random)
		k := random.IntN(count)
		switch trial % 6 {
		case 0: // as it is
		case 1:
			c[k][2] += 1e-6 + 4e-16*(random.Float64()-0.5)
		case 2:
			c[k][2] += 1e-7
		case 3:
			c[k][2] = math.Nextafter(c[k][2], 2)
		case 4:
			for i := range c {
				c[i][2] = math.Nextafter(c[i][2], 0)
				c[i][2] = max(0, math.Nextafter(c[i][2], 0)-1e-16)
			}
		case 5:
			c[k][2] += 2e-6
		}
		v := Problem{}.Verify(returns(c, value.Float(9)))
		if want := strictly(c); *v.Strict != want {
			t.Errorf("trial %d: strict %v, another formula says %v: %s", trial, *v.Strict, want, v.Message)
		}
		const rounding = 1e-15
		if surely := paperRule(c, 1e-6-rounding); surely == paperRule(c, 1e-6+rounding) && surely != (v.Outcome == spec.OK) {
			t.Errorf("trial %d: %s, the paper's rule says %v: %s", trial, v.Outcome, surely, v.Message)
		}
		strict[*v.Strict]++
		tolerant[v.Outcome == spec.OK]++
	}
	if min(strict[true], strict[false], tolerant[true], tolerant[false]) < 20 {
		t.Errorf("one-sided: strict %v, tolerant %v", strict, tolerant)
	}
}

// TestExtremes: numbers from everywhere in float64's range never panic, and are always JSON with a verdict that is exact.
func TestExtremes(t *testing.T) {
	numbers := []float64{0, math.Copysign(0, -1), 5e-324, -5e-324, 1e-310, 1e-200, 1e-162, 0.5, 1, math.Nextafter(1, 2), 1e16, 1e200, -1e200, math.MaxFloat64, -math.MaxFloat64}
	random := rand.New(rand.NewPCG(7, 8))
	for trial := range 60 {
		c := lattice()
		if trial%2 == 0 {
			for i := range c {
				c[i] = [3]float64{0.5, 0.5, 0} // all on one spot, without radius: feasible
			}
		}
		for range 1 + trial%3 {
			c[random.IntN(count)][random.IntN(3)] = numbers[random.IntN(len(numbers))]
		}
		v := Problem{}.Verify(returns(c, value.Nil{}))
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		if v.Strict == nil || *v.Strict != strictly(c) {
			t.Errorf("%v: strict %v, another formula says %v: %s", c, v.Strict, strictly(c), v.Message)
		}
		if *v.Strict && v.Outcome != spec.OK {
			t.Errorf("%v: strictly feasible, but %s %s", c, v.Outcome, v.Message)
		}
	}
}

// TestFormsOfOneResult: lists, tuples and arrays of the same numbers have one verdict.
func TestFormsOfOneResult(t *testing.T) {
	c := load(t, "codeevolve.json").Data.Circles
	var centers, radii []byte
	for _, row := range c {
		for _, x := range row[:2] {
			centers = binary.LittleEndian.AppendUint64(centers, math.Float64bits(x))
		}
		radii = binary.LittleEndian.AppendUint64(radii, math.Float64bits(row[2]))
	}
	want := Problem{}.Verify(returns(c, value.Nil{}))
	lists := returns(c, value.Nil{}).(value.Tuple)
	arrays := value.Tuple{&value.Array{DType: "f8", Shape: []int{26, 2}, Data: centers}, &value.Array{DType: "f8", Shape: []int{26}, Data: radii}, value.Float(0)}
	for name, form := range map[string]value.Value{
		"arrays": arrays, "a list of arrays": value.List(arrays), "mixed": value.Tuple{arrays[0], lists[1], nil},
		"claim of no dimensions": value.Tuple{lists[0], arrays[1], &value.Array{DType: "f8", Shape: []int{}, Data: radii[:8]}},
		"claim as a dict":        value.Tuple{lists[0], arrays[1], value.Dict{"sum": value.Float(1)}},
	} {
		if v := (Problem{}).Verify(form); v.Outcome != spec.OK || *v.Value != *want.Value || *v.Strict != *want.Strict || v.Message != want.Message {
			t.Errorf("%s: %s %q, want %q", name, v.Outcome, v.Message, want.Message)
		}
	}
	for name, form := range map[string]value.Value{
		"27 circles": returns(append(c[:26:26], c[0]), value.Nil{}), "25 circles": returns(c[:25], value.Nil{}),
		"four parts": append(lists[:3:3], value.Nil{}), "an array of everything": arrays[0], "columns": value.Tuple{
			&value.Array{DType: "f8", Shape: []int{26, 2}, Data: centers}, &value.Array{DType: "f8", Shape: []int{26, 1}, Data: radii}, nil},
	} {
		if v := (Problem{}).Verify(form); v.Outcome != spec.BadResult || v.Value != nil || v.Message == "" {
			t.Errorf("%s: %s %q", name, v.Outcome, v.Message)
		}
	}
}
