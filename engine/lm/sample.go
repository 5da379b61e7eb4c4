package lm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Errors of sampling that a caller can test for.
var (
	ErrBadSampling = errors.New("bad sampling settings")
	ErrNotFinite   = errors.New("logits are not finite") // the forward pass broke; a draw would hide it
)

// Sampling says how a stream draws its tokens and when it ends. The zero value is greedy, up to the context's end.
type Sampling struct {
	Temperature float64                // ≥ 0; 0 takes the best token, ties to the lowest id
	TopP        float64                // 0 < TopP ≤ 1; 0 means 1: no cut
	TopK        int                    // ≥ 0; 0: no cut
	MaxNew      int                    // most new tokens; 0: as many as the model's context holds
	Stop        func(text string) bool // ends the stream when it returns true for the text so far; may be nil
}

// check reports settings that no distribution answers to.
func (s Sampling) check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1):
		return fmt.Errorf("%w: temperature %v: give a finite number ≥ 0", ErrBadSampling, s.Temperature)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("%w: top-p %v: give a number in (0, 1], or 0 for no cut", ErrBadSampling, s.TopP)
	case s.TopK < 0:
		return fmt.Errorf("%w: top-k %d: give a number ≥ 0", ErrBadSampling, s.TopK)
	case s.MaxNew < 0:
		return fmt.Errorf("%w: at most %d new tokens: give a number ≥ 0", ErrBadSampling, s.MaxNew)
	}
	return nil
}

// want is what a backend must return for these settings: one ranking a row, or all logits where nothing cuts them.
func (s Sampling) want() Want {
	switch {
	case s.Temperature == 0:
		return Want{TopK: 1}
	case s.TopK > 0:
		return Want{TopK: s.TopK}
	default:
		return Want{Logits: true}
	}
}

// Draw picks the token of row from u, a uniform draw in [0, 1): the inverse of the cumulative distribution over
// the kept tokens, best first. row must hold at least the TopK best logits, or all of them when TopK is 0.
// It returns ErrNotFinite when the row holds a NaN or +Inf, or nothing above -Inf.
func (s Sampling) Draw(row Ranking, u float64) (Token, error) {
	kept, probs, err := s.Distribution(row)
	if err != nil {
		return 0, err
	}
	for i, p := range probs {
		if u -= p; u < 0 {
			return kept[i], nil
		}
	}
	return kept[len(kept)-1], nil // u ran past the sum by rounding
}

// Distribution is what Draw draws from: the tokens left by temperature, then top-k, then top-p, best first, and
// their probabilities, which sum to 1. Order and ties are those of Hugging Face's warpers: every logit equal to the
// k-th stays, and top-p keeps the fewest best tokens whose mass among those left reaches TopP.
func (s Sampling) Distribution(row Ranking) ([]Token, []float64, error) {
	if err := finite(row); err != nil {
		return nil, nil, err
	}
	if s.Temperature == 0 {
		return row.Tokens[:1], []float64{1}, nil
	}
	n := len(row.Logits)
	if s.TopK > 0 && s.TopK < n {
		kth := row.Logits[s.TopK-1]
		for n = s.TopK; n < len(row.Logits) && row.Logits[n] == kth; {
			n++
		}
	}
	probs := softmax(row.Logits[:n], s.Temperature)
	if s.TopP > 0 && s.TopP < 1 {
		probs = nucleus(probs, s.TopP)
	}
	return row.Tokens[:len(probs)], probs, nil
}

// finite refuses a ranking that a broken forward pass left.
func finite(row Ranking) error {
	if len(row.Logits) == 0 || len(row.Tokens) != len(row.Logits) {
		return fmt.Errorf("%w: a ranking of %d tokens and %d logits", ErrNotFinite, len(row.Tokens), len(row.Logits))
	}
	if best := float64(row.Logits[0]); math.IsInf(best, 0) || math.IsNaN(row.LogSum) {
		return fmt.Errorf("%w: best logit %v, log-sum-exp %v", ErrNotFinite, best, row.LogSum)
	}
	for i, x := range row.Logits {
		if x != x {
			return fmt.Errorf("%w: NaN for token %d", ErrNotFinite, row.Tokens[i])
		}
	}
	return nil
}

// softmax of logits/temperature, in float64; logits are sorted, best first.
func softmax(logits []float32, temperature float64) []float64 {
	probs := make([]float64, len(logits))
	sum := 0.0
	for i, x := range logits {
		probs[i] = math.Exp((float64(x) - float64(logits[0])) / temperature)
		sum += probs[i]
	}
	for i := range probs {
		probs[i] /= sum
	}
	return probs
}

// nucleus cuts sorted probabilities after the first whose running sum reaches p, and renormalises what is left. The
// slack is above the rounding of a sum, so that four of five equal tokens reach 0.8.
func nucleus(probs []float64, p float64) []float64 {
	const slack = 1e-12
	n, sum := 0, 0.0
	for n == 0 || (n < len(probs) && sum < p-slack) {
		sum += probs[n]
		n++
	}
	probs = probs[:n]
	for i := range probs {
		probs[i] /= sum
	}
	return probs
}

// Rank sorts the k best of a row of logits, best first, equal logits by ascending token, every tie with the k-th
// included; k = 0 ranks the whole row. A NaN anywhere gives a ranking whose LogSum is NaN, which Draw refuses.
func Rank(logits []float32, k int) Ranking {
	r := Ranking{LogSum: logSumExp(logits)}
	least := kthLargest(logits, k)
	for i, x := range logits {
		if x >= least {
			r.Tokens = append(r.Tokens, Token(i))
		}
	}
	slices.SortFunc(r.Tokens, func(a, b Token) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	r.Logits = make([]float32, len(r.Tokens))
	for i, t := range r.Tokens {
		r.Logits[i] = logits[t]
	}
	return r
}

// kthLargest is the k-th largest of xs, -Inf when k is 0 or there are not as many. Few of a row's elements ever
// enter the list of the best, so that keeping it sorted costs less than sorting the row.
func kthLargest(xs []float32, k int) float32 {
	if k == 0 || k > len(xs) {
		return float32(math.Inf(-1))
	}
	best := make([]float32, 0, k+1) // descending
	for _, x := range xs {
		if len(best) == k && x <= best[k-1] {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, x, func(b, x float32) int { return cmp.Compare(x, b) })
		best = slices.Insert(best, at, x)
		best = best[:min(len(best), k)]
	}
	return best[k-1]
}

// logSumExp is log Σ exp(x), in float64; NaN when any x is.
func logSumExp(logits []float32) float64 {
	if len(logits) == 0 {
		return math.Inf(-1)
	}
	best, sum := float64(slices.Max(logits)), 0.0 // Max is NaN when any element is
	for _, x := range logits {
		sum += math.Exp(float64(x) - best)
	}
	return best + math.Log(sum)
}
