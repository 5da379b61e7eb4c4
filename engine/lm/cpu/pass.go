package cpu

import (
	"context"
	"fmt"

	"skep/engine/lm"
)

// Pass computes the spans (lm.Backend). All their rows go through the model together; see forward.
func (b *Backend) Pass(ctx context.Context, spans []lm.Span) ([]lm.Output, error) {
	all, err := b.sequences(spans)
	if err == nil {
		err = b.transact(all, func() error { return b.forward(ctx, all) })
	}
	if err != nil {
		return nil, fmt.Errorf("cpu: Pass: %w", err)
	}
	out := make([]lm.Output, len(all))
	for i, s := range all {
		out[i] = s.out
	}
	return out, nil
}

// transact grows the sequences' blocks, runs f, and keeps the growth only when f succeeds.
func (b *Backend) transact(all []*sequence, f func() error) error {
	growths := make([]*growth, len(all))
	for i, s := range all {
		growths[i] = s.growth
	}
	if err := b.blocks.grow(growths); err != nil {
		return err
	}
	if err := b.together(f); err != nil {
		b.blocks.cancel(growths)
		return err
	}
	b.blocks.commit(growths)
	return nil
}

// sequences checks the spans and finds their blocks.
func (b *Backend) sequences(spans []lm.Span) ([]*sequence, error) {
	all := make([]*sequence, len(spans))
	written := map[lm.BlockID]int{}
	for i, span := range spans {
		s, err := b.sequence(span)
		if err != nil {
			return nil, fmt.Errorf("span %d: %w", i, err)
		}
		if other, twice := written[span.Into]; twice {
			return nil, fmt.Errorf("span %d: %w: block %d is also written by span %d", i, lm.ErrBadSpan, span.Into, other)
		}
		written[span.Into], s.index, all[i] = i, i, s
	}
	for i, span := range spans {
		for _, seg := range span.View {
			if other, ok := written[seg.Block]; ok && other != i {
				return nil, fmt.Errorf("span %d: %w: its view names block %d, which span %d writes: use two passes", i, lm.ErrBadSpan, seg.Block, other)
			}
		}
	}
	return all, nil
}

func (b *Backend) sequence(span lm.Span) (*sequence, error) {
	n, err := b.inputRows(span)
	if err != nil {
		return nil, err
	}
	if span.Pos < 0 || span.Want.TopK < 0 {
		return nil, fmt.Errorf("%w: position %d, %d best tokens: neither can be negative", lm.ErrBadSpan, span.Pos, span.Want.TopK)
	}
	s := &sequence{tokens: span.Tokens, embeds: span.Embeds, rows: n, pos: span.Pos, want: span.Want}
	if s.view, err = b.segments(span.View); err != nil {
		return nil, err
	}
	s.growth, err = b.growth(span.Into, span.At, n)
	return s, err
}

// inputRows checks a span's input and counts its rows.
func (b *Backend) inputRows(span lm.Span) (int, error) {
	width := b.config.Width
	switch {
	case (len(span.Tokens) == 0) == (len(span.Embeds) == 0):
		return 0, fmt.Errorf("%w: %d tokens and %d embedding values: a span has rows of one of the two", lm.ErrBadSpan, len(span.Tokens), len(span.Embeds))
	case len(span.Embeds)%width != 0:
		return 0, fmt.Errorf("%w: %d embedding values are no rows of the model's width %d", lm.ErrBadSpan, len(span.Embeds), width)
	}
	for _, t := range span.Tokens {
		if t < 0 || int(t) >= b.config.Vocab {
			return 0, fmt.Errorf("%w: token %d, the vocabulary has %d", lm.ErrBadSpan, t, b.config.Vocab)
		}
	}
	return len(span.Tokens) + len(span.Embeds)/width, nil
}

func (b *Backend) segments(view lm.View) ([]segment, error) {
	var out []segment
	for _, seg := range view {
		from, err := b.blocks.find(seg.Block)
		if err != nil {
			return nil, fmt.Errorf("its view: %w", err)
		}
		if seg.Len < 0 || seg.Len > from.len {
			return nil, fmt.Errorf("%w: its view wants %d entries of block %d, which has %d", lm.ErrBadSpan, seg.Len, seg.Block, from.len)
		}
		out = append(out, segment{pages: from.pages, len: seg.Len, shift: seg.Shift})
	}
	return out, nil
}

func (b *Backend) growth(into lm.BlockID, at, rows int) (*growth, error) {
	to, err := b.blocks.find(into)
	if err != nil {
		return nil, fmt.Errorf("where it goes: %w", err)
	}
	if at < 0 || at > to.len {
		return nil, fmt.Errorf("%w: it keeps %d entries of block %d, which has %d", lm.ErrBadSpan, at, into, to.len)
	}
	return &growth{block: to, at: at, rows: rows}, nil
}
