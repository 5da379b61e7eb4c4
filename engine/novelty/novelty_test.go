package novelty

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(r *rand.Rand, agents, d int) [][]float32 {
	means := make([][]float32, agents)
	for j := range means {
		means[j] = make([]float32, d)
		for i := range means[j] {
			means[j][i] = float32(r.NormFloat64())
		}
	}
	return means
}

// plain computes Eq. 5 as it is written: every candidate against every kept agent, anew at each step.
func plain(means [][]float32, keep int) []int {
	n, d := len(means), len(means[0])
	mu := make([]float64, d)
	for _, m := range means {
		for i := range mu {
			mu[i] += float64(m[i]) / float64(n)
		}
	}
	offset := func(j int) (v []float64, norm float64) {
		for i := range mu {
			v = append(v, float64(means[j][i])-mu[i])
			norm = math.Hypot(norm, v[i])
		}
		return v, norm
	}
	distance := func(a, b int) float64 {
		va, na := offset(a)
		vb, nb := offset(b)
		s := 0.0
		for i := range va {
			s += va[i] * vb[i]
		}
		return 1 - s/na/nb
	}
	start := 0
	for j := range means {
		_, best := offset(start)
		if _, norm := offset(j); norm < best {
			start = j
		}
	}
	kept := []int{start}
	for len(kept) < keep {
		best, far := -1, math.Inf(-1)
		for j := range means {
			if slices.Contains(kept, j) {
				continue
			}
			near := math.Inf(1)
			for _, i := range kept {
				near = min(near, distance(j, i))
			}
			if near > far {
				best, far = j, near
			}
		}
		kept = append(kept, best)
	}
	return kept
}

func TestFilterIsEq5(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		n := 1 + r.IntN(45)
		means, keep := random(r, n, 3+r.IntN(60)), 1+r.IntN(n)
		got, err := Filter(means, keep)
		if err != nil {
			t.Fatal(err)
		}
		if want := plain(means, keep); !slices.Equal(got.Kept, want) {
			t.Errorf("seed %d: kept %v, Eq. 5 gives %v", seed, got.Kept, want)
		}
		if !slices.IsSorted(got.Index()) || len(got.Index()) != keep {
			t.Errorf("seed %d: index %v", seed, got.Index())
		}
	}
}

func TestFilterDegenerate(t *testing.T) {
	same := [][]float32{{1, 2}, {1, 2}, {1, 2}, {1, 2}}
	got, err := Filter(same, 3)
	if err != nil || !slices.Equal(got.Kept, []int{0, 1, 2}) {
		t.Errorf("equal agents: %v, %v; ties go to the lowest index", got.Kept, err)
	}
	twins := [][]float32{{1, 0}, {1, 0}, {-1, 0}, {-1, 0}}
	got, err = Filter(twins, 4)
	if err != nil || len(got.Index()) != 4 || got.Index()[3] != 3 {
		t.Errorf("twins: %v, %v", got.Kept, err)
	}
	nan := float32(math.NaN())
	for _, bad := range []struct {
		means [][]float32
		keep  int
	}{{same, 0}, {same, 5}, {nil, 1}, {[][]float32{{1}, {1, 2}}, 1}, {[][]float32{{nan}, {1}}, 1}} {
		if _, err := Filter(bad.means, bad.keep); err == nil {
			t.Errorf("Filter(%v, %d) gave no error", bad.means, bad.keep)
		}
	}
}

func TestMean(t *testing.T) {
	if got := Mean([][]float32{{1, 4}, {3, 8}}); !slices.Equal(got, []float32{2, 6}) {
		t.Errorf("mean %v", got)
	}
	if Mean(nil) != nil {
		t.Error("the mean of nothing is not nil")
	}
}

func ExampleFilter() {
	sel, _ := Filter([][]float32{{0.1, 0}, {5, 0}, {-5, 0.1}, {0, 3}, {5, 0.1}}, 3)
	fmt.Println(sel.Kept)
	// Output: [0 4 3]
}
