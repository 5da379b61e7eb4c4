package lm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// expected computes the distribution the other way round, as Hugging Face's warpers do: mask by the k-th largest
// value, then mask the ascending tail whose cumulative mass is at most 1-p. It returns a probability per token.
func expected(logits []float32, s Sampling) []float64 {
	masked := make([]float64, len(logits))
	for i, x := range logits {
		masked[i] = float64(x) / s.Temperature
	}
	if s.TopK > 0 && s.TopK < len(logits) {
		ascending := slices.Sorted(slices.Values(masked))
		for i, x := range masked {
			if x < ascending[len(ascending)-s.TopK] {
				masked[i] = math.Inf(-1)
			}
		}
	}
	if s.TopP > 0 && s.TopP < 1 {
		probs := normalise(masked)
		order := make([]int, len(logits))
		for i := range order {
			order[i] = len(logits) - 1 - i // ties: the lowest token goes last, so it is masked last
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case masked[a] < masked[b]:
				return -1
			case masked[a] > masked[b]:
				return 1
			}
			return 0
		})
		tail := 0.0
		for _, i := range order[:len(order)-1] {
			if tail += probs[i]; tail <= 1-s.TopP+1e-12 {
				masked[i] = math.Inf(-1)
			}
		}
	}
	return normalise(masked)
}

func normalise(logits []float64) []float64 {
	probs, sum := make([]float64, len(logits)), 0.0
	for i, x := range logits {
		probs[i] = math.Exp(x - slices.Max(logits))
		sum += probs[i]
	}
	for i := range probs {
		probs[i] /= sum
	}
	return probs
}

var toys = map[string][]float32{
	"two":      {0, 1},
	"ties":     {1, 3, 3, 2, 2, 2, 0, -1, 3, 1},
	"all tied": {5, 5, 5, 5, 5},
	"masked":   {2, float32(math.Inf(-1)), 1, 0.5, float32(math.Inf(-1)), 1},
	"fifty": func() []float32 {
		row := make([]float32, 50)
		for i := range row {
			row[i] = float32(3 * math.Sin(float64(7*i*i)))
		}
		return row
	}(),
}

func TestDrawFollowsTheDistribution(t *testing.T) {
	const draws = 100_000
	run := uint64(0)
	for name, row := range toys {
		for _, s := range []Sampling{
			{Temperature: 1}, {Temperature: 0.5, TopK: 3}, {Temperature: 0.8, TopP: 0.95, TopK: 20},
			{Temperature: 1.5, TopP: 0.6}, {Temperature: 2, TopK: 1}, {Temperature: 1, TopP: 0.01},
		} {
			run++
			t.Run(fmt.Sprintf("%s/T%v,k%d,p%v", name, s.Temperature, s.TopK, s.TopP), func(t *testing.T) {
				counts := make([]float64, len(row))
				ranking := Rank(row, s.TopK)
				for i := range draws {
					token, err := s.Draw(ranking, Key{Run: run}.Uniform(uint64(i)))
					if err != nil {
						t.Fatal(err)
					}
					counts[token]++
				}
				checkCounts(t, counts, expected(row, s), draws)
			})
		}
	}
}

// checkCounts is Pearson's test; 60 tests at 1e-6 each fail by chance once in 16,000 runs of other keys.
func checkCounts(t *testing.T, counts, probs []float64, draws float64) {
	t.Helper()
	statistic, freedom := 0.0, -1.0
	for token, p := range probs {
		if p == 0 {
			if counts[token] > 0 {
				t.Errorf("token %d has probability 0 and was drawn %v times", token, counts[token])
			}
			continue
		}
		freedom++
		statistic += math.Pow(counts[token]-draws*p, 2) / (draws * p)
	}
	if freedom == 0 {
		return // the only token took all draws, or one above was reported
	}
	if limit := (distuv.ChiSquared{K: freedom}).Quantile(1 - 1e-6); statistic > limit {
		t.Errorf("chi-square %.1f of %v degrees of freedom, limit %.1f\ncounts %v\nexpected %v", statistic, freedom, limit, counts, probs)
	}
}

func TestDistributionAgreesWithTheAscendingForm(t *testing.T) {
	key := Key{Run: 77}
	for i := range uint64(2000) {
		row := make([]float32, 2+i%40)
		for j := range row {
			row[j] = float32(math.Round(12*key.Uniform(64*i+uint64(j))) / 2) // halves: many ties
		}
		s := Sampling{Temperature: 0.3 + float64(i%7)/3, TopK: int(i % 11), TopP: float64(i%5) / 5}
		tokens, probs, err := s.Distribution(Rank(row, s.TopK))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(row))
		for j, token := range tokens {
			got[token] = probs[j]
		}
		for token, want := range expected(row, s) {
			if math.Abs(got[token]-want) > 1e-12 {
				t.Fatalf("row %v, %+v: token %d has %v, want %v", row, s, token, got[token], want)
			}
		}
	}
}

func TestGreedyTakesTheLowestOfTiedTokens(t *testing.T) {
	for _, c := range []struct {
		row  []float32
		want Token
	}{{[]float32{1, 3, 3, 2}, 1}, {[]float32{7, 7, 7}, 0}, {[]float32{-2, -1}, 1}} {
		for _, u := range []float64{0, 0.5, 0.999999} {
			if got, err := (Sampling{}).Draw(Rank(c.row, 1), u); err != nil || got != c.want {
				t.Errorf("greedy of %v with u %v: %v, %v; want %v", c.row, u, got, err, c.want)
			}
		}
	}
}

func TestBrokenRowsAreRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, row := range [][]float32{{1, nan, 2}, {nan, nan}, {1, inf}, {-inf, -inf}, {}} {
		for _, s := range []Sampling{{}, {Temperature: 1}, {Temperature: 0.8, TopK: 2, TopP: 0.9}} {
			k := s.want().TopK
			if token, err := s.Draw(Rank(row, k), 0.3); !errors.Is(err, ErrNotFinite) {
				t.Errorf("row %v, %+v: drew %v, error %v", row, s, token, err)
			}
		}
	}
}

func TestRankKeepsTies(t *testing.T) {
	row := []float32{2, 5, 3, 5, 3, 1, 3}
	for k, want := range map[int][]Token{1: {1, 3}, 2: {1, 3}, 3: {1, 3, 2, 4, 6}, 6: {1, 3, 2, 4, 6, 0}, 0: {1, 3, 2, 4, 6, 0, 5}, 9: {1, 3, 2, 4, 6, 0, 5}} {
		r := Rank(row, k)
		if !slices.Equal(r.Tokens, want) {
			t.Errorf("top %d: tokens %v, want %v", k, r.Tokens, want)
		}
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(float64(x))
		}
		if math.Abs(r.LogSum-math.Log(sum)) > 1e-12 {
			t.Errorf("top %d: log-sum-exp %v, want %v", k, r.LogSum, math.Log(sum))
		}
	}
}
