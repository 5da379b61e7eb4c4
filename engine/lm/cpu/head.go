package cpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// headRows is the number of rows whose logits are held at a time.
const headRows = 32

var errNotFinite = errors.New("not a number")

// outputs fills the outputs of a chunk's wanted rows from the residual stream.
func (b *Backend) outputs(ctx context.Context, groups []group) error {
	var wanted []wantedRow
	for _, g := range groups {
		for r := range g.rows {
			if g.seq.wants(g.row + r) {
				wanted = append(wanted, wantedRow{g.seq, g.first + r})
			}
		}
	}
	for len(wanted) > 0 {
		n := min(headRows, len(wanted))
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.rank(wanted[:n]); err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// wantedRow is a row of the chunk that an output is asked of.
type wantedRow struct {
	seq *sequence
	row int // of the chunk
}

// rank appends the outputs of up to headRows rows to their sequences.
func (b *Backend) rank(wanted []wantedRow) error {
	a := &b.acts
	needHead := false
	for i, w := range wanted {
		b.rmsNorm(a.h.row(i), a.x.row(w.row), b.weights.norm)
		needHead = needHead || w.seq.want.Logits || w.seq.want.TopK > 0
		if w.seq.want.Hidden {
			w.seq.out.Hidden = append(w.seq.out.Hidden, slices.Clone(a.h.row(i)[:b.config.Width]))
		}
	}
	if !needHead {
		return nil
	}
	k := func(i int) int { return wanted[i].seq.want.TopK }
	tops := b.logits(a.h, len(wanted), k)
	for i, w := range wanted {
		if math.IsNaN(tops[i].LogSum) {
			return fmt.Errorf("span %d: logits are %w: the model's weights or the span's inputs are broken", w.seq.index, errNotFinite)
		}
		if w.seq.want.Logits {
			w.seq.out.Logits = append(w.seq.out.Logits, slices.Clone(a.logits.row(i)[:b.config.Vocab]))
		}
		if w.seq.want.TopK > 0 {
			w.seq.out.Top = append(w.seq.out.Top, tops[i])
		}
	}
	return nil
}

// logits applies the head to n ≤ headRows rows of h, leaves the logits in acts.logits and ranks the k(row) best.
func (b *Backend) logits(h rows, n int, k func(row int) int) []lm.Ranking {
	a := &b.acts
	if n > a.heads {
		a.heads, a.logits = n, newRows(n, b.config.Vocab)
	}
	b.multiply(n, term{dst: a.logits, x: h, w: b.weights.head})
	tops := make([]lm.Ranking, n)
	b.parallel(n, func(_, i int) {
		row := a.logits.row(i)[:b.config.Vocab]
		tops[i] = best(row, k(i))
		tops[i].LogSum = logSum(b.ops, row)
	})
	return tops
}

// best ranks the k best logits and all ties with the last of them; k = 0 gives none. It keeps a heap of k while it
// reads the row once, then collects what reaches the smallest of it.
func best(logits []float32, k int) lm.Ranking {
	k = min(k, len(logits))
	if k == 0 {
		return lm.Ranking{}
	}
	heap := slices.Clone(logits[:k])
	for i := k / 2; i >= 0; i-- {
		sink(heap, i)
	}
	for _, v := range logits[k:] {
		if v > heap[0] {
			heap[0] = v
			sink(heap, 0)
		}
	}
	var tokens []lm.Token
	for t, v := range logits {
		if v >= heap[0] {
			tokens = append(tokens, lm.Token(t))
		}
	}
	slices.SortFunc(tokens, func(x, y lm.Token) int {
		return cmp.Or(cmp.Compare(logits[y], logits[x]), cmp.Compare(x, y))
	})
	values := make([]float32, len(tokens))
	for i, t := range tokens {
		values[i] = logits[t]
	}
	return lm.Ranking{Tokens: tokens, Logits: values}
}

// sink restores a heap with its smallest value first after heap[i] grew.
func sink(heap []float32, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && heap[child+1] < heap[child] {
			child++
		}
		if heap[i] <= heap[child] {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// logSum is log Σ exp of a row, NaN when any logit is. The exponentials are float32, their sum float64.
func logSum(ops *vec.Ops, logits []float32) float64 {
	const run = 512
	top := slices.Max(logits) // NaN when any logit is
	sum := 0.0
	var buffer [run]float32
	for len(logits) > 0 {
		n := copy(buffer[:], logits)
		for i := n; i < run; i++ {
			buffer[i] = minusInfinity
		}
		sum += float64(ops.ExpSum(buffer[:], top))
		logits = logits[n:]
	}
	return float64(top) + math.Log(sum)
}

// Lens applies the output head to hidden states.
func (b *Backend) Lens(ctx context.Context, hidden [][]float32, k int) ([]lm.Ranking, error) {
	if k < 0 {
		return nil, fmt.Errorf("cpu: Lens: %w: %d best tokens", lm.ErrBadSpan, k)
	}
	for i, h := range hidden {
		if len(h) != b.config.Width {
			return nil, fmt.Errorf("cpu: Lens: %w: hidden state %d has %d values, the model's width is %d", lm.ErrBadSpan, i, len(h), b.config.Width)
		}
	}
	var out []lm.Ranking
	err := b.together(func() (err error) {
		out, err = b.lens(ctx, hidden, k)
		return err
	})
	return out, err
}

func (b *Backend) lens(ctx context.Context, hidden [][]float32, k int) ([]lm.Ranking, error) {
	var out []lm.Ranking
	for len(hidden) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(headRows, len(hidden))
		b.acts.reserve(b.config, n)
		for i, h := range hidden[:n] {
			copy(b.acts.h.row(i), h)
		}
		tops := b.logits(b.acts.h, n, func(int) int { return k })
		if i := slices.IndexFunc(tops, func(r lm.Ranking) bool { return math.IsNaN(r.LogSum) }); i >= 0 {
			return nil, fmt.Errorf("cpu: Lens: the logits of hidden state %d are %w", len(out)+i, errNotFinite)
		}
		out = append(out, tops...)
		hidden = hidden[n:]
	}
	return out, nil
}
