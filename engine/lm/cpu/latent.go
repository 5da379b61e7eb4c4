package cpu

import (
	"context"
	"fmt"
	"math"
	"slices"

	"skep/engine/lm"
)

// alignment is lm.Alignment ready to be multiplied.
type alignment struct {
	gamma float32
	w     *matrix // the transpose of lm.Alignment.W; nil: the identity
	e     rows    // [thoughts, D]
}

// minNorm is the least norm that an aligned state is divided by, as in LatentMAS.
const minNorm = 1e-6

// Latent feeds hidden states back as embeddings (lm.Backend). All thoughts take a step together.
func (b *Backend) Latent(ctx context.Context, thoughts []lm.Thought, steps int, done func(step int)) ([][][]float32, error) {
	all, err := b.thinking(thoughts, steps)
	if err == nil {
		err = b.needAlignment(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("cpu: Latent: %w", err)
	}
	states := make([][][]float32, len(thoughts))
	hidden := make([][]float32, len(thoughts))
	for i, t := range thoughts {
		hidden[i] = t.Hidden
	}
	err = b.transact(all, func() error {
		for step := range steps {
			if err := b.step(ctx, all, step, hidden); err != nil {
				return err
			}
			for i, h := range hidden {
				states[i] = append(states[i], h)
			}
			if done != nil {
				done(step + 1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cpu: Latent: %w", err)
	}
	return states, nil
}

// thinking checks the thoughts and makes a sequence of each, whose rows are its steps.
func (b *Backend) thinking(thoughts []lm.Thought, steps int) ([]*sequence, error) {
	if steps < 0 {
		return nil, fmt.Errorf("%w: %d steps", lm.ErrBadSpan, steps)
	}
	spans := make([]lm.Span, len(thoughts))
	for i, t := range thoughts {
		if len(t.Hidden) != b.config.Width {
			return nil, fmt.Errorf("thought %d: %w: its hidden state has %d values, the model's width is %d", i, lm.ErrBadSpan, len(t.Hidden), b.config.Width)
		}
		spans[i] = lm.Span{Embeds: t.Hidden, Pos: t.Pos, View: t.View, Into: t.Into, At: t.At}
	}
	all, err := b.sequences(spans)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		s.rows, s.growth.rows = steps, steps
		s.embeds = make([]float32, steps*b.config.Width)
	}
	return all, nil
}

// step takes every sequence one row further: hidden[i] becomes the state that follows it.
func (b *Backend) step(ctx context.Context, all []*sequence, step int, hidden [][]float32) error {
	for from := 0; from < len(all); from += b.rows {
		n := min(b.rows, len(all)-from)
		embeds := b.embeddings(hidden[from : from+n])
		groups := make([]group, n)
		for i := range groups {
			seq := all[from+i]
			copy(seq.embeds[step*b.config.Width:], embeds.row(i)[:b.config.Width])
			groups[i] = group{seq: seq, first: i, row: step, rows: 1}
		}
		if err := b.layers(ctx, groups); err != nil {
			return err
		}
		for i := range groups {
			h := b.acts.x.row(i)
			b.rmsNorm(h, h, b.weights.norm)
			hidden[from+i] = slices.Clone(h[:b.config.Width])
		}
		b.done += int64(n)
	}
	return nil
}

// embeddings is Eq. 2 for each hidden state: e = γ·W_a h/‖W_a h‖.
func (b *Backend) embeddings(hidden [][]float32) rows {
	a, n, width := b.align, len(hidden), b.config.Width
	if len(a.e.data) < n*a.e.stride || a.e.stride == 0 {
		a.e = newRows(n, width)
	}
	b.acts.reserve(b.config, n)
	for i, h := range hidden {
		copy(b.acts.h.row(i), h)
		copy(a.e.row(i), h)
	}
	if a.w != nil {
		b.multiply(n, term{dst: a.e, x: b.acts.h, w: a.w})
	}
	for i := range n {
		e := a.e.row(i)
		norm := max(math.Sqrt(float64(b.ops.Dot(e, e))), minNorm)
		scale := float32(float64(a.gamma) / norm)
		for d := range width {
			e[d] *= scale
		}
	}
	return a.e
}

// needAlignment makes W_a ready, from Options, the cache, or the weights.
func (b *Backend) needAlignment(ctx context.Context) error {
	if b.align != nil {
		return nil
	}
	given := b.given
	if given == nil {
		var err error
		if given, err = lm.Align(ctx, b.model, lm.AlignOptions{}); err != nil {
			return err
		}
	}
	width := b.config.Width
	a := &alignment{gamma: given.Gamma}
	if !given.Tied {
		if len(given.W) != width*width {
			return fmt.Errorf("the alignment has %d numbers, a model of width %d needs %d: it was made for another model", len(given.W), width, width*width)
		}
		transposed := newRows(width, width)
		for i := range width {
			for j := range width {
				transposed.row(j)[i] = given.W[i*width+j]
			}
		}
		a.w = &matrix{rows: width, cols: transposed.stride, floats: transposed.data}
	}
	b.align = a
	return nil
}
