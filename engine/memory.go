package engine

import (
	"context"
	"slices"
	"sync"

	"skep/engine/lm"
)

// stretch is a block of cached keys and values and the positions at which it was computed. The zero stretch is empty.
type stretch struct {
	block  lm.BlockID
	pos, n int // positions pos … pos+n-1
}

// end is the position behind the stretch.
func (s stretch) end() int { return s.pos + s.n }

// at is the segment that shows the stretch at another position (Eq. 1).
func (s stretch) at(pos int) lm.Segment {
	return lm.Segment{Block: s.block, Len: s.n, Shift: pos - s.pos}
}

// view shows stretches at the positions where they were computed, empty ones left out.
func view(stretches ...stretch) lm.View {
	var v lm.View
	for _, s := range stretches {
		if s.n > 0 {
			v = append(v, s.at(s.pos))
		}
	}
	return v
}

// piece is text to be read: tokens behind what view shows.
type piece struct {
	tokens []lm.Token
	pos    int
	view   lm.View
	hidden bool // its last hidden state is wanted
}

// read passes pieces that do not depend on each other into blocks of their own. When it fails no block is left behind.
func (s *Search) read(ctx context.Context, pieces []piece) ([]stretch, []lm.Output, error) {
	spans := make([]lm.Span, len(pieces))
	stretches := make([]stretch, len(pieces))
	for i, p := range pieces {
		stretches[i] = stretch{s.backend.New(), p.pos, len(p.tokens)}
		spans[i] = lm.Span{Tokens: p.tokens, Pos: p.pos, View: p.view, Into: stretches[i].block, Want: lm.Want{Hidden: p.hidden}}
	}
	out, err := s.backend.Pass(ctx, spans)
	if err != nil {
		for _, st := range stretches {
			s.backend.Free(st.block)
		}
		return nil, nil, err
	}
	return stretches, out, nil
}

// fan prepares n texts that begin with each of the pieces: a piece is read once but for its last token, which every text
// begins with on its own. The caller frees the blocks, also when there is an error.
func (s *Search) fan(ctx context.Context, pieces []piece, n int) (prompts []lm.Span, blocks []lm.BlockID, err error) {
	heads := make([]piece, len(pieces))
	for i, p := range pieces {
		heads[i] = piece{tokens: p.tokens[:len(p.tokens)-1], pos: p.pos, view: p.view}
	}
	read, _, err := s.read(ctx, heads)
	if err != nil {
		return nil, nil, err
	}
	for i, p := range pieces {
		blocks = append(blocks, read[i].block)
		seen := append(slices.Clone(p.view), read[i].at(read[i].pos))
		for range n {
			block := s.backend.New()
			blocks = append(blocks, block)
			prompts = append(prompts, lm.Span{Tokens: p.tokens[len(p.tokens)-1:], Pos: read[i].end(), View: seen, Into: block})
		}
	}
	return prompts, blocks, nil
}

// readPrograms reads the programs that are not cached yet behind the problem, and the problem first.
func (s *Search) readPrograms(ctx context.Context, want []*Program) error {
	if s.problemKV.n == 0 {
		got, _, err := s.read(ctx, []piece{{tokens: s.prompts.problem}})
		if err != nil {
			return err
		}
		s.problemKV = got[0]
	}
	var missing []*Program
	var pieces []piece
	for _, p := range want {
		if _, cached := s.programKV[p.ID]; cached || slices.ContainsFunc(missing, func(m *Program) bool { return m.ID == p.ID }) {
			continue
		}
		missing = append(missing, p)
		pieces = append(pieces, piece{tokens: s.programTokens(p), pos: s.problemKV.end(), view: view(s.problemKV)})
	}
	if len(pieces) == 0 {
		return nil
	}
	got, _, err := s.read(ctx, pieces)
	if err != nil {
		return err
	}
	for i, p := range missing {
		s.programKV[p.ID] = got[i]
	}
	return nil
}

// forget frees the cached programs that are not in keep.
func (s *Search) forget(keep ...*Program) {
	for id, st := range s.programKV {
		if !slices.ContainsFunc(keep, func(p *Program) bool { return p.ID == id }) {
			s.backend.Free(st.block)
			delete(s.programKV, id)
		}
	}
}

// shared lets several goroutines use one backend, one call at a time: a look at an agent waits for the pass that
// runs, not for the whole stage.
//
// After close every call that computes is refused with ErrClosed: the weights are no longer mapped.
type shared struct {
	mu     sync.Mutex
	closed bool
	lm.Backend
}

func (b *shared) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}

func (b *shared) New() lm.BlockID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Backend.New()
}

func (b *shared) Fork(block lm.BlockID, n int) (lm.BlockID, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Backend.Fork(block, n)
}

func (b *shared) Free(blocks ...lm.BlockID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Backend.Free(blocks...)
}

func (b *shared) Pass(ctx context.Context, spans []lm.Span) ([]lm.Output, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	return b.Backend.Pass(ctx, spans)
}

func (b *shared) Latent(ctx context.Context, thoughts []lm.Thought, steps int, done func(int)) ([][][]float32, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	return b.Backend.Latent(ctx, thoughts, steps, done)
}

func (b *shared) Lens(ctx context.Context, hidden [][]float32, k int) ([]lm.Ranking, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	return b.Backend.Lens(ctx, hidden, k)
}

func (b *shared) Snapshot(block lm.BlockID) (lm.KV, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Backend.Snapshot(block)
}

func (b *shared) Stats() lm.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Backend.Stats()
}
