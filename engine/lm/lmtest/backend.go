package lmtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"skep/engine/lm"
)

// Backend runs the suite that every lm.Backend passes, on small random models of all families: the numbers against
// Reference, and the rules of the interface. open makes a backend for a model; the suite closes the model.
func Backend(t *testing.T, open func(t testing.TB, m *lm.Model) lm.Backend) {
	for _, shape := range Shapes {
		t.Run(shape.name, func(t *testing.T) {
			s := &suite{open: open, model: Random(t, shape.config, shape.matrices), random: rand.New(rand.NewPCG(1, 2))}
			s.ref = NewReference(t, s.model)
			t.Run("Numbers", s.numbers)
			t.Run("Shifts", s.shifts)
			t.Run("Latent", s.latent)
			t.Run("Alone", s.alone)
			t.Run("Pieces", s.pieces)
			t.Run("Lens", s.lens)
		})
	}
	s := &suite{open: open, model: Random(t, Shapes[0].config, lm.F32), random: rand.New(rand.NewPCG(3, 4))}
	t.Run("Fork", s.fork)
	t.Run("Truncate", s.truncate)
	t.Run("Cancel", s.cancel)
	t.Run("Errors", s.errors)
}

// Shapes are the models of the suite: all families, both rotations, tied and not, one to many query heads on a
// key/value head, head widths and columns that are no multiple of a vector's, and quantised matrices.
var Shapes = []struct {
	name     string
	config   lm.Config
	matrices lm.DType
}{
	{"llama", lm.Config{Arch: "llama", Layers: 2, Width: 48, Heads: 6, KVHeads: 2, HeadDim: 8, FFN: 72, RopeTheta: 1e4, Tied: true}, lm.F32},
	{"qwen2", lm.Config{Arch: "qwen2", Layers: 2, Width: 36, Heads: 4, KVHeads: 4, HeadDim: 10, FFN: 50, RopeTheta: 1e6}, lm.F32},
	{"qwen3", lm.Config{Arch: "qwen3", Layers: 3, Width: 32, Heads: 14, KVHeads: 2, HeadDim: 24, FFN: 80, RopeTheta: 1e6, Tied: true}, lm.F32},
	{"long-rows", lm.Config{Arch: "qwen3", Layers: 1, Width: 40, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 2100, RopeTheta: 1e6}, lm.F32},
	{"Q8_0", lm.Config{Arch: "qwen2", Layers: 1, Width: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96, RopeTheta: 1e6}, lm.Q8_0},
	{"Q6_K", lm.Config{Arch: "llama", Layers: 1, Width: 256, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 1280, RopeTheta: 1e6}, lm.Q6_K},
}

type suite struct {
	open   func(t testing.TB, m *lm.Model) lm.Backend
	model  *lm.Model
	ref    *Reference
	random *rand.Rand
}

func (s *suite) tokens(n int) []lm.Token {
	tokens := make([]lm.Token, n)
	for i := range tokens {
		tokens[i] = lm.Token(s.random.IntN(s.model.Config.Vocab))
	}
	return tokens
}

// everything asks for all outputs of all rows.
var everything = lm.Want{All: true, Hidden: true, TopK: 5, Logits: true}

// pass runs one pass that must succeed.
func pass(t testing.TB, b lm.Backend, spans ...lm.Span) []lm.Output {
	t.Helper()
	out, err := b.Pass(context.Background(), spans)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// block makes a block of n random tokens from position pos on.
func (s *suite) block(t testing.TB, b lm.Backend, n, pos int) lm.BlockID {
	id := b.New()
	pass(t, b, lm.Span{Tokens: s.tokens(n), Pos: pos, Into: id})
	return id
}

func snapshot(t testing.TB, b lm.Backend, id lm.BlockID) lm.KV {
	t.Helper()
	kv, err := b.Snapshot(id)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// Sizes that meet a page's and a cut's edge: used by the checks below.
const manyTokens = 300

// numbers compares every output, key and value of a long and a short span with the reference.
func (s *suite) numbers(t *testing.T) {
	b := s.open(t, s.model)
	for _, n := range []int{1, 17, manyTokens} {
		tokens, id := s.tokens(n), b.New()
		out := pass(t, b, lm.Span{Tokens: tokens, Pos: 3, Into: id, Want: everything})[0]
		kv := snapshot(t, b, id)
		var seen []Entry
		for i, token := range tokens {
			if n == manyTokens && i == 40 {
				break // the reference is slow; the end of the long span is checked by pieces
			}
			hidden, own := s.ref.Row(s.ref.Embedding(token), 3+i, seen)
			seen = append(seen, own)
			close(t, fmt.Sprintf("hidden[%d]", i), out.Hidden[i], hidden)
			close(t, fmt.Sprintf("logits[%d]", i), out.Logits[i], s.ref.Logits(hidden))
			s.checkRanking(t, out.Top[i], out.Logits[i])
			s.checkEntry(t, kv, i, own)
		}
		b.Free(id)
	}
}

func (s *suite) checkEntry(t testing.TB, kv lm.KV, i int, want Entry) {
	t.Helper()
	width := s.model.Config.KVHeads * s.model.Config.HeadDim
	for l := range want.Keys {
		var keys []float64
		for head := range s.model.Config.KVHeads {
			keys = append(keys, s.ref.Rotated(want.Keys[l][head*s.model.Config.HeadDim:][:s.model.Config.HeadDim], want.Pos)...)
		}
		close(t, fmt.Sprintf("key of entry %d, layer %d", i, l), kv.Keys[l][i*width:][:width], keys)
		close(t, fmt.Sprintf("value of entry %d, layer %d", i, l), kv.Values[l][i*width:][:width], want.Values[l])
	}
}

// checkRanking compares a ranking with a sort of the whole row.
func (s *suite) checkRanking(t testing.TB, got lm.Ranking, logits []float32) {
	t.Helper()
	want := lm.Rank(logits, everything.TopK)
	if !slices.Equal(got.Tokens, want.Tokens) || !slices.Equal(got.Logits, want.Logits) || math.Abs(got.LogSum-want.LogSum) > 1e-5 {
		t.Fatalf("ranking %+v, want %+v", got, want)
	}
}

// close compares with the reference: 2e-5 of the largest number.
func close(t testing.TB, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 1.0
	for _, x := range want {
		scale = max(scale, math.Abs(x))
	}
	for i, x := range want {
		if !(math.Abs(float64(got[i])-x) <= 2e-5*scale) {
			t.Fatalf("%s: number %d is %v, want %v (largest %v)", what, i, got[i], x, scale)
		}
	}
}

// shifts compares a view of moved blocks with the reference, where keys are rotated at their new positions: Eq. 6.
func (s *suite) shifts(t *testing.T) {
	b := s.open(t, s.model)
	problem, first, second := s.tokens(19), s.tokens(21), s.tokens(5)
	blocks := []lm.BlockID{b.New(), b.New(), b.New()}
	pass(t, b, lm.Span{Tokens: problem, Into: blocks[0]})
	head := lm.View{{Block: blocks[0], Len: 19}}
	pass(t, b, lm.Span{Tokens: first, Pos: 19, View: head, Into: blocks[1]}, lm.Span{Tokens: second, Pos: 19, View: head, Into: blocks[2]})
	shared := s.entries(problem, 0, nil)
	a, c := s.entries(first, 19, shared), s.entries(second, 19, shared)

	// The second agent's block comes first, at its own place; 18 of the first one's entries move behind it.
	view := lm.View{{Block: blocks[0], Len: 19}, {Block: blocks[2], Len: 5}, {Block: blocks[1], Len: 18, Shift: 5}}
	seen := slices.Concat(shared, c, Moved(a[:18], 5))
	into, writing := b.New(), s.tokens(4)
	out := pass(t, b, lm.Span{Tokens: writing, Pos: 42, View: view, Into: into, Want: everything})[0]
	for i, token := range writing {
		hidden, own := s.ref.Row(s.ref.Embedding(token), 42+i, seen)
		seen = append(seen, own)
		close(t, "hidden state over a moved view", out.Hidden[i], hidden)
	}

	// A negative shift, far from 0, on top of what the span's block has already.
	view = lm.View{{Block: blocks[1], Len: 21, Shift: -1000}, {Block: blocks[2], Len: 0, Shift: 7}}
	seen = slices.Concat(Moved(a, -1000), seen[len(seen)-4:])
	out = pass(t, b, lm.Span{Tokens: writing[:1], Pos: 46, View: view, Into: into, At: 4, Want: lm.Want{Hidden: true}})[0]
	hidden, _ := s.ref.Row(s.ref.Embedding(writing[0]), 46, seen)
	close(t, "hidden state over a view moved back", out.Hidden[0], hidden)
}

// entries are the reference's entries of tokens from position pos on, behind what they see.
func (s *suite) entries(tokens []lm.Token, pos int, seen []Entry) []Entry {
	all := slices.Clone(seen)
	for i, token := range tokens {
		_, own := s.ref.Row(s.ref.Embedding(token), pos+i, all)
		all = append(all, own)
	}
	return all[len(seen):]
}

// latent compares latent steps with Eq. 2 written out on the reference, each from the backend's own state before it.
func (s *suite) latent(t *testing.T) {
	b := s.open(t, s.model)
	align, err := lm.Align(context.Background(), s.model, lm.AlignOptions{NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	tokens := [][]lm.Token{s.tokens(7), s.tokens(16)}
	var thoughts []lm.Thought
	var seen [][]Entry
	for _, list := range tokens {
		id := b.New()
		out := pass(t, b, lm.Span{Tokens: list, Into: id, Want: lm.Want{Hidden: true}})[0]
		thoughts = append(thoughts, lm.Thought{Hidden: out.Hidden[0], Pos: len(list), Into: id, At: len(list)})
		seen = append(seen, s.entries(list, 0, nil))
	}
	if states, err := b.Latent(context.Background(), thoughts, 0, nil); err != nil || len(states) != 2 || len(states[0]) != 0 {
		t.Errorf("no steps gave %v, %v", states, err)
	}
	var reported []int
	states, err := b.Latent(context.Background(), thoughts, 5, func(step int) { reported = append(reported, step) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(reported, []int{1, 2, 3, 4, 5}) {
		t.Errorf("steps reported: %v", reported)
	}
	for i, thought := range thoughts {
		before := thought.Hidden
		for step, got := range states[i] {
			hidden, own := s.ref.Row(aligned(align, before), thought.Pos+step, seen[i])
			close(t, fmt.Sprintf("thought %d, step %d", i, step), got, hidden)
			seen[i], before = append(seen[i], own), got
		}
		kv := snapshot(t, b, thought.Into)
		s.checkEntry(t, kv, kv.Len-1, seen[i][len(seen[i])-1])
	}
}

// aligned is Eq. 2 in float64.
func aligned(a *lm.Alignment, hidden []float32) []float64 {
	e := widen(hidden)
	if !a.Tied {
		e = make([]float64, len(hidden))
		for i, h := range hidden {
			for j := range e {
				e[j] += float64(h) * float64(a.W[i*len(e)+j])
			}
		}
	}
	norm := math.Sqrt(dot(e, e))
	for j := range e {
		e[j] *= float64(a.Gamma) / max(norm, 1e-6)
	}
	return e
}

// alone gives each of many ragged spans the bits it has by itself.
func (s *suite) alone(t *testing.T) {
	b := s.open(t, s.model)
	shared := s.block(t, b, 21, 0)
	var spans []lm.Span
	for n := 1; n < 40; n += 3 {
		spans = append(spans, lm.Span{Tokens: s.tokens(n), Pos: 30, View: lm.View{{Block: shared, Len: 21, Shift: n}}, Into: b.New(), Want: everything})
	}
	together := pass(t, b, spans...)
	for i, span := range spans {
		kv := snapshot(t, b, span.Into)
		span.Into = b.New()
		same(t, together[i], pass(t, b, span)[0])
		sameKV(t, kv, snapshot(t, b, span.Into))
	}
	var thoughts []lm.Thought
	for i, span := range spans {
		thoughts = append(thoughts, lm.Thought{Hidden: together[i].Hidden[0], Pos: 90, View: span.View, Into: span.Into, At: len(span.Tokens)})
	}
	states, err := b.Latent(context.Background(), thoughts, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, thought := range thoughts {
		got, err := b.Latent(context.Background(), []lm.Thought{thought}, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		for step := range got[0] {
			if !slices.Equal(got[0][step], states[i][step]) {
				t.Fatalf("thought %d alone differs from step %d on", i, step)
			}
		}
	}
}

func same(t testing.TB, a, b lm.Output) {
	t.Helper()
	for i := range a.Hidden {
		if !slices.Equal(a.Hidden[i], b.Hidden[i]) || !slices.Equal(a.Logits[i], b.Logits[i]) || a.Top[i].LogSum != b.Top[i].LogSum {
			t.Fatalf("row %d of %d differs", i, len(a.Hidden))
		}
	}
	if len(a.Hidden) != len(b.Hidden) || len(a.Top) != len(b.Top) || len(a.Hidden) == 0 {
		t.Fatalf("%d and %d rows", len(a.Hidden), len(b.Hidden))
	}
}

func sameKV(t testing.TB, a, b lm.KV) {
	t.Helper()
	if a.Len != b.Len {
		t.Fatalf("blocks of %d and %d entries", a.Len, b.Len)
	}
	for l := range a.Keys {
		if !slices.Equal(a.Keys[l], b.Keys[l]) || !slices.Equal(a.Values[l], b.Values[l]) {
			t.Fatalf("layer %d of two blocks differs", l)
		}
	}
}

// pieces gives a row the bits it has when its sequence is passed in other pieces: what drafts rely on.
func (s *suite) pieces(t *testing.T) {
	b := s.open(t, s.model)
	tokens, whole := s.tokens(manyTokens), b.New()
	want := pass(t, b, lm.Span{Tokens: tokens, Pos: 5, Into: whole, Want: everything})[0]
	into, at := b.New(), 0
	var got lm.Output
	for _, n := range []int{1, 15, 1, 16, 17, 200, 1, 1, 48} {
		out := pass(t, b, lm.Span{Tokens: tokens[at : at+n], Pos: 5 + at, Into: into, At: at, Want: everything})[0]
		got.Hidden, got.Logits, got.Top = append(got.Hidden, out.Hidden...), append(got.Logits, out.Logits...), append(got.Top, out.Top...)
		at += n
	}
	same(t, want, got)
	sameKV(t, snapshot(t, b, whole), snapshot(t, b, into))
}

func (s *suite) lens(t *testing.T) {
	b := s.open(t, s.model)
	out := pass(t, b, lm.Span{Tokens: s.tokens(40), Into: b.New(), Want: everything})[0]
	rankings, err := b.Lens(context.Background(), out.Hidden, everything.TopK)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rankings {
		if !slices.Equal(r.Tokens, out.Top[i].Tokens) || !slices.Equal(r.Logits, out.Top[i].Logits) || r.LogSum != out.Top[i].LogSum {
			t.Fatalf("row %d: the lens shows %v, the pass %v", i, r, out.Top[i])
		}
	}
	if len(rankings) != 40 {
		t.Fatalf("%d rankings of 40 hidden states", len(rankings))
	}
}

// fork writes to both sides of forks at every place of a page, and neither sees the other.
func (s *suite) fork(t *testing.T) {
	b := s.open(t, s.model)
	tokens := s.tokens(35)
	from := b.New()
	pass(t, b, lm.Span{Tokens: tokens, Into: from})
	before := snapshot(t, b, from)
	for _, n := range []int{0, 1, 15, 16, 17, 32, 35} {
		fork, err := b.Fork(from, n)
		if err != nil {
			t.Fatal(err)
		}
		more, plain := s.tokens(20), b.New()
		pass(t, b, lm.Span{Tokens: more, Pos: n, Into: fork, At: n})
		pass(t, b, lm.Span{Tokens: slices.Concat(tokens[:n], more), Into: plain})
		forked := snapshot(t, b, fork)
		sameKV(t, snapshot(t, b, plain), forked)
		sameKV(t, before, snapshot(t, b, from))
		pass(t, b, lm.Span{Tokens: s.tokens(3), Pos: 35, Into: from, At: 35})
		sameKV(t, forked, snapshot(t, b, fork))
		again, err := b.Fork(from, 35)
		if err != nil {
			t.Fatal(err)
		}
		b.Free(from, plain)
		sameKV(t, forked, snapshot(t, b, fork))
		sameKV(t, before, snapshot(t, b, again))
		b.Free(fork)
		from = again
	}
	b.Free(from)
	if held := b.Stats().BlockBytes; held != 0 {
		t.Errorf("%d bytes held after every block was freed", held)
	}
}

// truncate writes into the middle of a block: what came after is gone, what came before stays.
func (s *suite) truncate(t *testing.T) {
	b := s.open(t, s.model)
	tokens := s.tokens(40)
	for _, at := range []int{0, 1, 16, 23, 39} {
		id, want := b.New(), b.New()
		pass(t, b, lm.Span{Tokens: tokens, Into: id})
		other := s.tokens(2)
		pass(t, b, lm.Span{Tokens: other, Pos: at, Into: id, At: at})
		pass(t, b, lm.Span{Tokens: append(slices.Clone(tokens[:at]), other...), Into: want})
		sameKV(t, snapshot(t, b, want), snapshot(t, b, id))
	}
}

// cancel stops a pass and latent steps: every block is as before, and the backend goes on.
func (s *suite) cancel(t *testing.T) {
	b := s.open(t, s.model)
	id := s.block(t, b, 23, 0)
	before := snapshot(t, b, id)
	ctx, stop := context.WithCancel(context.Background())
	hidden := pass(t, b, lm.Span{Tokens: s.tokens(1), Into: b.New(), Want: lm.Want{Hidden: true}})[0].Hidden[0]
	held := b.Stats().BlockBytes
	_, err := b.Latent(ctx, []lm.Thought{{Hidden: hidden, Pos: 11, Into: id, At: 11}}, 9, func(step int) {
		if step == 3 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled latent steps gave %v", err)
	}
	sameKV(t, before, snapshot(t, b, id))
	if _, err := b.Pass(ctx, []lm.Span{{Tokens: s.tokens(30), Pos: 4, Into: id, At: 4}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled pass gave %v", err)
	}
	sameKV(t, before, snapshot(t, b, id))
	if now := b.Stats().BlockBytes; now != held {
		t.Errorf("%d bytes held, %d before the cancelled calls", now, held)
	}
	pass(t, b, lm.Span{Tokens: s.tokens(2), Pos: 23, Into: id, At: 23})
}

// errors are the refused calls: each says ErrNoBlock or ErrBadSpan and changes nothing.
func (s *suite) errors(t *testing.T) {
	b := s.open(t, s.model)
	id, other, freed := s.block(t, b, 20, 0), s.block(t, b, 3, 0), b.New()
	b.Free(freed)
	one, width := s.tokens(1), s.model.Config.Width
	before := snapshot(t, b, id)
	for name, bad := range map[string]struct {
		want  error
		spans []lm.Span
	}{
		"no rows":                 {lm.ErrBadSpan, []lm.Span{{Into: id}}},
		"tokens and embeddings":   {lm.ErrBadSpan, []lm.Span{{Tokens: one, Embeds: make([]float32, width), Into: id}}},
		"half an embedding":       {lm.ErrBadSpan, []lm.Span{{Embeds: make([]float32, width+1), Into: id}}},
		"token too large":         {lm.ErrBadSpan, []lm.Span{{Tokens: []lm.Token{lm.Token(s.model.Config.Vocab)}, Into: id}}},
		"negative token":          {lm.ErrBadSpan, []lm.Span{{Tokens: []lm.Token{-1}, Into: id}}},
		"negative position":       {lm.ErrBadSpan, []lm.Span{{Tokens: one, Pos: -1, Into: id}}},
		"negative TopK":           {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id, Want: lm.Want{TopK: -1}}}},
		"At too large":            {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id, At: 21}}},
		"negative At":             {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id, At: -1}}},
		"view too long":           {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id, View: lm.View{{Block: other, Len: 4}}}}},
		"view of negative length": {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id, View: lm.View{{Block: other, Len: -1}}}}},
		"two writers":             {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id}, {Tokens: one, Into: id}}},
		"reader of a writer":      {lm.ErrBadSpan, []lm.Span{{Tokens: one, Into: id}, {Tokens: one, Into: other, View: lm.View{{Block: id, Len: 1}}}}},
		"no block":                {lm.ErrNoBlock, []lm.Span{{Tokens: one}}},
		"freed block":             {lm.ErrNoBlock, []lm.Span{{Tokens: one, Into: freed}}},
		"freed block in a view":   {lm.ErrNoBlock, []lm.Span{{Tokens: one, Into: id, View: lm.View{{Block: freed}}}}},
		"second span bad":         {lm.ErrNoBlock, []lm.Span{{Tokens: one, Into: id, At: 3}, {Tokens: one, Into: freed}}},
	} {
		if _, err := b.Pass(context.Background(), bad.spans); !errors.Is(err, bad.want) {
			t.Errorf("%s: %v, want %v", name, err, bad.want)
		}
		sameKV(t, before, snapshot(t, b, id))
	}
	if _, err := b.Fork(id, 21); !errors.Is(err, lm.ErrBadSpan) {
		t.Errorf("Fork of too many entries: %v", err)
	}
	if _, err := b.Fork(freed, 0); !errors.Is(err, lm.ErrNoBlock) {
		t.Errorf("Fork of a freed block: %v", err)
	}
	if _, err := b.Snapshot(freed); !errors.Is(err, lm.ErrNoBlock) {
		t.Errorf("Snapshot of a freed block: %v", err)
	}
	if _, err := b.Lens(context.Background(), [][]float32{make([]float32, width-1)}, 1); !errors.Is(err, lm.ErrBadSpan) {
		t.Errorf("Lens of a short state: %v", err)
	}
	if _, err := b.Latent(context.Background(), []lm.Thought{{Hidden: make([]float32, width+1), Into: id}}, 1, nil); !errors.Is(err, lm.ErrBadSpan) {
		t.Errorf("Latent with a long state: %v", err)
	}
	nan := make([]float32, width)
	nan[2] = float32(math.NaN())
	if _, err := b.Pass(context.Background(), []lm.Span{{Embeds: nan, Into: id, At: 20, Want: lm.Want{TopK: 1}}}); err == nil {
		t.Error("logits of a NaN were ranked")
	}
	if _, err := b.Lens(context.Background(), [][]float32{nan}, 1); err == nil {
		t.Error("the lens ranked a NaN")
	}
	sameKV(t, before, snapshot(t, b, id))
}
