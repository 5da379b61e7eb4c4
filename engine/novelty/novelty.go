// Package novelty is the filter of a swarm: it keeps the agents whose reasoning differs most (Eq. 4–5,
// arXiv 2611.08483). It deliberately knows no agent or model: it deals in vectors and indices.
package novelty

import (
	"fmt"
	"math"
	"slices"
)

// Selection is what a filter decided.
type Selection struct {
	Kept    []int     // indices in the order they were chosen: the first is the one nearest to the mean
	Margins []float32 // per kept index, Eq. 5's min cosine distance to those kept before; 0 for the first
}

// Index returns the kept indices in ascending order, the order in which a summarizer sees the agents.
func (s Selection) Index() []int { return slices.Sorted(slices.Values(s.Kept)) }

// Mean is Eq. 4: the mean of an agent's hidden states [step][D] over its latent steps, summed in float64.
func Mean(trajectory [][]float32) []float32 {
	if len(trajectory) == 0 {
		return nil
	}
	sum := make([]float64, len(trajectory[0]))
	for _, h := range trajectory {
		for i, x := range h {
			sum[i] += float64(x)
		}
	}
	mean := make([]float32, len(sum))
	for i, x := range sum {
		mean[i] = float32(x / float64(len(trajectory)))
	}
	return mean
}

// Filter keeps keep of the agents with mean hidden states means [agent][D]. It starts with the agent closest to the
// swarm's mean and adds, one at a time, the agent with the largest smallest cosine distance to the kept ones
// (Eq. 5). Ties go to the lowest index. An agent that sits exactly on the mean has no direction: its distance to
// every other is 1, as if orthogonal. Returns an error when the means differ in length, hold NaN or infinity,
// or when keep is not in 1..len(means).
func Filter(means [][]float32, keep int) (Selection, error) {
	if err := check(means, keep); err != nil {
		return Selection{}, err
	}
	z, first := directions(means)
	sel := Selection{Kept: []int{first}, Margins: []float32{0}}
	nearest := make([]float64, len(z)) // smallest distance to the kept set; -1: kept
	for j := range z {
		nearest[j] = max(0, 1-dot(z[j], z[first])) // rounding must not fall to the mark of a kept one
	}
	nearest[first] = -1
	for len(sel.Kept) < keep {
		best := 0
		for j, d := range nearest {
			if d > nearest[best] {
				best = j
			}
		}
		sel.Kept = append(sel.Kept, best)
		sel.Margins = append(sel.Margins, float32(nearest[best]))
		for j := range z {
			if nearest[j] != -1 {
				nearest[j] = max(0, min(nearest[j], 1-dot(z[j], z[best])))
			}
		}
		nearest[best] = -1
	}
	return sel, nil
}

// Distances is the matrix of cosine distances between the centred means, [agent][agent].
func Distances(means [][]float32) ([][]float64, error) {
	if err := check(means, 1); err != nil {
		return nil, err
	}
	z, _ := directions(means)
	d := make([][]float64, len(z))
	for i := range z {
		d[i] = make([]float64, len(z))
		for j := range z {
			if i != j {
				d[i][j] = 1 - dot(z[i], z[j])
			}
		}
	}
	return d, nil
}

// directions centres the means on their mean, scales them to unit length (zero stays zero), and returns the index
// of the one closest to the mean.
func directions(means [][]float32) (z [][]float64, closest int) {
	mu := make([]float64, len(means[0]))
	for _, m := range means {
		for i, x := range m {
			mu[i] += float64(x) / float64(len(means))
		}
	}
	z = make([][]float64, len(means))
	least := math.Inf(1)
	for j, m := range means {
		z[j] = make([]float64, len(m))
		for i, x := range m {
			z[j][i] = float64(x) - mu[i]
		}
		norm := math.Sqrt(dot(z[j], z[j]))
		if norm < least {
			least, closest = norm, j
		}
		if norm > 0 {
			for i := range z[j] {
				z[j][i] /= norm
			}
		}
	}
	return z, closest
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func check(means [][]float32, keep int) error {
	if keep < 1 || keep > len(means) {
		return fmt.Errorf("novelty: keep %d of %d agents; want 1 to %d", keep, len(means), len(means))
	}
	for j, m := range means {
		if len(m) != len(means[0]) || len(m) == 0 {
			return fmt.Errorf("novelty: agent %d has a mean of length %d, agent 0 of %d", j, len(m), len(means[0]))
		}
		for i, x := range m {
			if x64 := float64(x); math.IsNaN(x64) || math.IsInf(x64, 0) {
				return fmt.Errorf("novelty: agent %d's mean hidden state is %v at %d", j, x, i)
			}
		}
	}
	return nil
}
