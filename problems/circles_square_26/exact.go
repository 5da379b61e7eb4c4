package circles_square_26

import (
	"fmt"
	"math"
	"math/big"
)

// packing is the circles as exact rational numbers, so that every comparison is a proof. Rationals may grow to a few
// thousand bits (a float64 spans 2^±1074); with 26 circles and 325 pairs that stays within milliseconds.
type packing struct {
	x, y, r []*big.Rat
	circles []circle // the same numbers as returned, for messages
}

// exactly takes finite circles.
func exactly(circles []circle) packing {
	p := packing{circles: circles}
	for _, c := range circles {
		p.x = append(p.x, new(big.Rat).SetFloat64(c.x))
		p.y = append(p.y, new(big.Rat).SetFloat64(c.y))
		p.r = append(p.r, new(big.Rat).SetFloat64(c.r))
	}
	return p
}

// sum returns the sum of the radii, exact before the one rounding to float64.
func (p packing) sum() float64 {
	total := new(big.Rat)
	for _, r := range p.r {
		total.Add(total, r)
	}
	f, _ := total.Float64()
	return f
}

// feasible decides the tolerant (eps > 0) or strict (eps = 0) verdict exactly.
func (p packing) feasible(eps *big.Rat) bool { return p.violation(eps) == "" }

// violation names the first violated constraint with its numbers, in the order radii, walls, pairs, or is empty.
func (p packing) violation(eps *big.Rat) string {
	for i, r := range p.r {
		if !(r.Sign() >= 0) {
			return fmt.Sprintf("radii: circle %d has the negative radius %v", i, p.circles[i].r)
		}
	}
	for i := range p.r {
		for _, side := range sides {
			if slack := side.slack(p, i); !(slack.Cmp(new(big.Rat).Neg(eps)) >= 0) {
				c := p.circles[i]
				return fmt.Sprintf("walls: circle %d at (%v, %v) with radius %v crosses the %s wall by %.3g", i, c.x, c.y, c.r, side.name, -float(slack))
			}
		}
	}
	for i := range p.r {
		for j := i + 1; j < len(p.r); j++ {
			if !p.apart(i, j, eps) {
				return fmt.Sprintf("pairs: circles %d and %d overlap by %.3g: their distance is %.17g, their radii sum to %.17g",
					i, j, -p.gap(i, j), p.distance(i, j), float(new(big.Rat).Add(p.r[i], p.r[j])))
			}
		}
	}
	return ""
}

// side is one wall of the square: its slack is what lies between a circle and it.
type side struct {
	name  string
	slack func(p packing, i int) *big.Rat
}

var one = big.NewRat(1, 1)

var sides = []side{
	{"left", func(p packing, i int) *big.Rat { return new(big.Rat).Sub(p.x[i], p.r[i]) }},
	{"right", func(p packing, i int) *big.Rat { return beyond(p.x[i], p.r[i]) }},
	{"lower", func(p packing, i int) *big.Rat { return new(big.Rat).Sub(p.y[i], p.r[i]) }},
	{"upper", func(p packing, i int) *big.Rat { return beyond(p.y[i], p.r[i]) }},
}

// beyond returns 1 − r − x.
func beyond(x, r *big.Rat) *big.Rat {
	s := new(big.Rat).Sub(one, r)
	return s.Sub(s, x)
}

// apart says whether ‖cᵢ − cⱼ‖ ≥ rᵢ + rⱼ − eps, without a square root.
func (p packing) apart(i, j int, eps *big.Rat) bool {
	need := new(big.Rat).Add(p.r[i], p.r[j])
	need.Sub(need, eps)
	return need.Sign() <= 0 || p.squared(i, j).Cmp(need.Mul(need, need)) >= 0
}

// squared returns ‖cᵢ − cⱼ‖².
func (p packing) squared(i, j int) *big.Rat {
	dx := new(big.Rat).Sub(p.x[i], p.x[j])
	dy := new(big.Rat).Sub(p.y[i], p.y[j])
	return dx.Add(dx.Mul(dx, dx), dy.Mul(dy, dy))
}

// distance returns ‖cᵢ − cⱼ‖, rounded.
func (p packing) distance(i, j int) float64 {
	return math.Hypot(p.circles[i].x-p.circles[j].x, p.circles[i].y-p.circles[j].y)
}

// gap returns ‖cᵢ − cⱼ‖ − rᵢ − rⱼ as a float64 whose sign is exact: (d² − s²)/(d + s) with an exact numerator, since
// the difference of two nearly equal roots would keep no digit.
func (p packing) gap(i, j int) float64 {
	sum := new(big.Rat).Add(p.r[i], p.r[j])
	if sum.Sign() <= 0 {
		return p.distance(i, j) - float(sum)
	}
	numerator := p.squared(i, j)
	numerator.Sub(numerator, new(big.Rat).Mul(sum, sum))
	return float(numerator.Quo(numerator, new(big.Rat).Add(rat(p.distance(i, j)), sum)))
}

// rat is x as a rational; an overflowed distance counts as the largest float64.
func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(math.Min(x, math.MaxFloat64)) }

func float(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}

// shrink returns the packing with every radius multiplied by one factor, as large as float64 and an exact check allow, and
// whether any factor helps: none does for a centre outside the square.
func (p packing) shrink() (packing, bool) {
	factor := 1.0
	for i, c := range p.circles {
		for _, side := range sides {
			if slack := float(side.slack(p, i)); slack < 0 {
				factor = min(factor, (c.r+slack)/c.r)
			}
		}
		for j := i + 1; j < len(p.r); j++ {
			if p.gap(i, j) < 0 {
				factor = min(factor, p.distance(i, j)/(c.r+p.circles[j].r))
			}
		}
	}
	// Rounding makes the factor a few units too large; 64 steps down are far more than it needs.
	for range 64 {
		if !(factor >= 0) {
			break
		}
		smaller := make([]circle, len(p.circles))
		for i, c := range p.circles {
			smaller[i] = circle{c.x, c.y, factor * c.r}
		}
		if q := exactly(smaller); q.feasible(new(big.Rat)) {
			return q, true
		}
		factor = math.Nextafter(factor, -1)
	}
	return packing{}, false
}
