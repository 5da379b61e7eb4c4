package circles_square_26

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"skep/problems/spec"
	"skep/problems/value"
)

// published is a file of testdata: a packing with the numbers that its collector recomputed independently in Python.
type published struct {
	Recomputed float64 `json:"recomputed"`
	Strict     bool    `json:"strictly_feasible"`
	Decimal    string  `json:"v_AE_decimal"`
	Data       struct {
		Circles [][3]float64 `json:"circles_xyr"`
	} `json:"data"`
}

func load(t *testing.T, name string) published {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var p published
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// returns builds what run_packing would return; claim may be any value.
func returns(circles [][3]float64, claim value.Value) value.Value {
	var centers, radii value.List
	for _, c := range circles {
		centers = append(centers, value.Tuple{value.Float(c[0]), value.Float(c[1])})
		radii = append(radii, value.Float(c[2]))
	}
	return value.Tuple{centers, radii, claim}
}

// TestPublishedConstructions: values to the last digit, and strictness as recorded, but for one file: its collector tested
// in float64, where three pairs of alphaevolve_2 come out as touching. In exact arithmetic (checked with Python's
// Fraction as well) they overlap by 3e-18.
func TestPublishedConstructions(t *testing.T) {
	for _, name := range []string{"alphaevolve.json", "alphaevolve_2.json", "codeevolve.json", "theta_strict.json"} {
		p := load(t, name)
		p.Strict = p.Strict && name != "alphaevolve_2.json"
		v := Problem{}.Verify(returns(p.Data.Circles, value.Nil{}))
		if v.Outcome != spec.OK || v.Value == nil || v.Strict == nil {
			t.Fatalf("%s: %+v", name, v)
		}
		// The collector summed in float64 one by one, which may differ in the last place from the exact sum.
		if ulp := math.Nextafter(p.Recomputed, 3) - p.Recomputed; math.Abs(*v.Value-p.Recomputed) > ulp {
			t.Errorf("%s: value %v, published data give %v", name, *v.Value, p.Recomputed)
		}
		if *v.Strict != p.Strict {
			t.Errorf("%s: strict %v, want %v: %s", name, *v.Strict, p.Strict, v.Message)
		}
		if (v.Numbers.StrictValue != nil) != p.Strict {
			t.Errorf("%s: strict value %v with strict %v", name, v.Numbers.StrictValue, p.Strict)
		}
		if s5 := v.Numbers.TableS5Value; s5 == nil || *s5 > *v.Value || *s5 < *v.Value-1e-5 {
			t.Errorf("%s: Table S5 value %v beside value %v", name, s5, *v.Value)
		}
	}
}

// TestReference sums AlphaEvolve's radii as decimals of the file, to the 30 digits that were published.
func TestReference(t *testing.T) {
	p := load(t, "alphaevolve.json")
	sum := new(big.Rat)
	for _, c := range p.Data.Circles {
		sum.Add(sum, new(big.Rat).SetFloat64(c[2]))
	}
	if got := sum.FloatString(30); got != p.Decimal {
		t.Errorf("exact sum %s, published %s", got, p.Decimal)
	}
	v := Problem{}.Verify(returns(p.Data.Circles, value.Nil{}))
	if *v.Value != reference || *v.Numbers.SearchScore != 1 || *v.Numbers.Table1Score != 1 {
		t.Errorf("value %v, search score %v, Table 1 score %v; want %v, 1, 1", *v.Value, *v.Numbers.SearchScore, *v.Numbers.Table1Score, reference)
	}
}

// lattice is a strictly feasible packing with round numbers: 5 × 5 circles of radius 1/16 on a grid of pitch 1/8, and
// one of radius 1/8 in the free strip.
func lattice() [][3]float64 {
	var c [][3]float64
	for i := range 5 {
		for j := range 5 {
			c = append(c, [3]float64{0.0625 + 0.125*float64(i), 0.0625 + 0.125*float64(j), 0.0625})
		}
	}
	return append(c, [3]float64{0.875, 0.875, 0.125})
}

func TestEdges(t *testing.T) {
	const eps = 1e-6
	up, down := math.Nextafter(1, 2)-1, 1-math.Nextafter(1, 0)
	cases := []struct {
		name    string
		change  func(c [][3]float64)
		outcome spec.Outcome
		strict  bool
		message string
	}{
		{"touching exactly", func(c [][3]float64) {}, spec.OK, true, "exactly feasible"},
		{"wall crossed by one part in 2^53", func(c [][3]float64) { c[25][0] += down }, spec.OK, false, "within 1e-6 only"},
		{"wall crossed within the tolerance", func(c [][3]float64) { c[25][0] += 0.9 * eps }, spec.OK, false, "right wall"},
		{"wall crossed beyond the tolerance", func(c [][3]float64) { c[25][0] += 1.1 * eps }, spec.Infeasible, false, "walls: circle 25"},
		{"lower wall", func(c [][3]float64) { c[5][1] -= 2 * eps }, spec.Infeasible, false, "lower wall"},
		{"pair overlaps by the last bit", func(c [][3]float64) { c[7][2] += up / 16 }, spec.OK, false, "pairs: circles"},
		{"pair overlaps within the tolerance", func(c [][3]float64) { c[7][2] += 0.9 * eps }, spec.OK, false, "circles 2 and 7"},
		{"pair overlaps beyond the tolerance", func(c [][3]float64) { c[7][2] += 1.1 * eps }, spec.Infeasible, false, "circles 2 and 7"},
		{"negative radius within the tolerance", func(c [][3]float64) { c[3][2] = -1e-9 }, spec.Infeasible, false, "circle 3 has the negative radius"},
		{"negative zero radius", func(c [][3]float64) { c[3][2] = math.Copysign(0, -1) }, spec.OK, true, ""},
		{"denormal radius", func(c [][3]float64) { c[3][2] = 5e-324 }, spec.OK, true, ""},
		{"NaN center", func(c [][3]float64) { c[3][0] = math.NaN() }, spec.BadResult, false, "center of circle 3"},
		{"NaN radius", func(c [][3]float64) { c[25][2] = math.NaN() }, spec.BadResult, false, "radius of circle 25 is NaN"},
		{"all NaN with huge radii", func(c [][3]float64) {
			for i := range c {
				c[i] = [3]float64{math.NaN(), math.NaN(), 1e6}
			}
		}, spec.BadResult, false, "not finite"},
		{"infinite radius", func(c [][3]float64) { c[0][2] = math.Inf(1) }, spec.BadResult, false, "+Inf"},
		{"overflowing distances", func(c [][3]float64) { c[0][0], c[1][0] = 1e308, -1e308 }, spec.Infeasible, false, "walls"},
		{"all circles on one spot", func(c [][3]float64) {
			for i := range c {
				c[i] = [3]float64{0.5, 0.5, 0.5}
			}
		}, spec.Infeasible, false, "circles 0 and 1"},
	}
	for _, test := range cases {
		c := lattice()
		test.change(c)
		v := Problem{}.Verify(returns(c, value.Nil{}))
		if v.Outcome != test.outcome || !strings.Contains(v.Message, test.message) {
			t.Errorf("%s: %s %q, want %s %q", test.name, v.Outcome, v.Message, test.outcome, test.message)
		}
		if got := v.Strict != nil && *v.Strict; got != test.strict {
			t.Errorf("%s: strict %v, want %v", test.name, got, test.strict)
		}
		if v.Outcome != spec.OK && v.Numbers != (spec.Numbers{}) {
			t.Errorf("%s: %s has scores: %+v", test.name, v.Outcome, v.Numbers)
		}
		if v.Outcome == spec.BadResult && v.Value != nil {
			t.Errorf("%s: malformed numbers have the value %v", test.name, *v.Value)
		}
	}
}

// TestFloatAgrees compares the exact verdicts with plain float64 arithmetic wherever that is sure of its answer.
func TestFloatAgrees(t *testing.T) {
	base := load(t, "alphaevolve_2.json").Data.Circles
	random := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		size := math.Pow(10, -3-12*random.Float64())
		c := append([][3]float64(nil), base...)
		k := random.IntN(count)
		c[k][random.IntN(3)] += size * (2*random.Float64() - 1)
		worst := math.Inf(1)
		for i, a := range c {
			worst = min(worst, a[0]-a[2], 1-a[0]-a[2], a[1]-a[2], 1-a[1]-a[2])
			for _, b := range c[i+1:] {
				worst = min(worst, math.Hypot(a[0]-b[0], a[1]-b[1])-a[2]-b[2])
			}
		}
		v := Problem{}.Verify(returns(c, value.Nil{}))
		const rounding = 1e-15
		if math.Abs(worst) > rounding && *v.Strict != (worst > 0) {
			t.Errorf("trial %d: strict %v with a worst slack of %g: %s", trial, *v.Strict, worst, v.Message)
		}
		if math.Abs(worst+1e-6) > rounding && (v.Outcome == spec.OK) != (worst > -1e-6) {
			t.Errorf("trial %d: %s with a worst slack of %g: %s", trial, v.Outcome, worst, v.Message)
		}
		smallest := math.Inf(1)
		for _, m := range v.Margins[:2] {
			smallest = min(smallest, m.Slack)
		}
		if math.Abs(smallest-worst) > rounding {
			t.Errorf("trial %d: margins say %g, floats %g", trial, smallest, worst)
		}
	}
}

// TestSymmetry: the eight symmetries of the square and any order of the circles leave the verdict alone.
func TestSymmetry(t *testing.T) {
	for _, name := range []string{"alphaevolve_2.json", "codeevolve.json"} {
		base := load(t, name).Data.Circles
		want := Problem{}.Verify(returns(base, value.Nil{}))
		random := rand.New(rand.NewPCG(3, 4))
		for range 8 {
			c := append([][3]float64(nil), base...)
			random.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
			if random.IntN(2) == 0 {
				for i := range c {
					c[i][0], c[i][1] = c[i][1], c[i][0]
				}
			}
			got := Problem{}.Verify(returns(c, value.Nil{}))
			if got.Outcome != want.Outcome || *got.Value != *want.Value || *got.Strict != *want.Strict {
				t.Errorf("%s moved: %s %v %v, want %s %v %v", name, got.Outcome, *got.Value, *got.Strict, want.Outcome, *want.Value, *want.Strict)
			}
		}
	}
}

func TestShapesAndTypes(t *testing.T) {
	good := func() value.Tuple { return returns(lattice(), value.Float(1)).(value.Tuple) }
	swap := func(i int, v value.Value) value.Value { r := good(); r[i] = v; return r }
	array := func(dtype string, shape ...int) *value.Array {
		return &value.Array{DType: dtype, Shape: shape, Data: make([]byte, 8*26*2)}
	}
	cases := []struct {
		name     string
		returned value.Value
		message  string
	}{
		{"nothing", nil, "returned None"},
		{"one number", value.Float(2.7), "returned a float"},
		{"two parts", value.Tuple{value.Nil{}, value.Nil{}}, "a tuple of 2"},
		{"a dict", value.Dict{"sum": value.Float(3)}, "a dict of 1"},
		{"boolean radii", swap(1, value.Bool(true)), "radii is a boolean"},
		{"one radius for all", swap(1, value.Float(0.1)), "want (26,)"},
		{"25 radii", swap(1, good()[1].(value.List)[:25]), "radii has 25 entries"},
		{"complex radius", swap(1, append(good()[1].(value.List)[:25:25], value.Complex(0.1))), "radii[25] is a complex number"},
		{"boolean radius", swap(1, append(good()[1].(value.List)[:25:25], value.Bool(true))), "radii[25] is a boolean"},
		{"fraction", swap(1, append(good()[1].(value.List)[:25:25], big.NewRat(1, 3))), "radii[25] is a fraction"},
		{"number as text", swap(1, append(good()[1].(value.List)[:25:25], value.String("0.1"))), "radii[25] is a string"},
		{"huge integer", swap(1, append(good()[1].(value.List)[:25:25], new(big.Int).Lsh(big.NewInt(1), 2000))), "beyond 2^53"},
		{"float32", swap(0, array("f4", 26, 2)), "an array of float32"},
		{"int8", swap(0, array("i1", 26, 2)), "an array of int8"},
		{"complex array", swap(0, array("c16", 26, 1)), "complex128"},
		{"transposed", swap(0, array("f8", 2, 26)), "shape (2, 26), want (26, 2)"},
		{"1 × 1 that would broadcast", swap(0, array("f8", 1, 1)), "shape (1, 1)"},
		{"a set of radii", swap(1, value.Set{value.Float(0.1)}), "a set of 1"},
	}
	for _, test := range cases {
		v := Problem{}.Verify(test.returned)
		if v.Outcome != spec.BadResult || !strings.Contains(v.Message, test.message) {
			t.Errorf("%s: %s %q, want bad_result with %q", test.name, v.Outcome, v.Message, test.message)
		}
	}
}

func TestClaimIsNeverUsed(t *testing.T) {
	for _, claim := range []value.Value{value.Float(1e308), value.Float(math.NaN()), value.String("2.7"), value.Nil{}, value.Bool(true)} {
		v := Problem{}.Verify(returns(lattice(), claim))
		if v.Outcome != spec.OK || *v.Value != 25*0.0625+0.125 {
			t.Errorf("claim %v: %s, value %v", claim, v.Outcome, *v.Value)
		}
		if _, ok := claim.(value.Float); !ok && v.Claim != nil {
			t.Errorf("claim %v was read as %v", claim, *v.Claim)
		}
	}
}

// TestUpperBound: the bound lies above the best packing known and is the area bound plus the tolerance.
func TestUpperBound(t *testing.T) {
	if !(upperBound > 2.6359857 && upperBound < 2.8768+1e-4) {
		t.Errorf("upper bound %v", upperBound)
	}
}

func TestPictureOfAnything(t *testing.T) {
	broken := lattice()
	broken[0] = [3]float64{math.NaN(), 0.5, 0.1}
	broken[1] = [3]float64{1e300, 0.5, 1e300}
	broken[2] = [3]float64{0.5, 0.5, -0.2}
	broken[3] = [3]float64{0.5, math.Inf(1), math.Inf(-1)}
	bad := violators(circlesOf(t, returns(broken, value.Nil{})))
	for _, i := range []int{0, 1, 2, 3} {
		if !bad[i] {
			t.Errorf("circle %d of %v is not marked", i, broken[i])
		}
	}
	if len(violators(circlesOf(t, returns(lattice(), value.Nil{})))) != 0 {
		t.Error("a feasible packing has marked circles")
	}
	for name, returned := range map[string]value.Value{
		"feasible": returns(lattice(), value.Nil{}), "broken": returns(broken, value.Nil{}), "nothing": nil, "short": value.Tuple{value.Nil{}},
	} {
		figure := Problem{}.Picture(returned)
		if svg := figure.SVG(); len(svg) < 1000 || regexp.MustCompile(`="[^"]*(NaN|Inf)`).Match(svg) {
			t.Errorf("%s: an SVG of %d bytes", name, len(svg))
		}
	}
}

func circlesOf(t *testing.T, returned value.Value) []circle {
	t.Helper()
	circles, _, err := parse(returned)
	if err != nil {
		t.Fatal(err)
	}
	return circles
}

// TestHugeRadii: finite radii whose sum is not give no value: a verdict is written as JSON, which has no infinity.
func TestHugeRadii(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		c := lattice()
		for i := range c {
			c[i][2] = sign * 1e308
		}
		v := Problem{}.Verify(returns(c, value.Nil{}))
		if v.Outcome != spec.Infeasible || v.Value != nil || v.Message == "" {
			t.Errorf("%s, value %v, %q", v.Outcome, v.Value, v.Message)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	}
}
