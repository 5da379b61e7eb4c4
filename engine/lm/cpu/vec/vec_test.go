package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fusedMultiplyAdd is x*y+z in float32 with one rounding: the product is exact in float64, the sum is rounded to odd
// there, and a number rounded to odd with 53 bits rounds rightly to 24 (Boldo and Melquiond, 2008).
func fusedMultiplyAdd(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	t := s - p
	if lost := (p - (s - t)) + (c - t); lost != 0 && math.Float64bits(s)&1 == 0 {
		if (lost > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// fusedDot is the definition of one output of Product.
func fusedDot(dst float32, a, b []float32) float32 {
	var lanes [Lanes]float32
	for i := range a {
		lanes[i%Lanes] = fusedMultiplyAdd(a[i], b[i], lanes[i%Lanes])
	}
	return dst + sumLanes(&lanes)
}

// fusedPanel is the definition of one output of Panel.
func fusedPanel(dst float32, a, b []float32) float32 {
	var chains [4]float32
	for i := range a {
		chains[i%4] = fusedMultiplyAdd(a[i], b[i], chains[i%4])
	}
	return dst + ((chains[0] + chains[1]) + (chains[2] + chains[3]))
}

func random(rng *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(rng.NormFloat64())
	}
	return s
}

// versions calls test for each version that this machine runs; exact says that it must give the defined bits.
func versions(t *testing.T, test func(t *testing.T, o *Ops, exact bool)) {
	for _, name := range Names() {
		o, err := For(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { test(t, o, name != "portable") })
	}
}

// near reports whether got is within 2⁻²⁰ of the sum of magnitudes that went into it.
func near(got, want float32, scale float64) bool {
	return math.Abs(float64(got)-float64(want)) <= scale*0x1p-20
}

func TestForRefusesUnknownNames(t *testing.T) {
	if _, err := For("sse2"); err == nil {
		t.Fatal("For(sse2) succeeded")
	}
	if o, err := For(""); err != nil || o.Name != Names()[0] {
		t.Fatalf("For(\"\") = %v, %v, want %s", o, err, Names()[0])
	}
}

func TestProduct(t *testing.T) {
	versions(t, func(t *testing.T, o *Ops, exact bool) {
		rng := rand.New(rand.NewPCG(1, 2))
		for rows := range 14 {
			for _, length := range []int{0, 1, 15, 16, 17, 255, 256} {
				for _, n := range []int{0, 1, 3, 4, 5, 8, 15} {
					checkProduct(t, o, exact, rng, rows, n, length)
				}
			}
		}
	})
}

func checkProduct(t *testing.T, o *Ops, exact bool, rng *rand.Rand, rows, n, length int) {
	k := Pad(length)
	xStride, wStride, dstStride := k+rng.IntN(3), k+rng.IntN(3), n+rng.IntN(3)
	x, w := random(rng, rows*xStride), random(rng, n*wStride)
	for _, m := range []struct {
		data         []float32
		rows, stride int
	}{{x, rows, xStride}, {w, n, wStride}} {
		for r := range m.rows {
			clear(m.data[r*m.stride+length : r*m.stride+k])
		}
	}
	dst := random(rng, rows*dstStride)
	before := append([]float32(nil), dst...)
	o.Product(dst, dstStride, x, xStride, rows, w, wStride, n, k)
	for i, got := range dst {
		r, j := i/max(dstStride, 1), i%max(dstStride, 1)
		want, scale := before[i], math.Abs(float64(before[i]))
		if j < n {
			a, b := x[r*xStride:][:k], w[j*wStride:][:k]
			want = fusedDot(want, a, b)
			for i := range a {
				scale += math.Abs(float64(a[i]) * float64(b[i]))
			}
		}
		if exact && got != want || !near(got, want, scale) {
			t.Fatalf("rows %d n %d k %d: dst[%d][%d] = %v, want %v", rows, n, length, r, j, got, want)
		}
	}
}

func TestPanel(t *testing.T) {
	versions(t, func(t *testing.T, o *Ops, exact bool) {
		rng := rand.New(rand.NewPCG(3, 4))
		for rows := range 14 {
			for _, k := range []int{0, 1, 2, 3, 4, 5, 15, 16, 17, 255} {
				checkPanel(t, o, exact, rng, rows, k)
			}
		}
	})
}

func checkPanel(t *testing.T, o *Ops, exact bool, rng *rand.Rand, rows, k int) {
	aStride, bStride, dstStride := k+rng.IntN(3), Lanes+rng.IntN(40), Lanes+rng.IntN(3)
	a, b, dst := random(rng, rows*aStride), random(rng, k*bStride), random(rng, rows*dstStride)
	before := append([]float32(nil), dst...)
	o.Panel(dst, dstStride, a, aStride, rows, b, bStride, k)
	column := make([]float32, k)
	for i, got := range dst {
		r, c := i/dstStride, i%dstStride
		want, scale := before[i], math.Abs(float64(before[i]))
		if c < Lanes {
			for i := range column {
				column[i] = b[i*bStride+c]
				scale += math.Abs(float64(column[i]) * float64(a[r*aStride+i]))
			}
			want = fusedPanel(want, a[r*aStride:][:k], column)
		}
		if exact && got != want || !near(got, want, scale) {
			t.Fatalf("rows %d k %d: dst[%d][%d] = %v, want %v", rows, k, r, c, got, want)
		}
	}
}

func TestExpSum(t *testing.T) {
	versions(t, func(t *testing.T, o *Ops, _ bool) {
		const n = 64 * Lanes
		s, high := make([]float32, n), float32(3)
		for i := range s {
			s[i] = high - float32(i)*0.0857 // exponents 0 … -87.7
		}
		s[5], s[7] = float32(math.Inf(-1)), high-86.99
		in := append([]float32(nil), s...)
		total := 0.0
		sum := o.ExpSum(s, high)
		for i, x := range in {
			want := 0.0
			if x-high >= -87 {
				want = math.Exp(float64(x - high))
			}
			total += want
			if math.Abs(float64(s[i])-want) > 3e-7*want {
				t.Errorf("exp(%v) = %v, want %v", x-high, s[i], want)
			}
		}
		if math.Abs(float64(sum)-total) > 1e-6*total {
			t.Errorf("sum = %v, want %v", sum, total)
		}
		nan := make([]float32, Lanes)
		nan[3] = float32(math.NaN())
		if sum := o.ExpSum(nan, 0); sum == sum || nan[3] == nan[3] {
			t.Errorf("a NaN became %v, sum %v", nan[3], sum)
		}
		if sum := o.ExpSum(nil, 0); sum != 0 {
			t.Errorf("the empty sum is %v", sum)
		}
	})
}

func TestSiluMul(t *testing.T) {
	versions(t, func(t *testing.T, o *Ops, _ bool) {
		rng := rand.New(rand.NewPCG(5, 6))
		gate, up := random(rng, 40*Lanes), random(rng, 40*Lanes)
		for i := range gate {
			gate[i] *= 10
		}
		gate[0], gate[1], gate[2] = 500, -500, 0
		in := append([]float32(nil), gate...)
		o.SiluMul(gate, up)
		for i, g := range in {
			want := float64(g) / (1 + math.Exp(-float64(g))) * float64(up[i])
			if math.Abs(float64(gate[i])-want) > 1e-6*math.Abs(want)+1e-30 {
				t.Errorf("silu(%v)·%v = %v, want %v", g, up[i], gate[i], want)
			}
		}
	})
}

func TestMax(t *testing.T) {
	versions(t, func(t *testing.T, o *Ops, _ bool) {
		s := make([]float32, 5*Lanes)
		for at := range s {
			for i := range s {
				s[i] = -float32(i) - 2
			}
			s[at] = -1
			if got := o.Max(s); got != -1 {
				t.Fatalf("Max = %v with -1 at %d", got, at)
			}
		}
	})
}

// TestVersionsAgree compares the two assembly versions bit for bit where no exact definition is written down.
func TestVersionsAgree(t *testing.T) {
	list := available()
	if len(list) < 2 {
		return // one version: nothing to compare
	}
	rng := rand.New(rand.NewPCG(7, 8))
	a, up := random(rng, 64*Lanes), random(rng, 64*Lanes)
	for i := range a {
		a[i] *= 30
	}
	b, c, d := append([]float32(nil), a...), append([]float32(nil), a...), append([]float32(nil), a...)
	sumA, sumB := list[0].ExpSum(a, 40), list[1].ExpSum(b, 40)
	list[0].SiluMul(c, up)
	list[1].SiluMul(d, up)
	for i := range a {
		if a[i] != b[i] || c[i] != d[i] {
			t.Fatalf("element %d: exp %v and %v, silu %v and %v", i, a[i], b[i], c[i], d[i])
		}
	}
	if sumA != sumB {
		t.Fatalf("sums %v and %v", sumA, sumB)
	}
}
