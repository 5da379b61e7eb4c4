package circles_square_26

import (
	"fmt"
	"math"
	"math/big"

	"skep/problems/spec"
)

// worst is the constraint of one family with the least slack.
type worst struct {
	family string
	slack  float64
	at     string
}

func (w worst) margin() spec.Margin { return spec.Margin{Family: w.family, Slack: w.slack, At: w.at} }

// take keeps the smaller slack.
func (w *worst) take(slack float64, at string, args ...any) {
	if w.at == "" || slack < w.slack {
		w.slack, w.at = slack, fmt.Sprintf(at, args...)
	}
}

func (p packing) walls() worst {
	w := worst{family: "walls"}
	for i := range p.r {
		for _, side := range sides {
			w.take(float(side.slack(p, i)), "circle %d, %s wall", i, side.name)
		}
	}
	return clamp(w)
}

func (p packing) pairs() worst {
	w := worst{family: "pairs"}
	for i := range p.r {
		for j := i + 1; j < len(p.r); j++ {
			w.take(p.gap(i, j), "circles %d and %d", i, j)
		}
	}
	return clamp(w)
}

func (p packing) radii() worst {
	w := worst{family: "radii"}
	for i, c := range p.circles {
		w.take(c.r, "circle %d", i)
	}
	return w
}

// clamp keeps a slack that overflowed float64 a number that JSON can hold.
func clamp(w worst) worst {
	w.slack = max(-math.MaxFloat64, min(math.MaxFloat64, w.slack))
	return w
}

// praise says how good a tolerantly feasible packing is.
func (p packing) praise(sum float64, strict bool) string {
	if strict {
		return fmt.Sprintf("sum of radii %v, exactly feasible", sum)
	}
	return fmt.Sprintf("sum of radii %v, feasible within 1e-6 only, not exactly: %s", sum, p.violation(new(big.Rat)))
}
