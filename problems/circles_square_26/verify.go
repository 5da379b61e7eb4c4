package circles_square_26

import (
	"fmt"
	"math"
	"math/big"

	"skep/problems/spec"
	"skep/problems/value"
)

// circle is one returned circle; its numbers may be anything, NaN included.
type circle struct{ x, y, r float64 }

// Verify applies the paper's rule (D.1, arXiv 2611.08483) to what run_packing returned: a sequence of exactly
// centers (26 × 2), radii (26) and a claimed sum, cast by value.Reals. The value is the exact sum of the returned
// radii, rounded once, where that is finite; the claim is never used and may be anything.
//
// Both verdicts are decided exactly, on the rational numbers that the float64s are. Tolerant: radii ≥ 0 without
// tolerance, walls and pairs within 1e-6. Strict: the same at tolerance 0.
func (Problem) Verify(returned value.Value) spec.Verdict {
	circles, claim, err := parse(returned)
	if err != nil {
		return spec.Verdict{Outcome: spec.BadResult, Message: err.Error(), Claim: claim}
	}
	if err := finite(circles); err != nil {
		return spec.Verdict{Outcome: spec.BadResult, Message: err.Error(), Claim: claim}
	}
	p := exactly(circles)
	sum := p.sum()
	strict := p.feasible(new(big.Rat))
	v := spec.Verdict{
		Claim:   claim,
		Strict:  &strict,
		Margins: []spec.Margin{p.walls().margin(), p.pairs().margin(), p.radii().margin()},
	}
	if isFinite(sum) { // 26 radii of 1e308 are finite, their sum is not: such circles have no value
		v.Value = &sum
	}
	switch {
	case !p.feasible(tolerance):
		v.Outcome, v.Message = spec.Infeasible, p.violation(tolerance)
	case !(sum <= upperBound):
		v.Outcome, v.Message = spec.Suspicious, fmt.Sprintf(
			"sum of radii %v is above %v, which no packing within the tolerance can reach: the verifier is at fault", sum, upperBound)
	default:
		v.Outcome = spec.OK
		v.Message = p.praise(sum, strict)
		v.Numbers = numbers(p, sum, strict)
	}
	return v
}

// tolerance is the ε of D.1, exactly 10⁻⁶ and not the float64 beside it.
var tolerance = big.NewRat(1, 1_000_000)

// upperBound on the sum of radii of anything that passes the tolerant check. Radii that pass within ε become, when each
// is lowered by ε (those below ε go to 0), disjoint circles inside the square: pairs regain 2ε, walls ε. Their area is
// at most that of the square, Σπr² ≤ 1, so by Cauchy and Schwarz Σr ≤ √(n/π); lowering lost at most nε. A circle below
// ε lowered to 0 keeps its centre, which lies within ε of the square and carries no area. Derived here, no source.
var upperBound = math.Sqrt(count/math.Pi) + count*1e-6

// numbers fills the four scores of a tolerantly feasible packing.
//
//   - search score: value / v_AE, what ranks.
//   - Table 1: the evaluator divides by the rounded 2.635, and the paper rescales such scores to the exact v_AE, which
//     cancels the divisor: value/2.635 · 2.635/v_AE. Same rule, so the same number as the search score here.
//   - Table S5: the value under AlphaEvolve's exact constraints. The paper does not say how it repairs a packing that
//     holds within the tolerance only; here all radii shrink by one common factor, as little as an exact check allows.
//   - strict value: the value itself where the packing is strictly feasible as returned.
func numbers(p packing, sum float64, strict bool) spec.Numbers {
	score := sum / reference
	n := spec.Numbers{SearchScore: &score, Table1Score: &score}
	if strict {
		n.TableS5Value, n.StrictValue = &sum, &sum
	} else if shrunk, ok := p.shrink(); ok {
		repaired := shrunk.sum()
		n.TableS5Value = &repaired
	}
	return n
}

// parse casts the returned value. The claim is nil when it is no finite real number; that is not an error.
func parse(returned value.Value) (circles []circle, claim *float64, err error) {
	parts, err := triple(returned)
	if err != nil {
		return nil, nil, err
	}
	if c, err := value.Reals("sum", parts[2]); err == nil && isFinite(c[0]) {
		claim = &c[0]
	}
	centers, err := value.Reals("centers", parts[0], count, 2)
	if err != nil {
		return nil, claim, err
	}
	radii, err := value.Reals("radii", parts[1], count)
	if err != nil {
		return nil, claim, err
	}
	for i, r := range radii {
		circles = append(circles, circle{centers[2*i], centers[2*i+1], r})
	}
	return circles, claim, nil
}

func triple(returned value.Value) ([]value.Value, error) {
	var parts []value.Value
	switch v := returned.(type) {
	case value.Tuple:
		parts = v
	case value.List:
		parts = v
	}
	if len(parts) != 3 {
		return nil, fmt.Errorf("run_packing returned %s, want (centers, radii, sum)", value.Describe(returned))
	}
	return parts, nil
}

func finite(circles []circle) error {
	for i, c := range circles {
		if !isFinite(c.x) || !isFinite(c.y) {
			return fmt.Errorf("the center of circle %d is (%v, %v), not finite", i, c.x, c.y)
		}
		if !isFinite(c.r) {
			return fmt.Errorf("the radius of circle %d is %v, not finite", i, c.r)
		}
	}
	return nil
}

func isFinite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
