package cpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
	"skep/engine/lm/lmtest"
)

// open makes a backend whose freed pages are poisoned.
func open(t testing.TB, m *lm.Model, o Options) *Backend {
	t.Helper()
	b, err := New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	b.blocks.poison = true
	return b
}

// TestBackend runs the common suite with every instruction set of this machine.
func TestBackend(t *testing.T) {
	for _, set := range vec.Names() {
		t.Run(set, func(t *testing.T) {
			lmtest.Backend(t, func(t testing.TB, m *lm.Model) lm.Backend { return open(t, m, Options{Threads: 2, Set: set}) })
		})
	}
}

// config is the shape of the models below.
var config = lm.Config{Arch: "qwen3", Layers: 2, Width: 40, Heads: 6, KVHeads: 2, HeadDim: 12, FFN: 70, RopeTheta: 1e6}

// results passes a few ragged spans and takes latent steps; everything that comes out is returned.
func results(t *testing.T, b *Backend) (out []lm.Output, states [][][]float32, kv []lm.KV) {
	want := lm.Want{All: true, Hidden: true, Logits: true, TopK: 3}
	var spans []lm.Span
	for i, n := range []int{70, 1, 16, 5} {
		tokens := make([]lm.Token, n)
		for j := range tokens {
			tokens[j] = lm.Token((7*i + 3*j) % b.config.Vocab)
		}
		spans = append(spans, lm.Span{Tokens: tokens, Into: b.New(), Want: want})
	}
	out, err := b.Pass(context.Background(), spans)
	if err != nil {
		t.Fatal(err)
	}
	var thoughts []lm.Thought
	for i, s := range spans {
		hidden := out[i].Hidden
		thoughts = append(thoughts, lm.Thought{Hidden: hidden[len(hidden)-1], Pos: len(hidden), Into: s.Into, At: len(hidden)})
	}
	if states, err = b.Latent(context.Background(), thoughts, 3, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range spans {
		snap, err := b.Snapshot(s.Into)
		if err != nil {
			t.Fatal(err)
		}
		kv = append(kv, snap)
	}
	return out, states, kv
}

// TestInvariance gives the same bits for any number of threads, any chunk and either assembly.
func TestInvariance(t *testing.T) {
	m := lmtest.Random(t, config, lm.F32)
	out, states, kv := results(t, open(t, m, Options{Threads: 1}))
	for _, set := range vec.Names() {
		for _, threads := range []int{1, 2, 3} {
			for _, rows := range []int{1, 7, 16, maxRows} {
				if set == "portable" && vec.Names()[0] != set {
					continue // portable Go may round twice where assembly rounds once
				}
				b := open(t, m, Options{Threads: threads, Set: set})
				b.rows = rows
				gotOut, gotStates, gotKV := results(t, b)
				for i := range out {
					for r := range out[i].Hidden {
						if !slices.Equal(out[i].Hidden[r], gotOut[i].Hidden[r]) || !slices.Equal(out[i].Logits[r], gotOut[i].Logits[r]) {
							t.Fatalf("%s, %d threads, chunks of %d: row %d of span %d differs", set, threads, rows, r, i)
						}
					}
					for step := range states[i] {
						if !slices.Equal(states[i][step], gotStates[i][step]) {
							t.Fatalf("%s, %d threads, chunks of %d: step %d of thought %d differs", set, threads, rows, step, i)
						}
					}
					for l := range kv[i].Keys {
						if !slices.Equal(kv[i].Keys[l], gotKV[i].Keys[l]) || !slices.Equal(kv[i].Values[l], gotKV[i].Values[l]) {
							t.Fatalf("%s, %d threads, chunks of %d: layer %d of block %d differs", set, threads, rows, l, i)
						}
					}
				}
			}
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	m := lmtest.Random(t, config, lm.F32)
	small := newBlocks(m.Config, 0)
	page := int64(small.pageFloats * 4)
	b := open(t, m, Options{MaxBytes: 3*page + page/2})
	id := b.New()
	pass := func(n, at int) error {
		_, err := b.Pass(context.Background(), []lm.Span{{Tokens: make([]lm.Token, n), Pos: at, Into: id, At: at}})
		return err
	}
	if err := pass(49, 0); !errors.Is(err, lm.ErrOutOfMemory) || !strings.Contains(err.Error(), "about 48 tokens fit") {
		t.Fatalf("49 tokens on 3 pages: %v", err)
	}
	if held := b.Stats().BlockBytes; held != 0 {
		t.Fatalf("%d bytes held after a refused pass", held)
	}
	if err := pass(48, 0); err != nil {
		t.Fatal(err)
	}
	if err := pass(1, 48); !errors.Is(err, lm.ErrOutOfMemory) {
		t.Fatalf("a 49th token on 3 pages: %v", err)
	}
	if got := b.Stats().PeakBytes; got != 3*page {
		t.Errorf("peak of %d bytes, want %d", got, 3*page)
	}
	if _, err := b.Latent(context.Background(), []lm.Thought{{Hidden: make([]float32, config.Width), Pos: 48, Into: id, At: 48}}, 1, nil); !errors.Is(err, lm.ErrOutOfMemory) {
		t.Errorf("a latent step without room: %v", err)
	}
	b.Free(id)
	id = b.New()
	if err := pass(48, 0); err != nil {
		t.Errorf("after Free: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	m := lmtest.Random(t, config, lm.F32)
	for name, o := range map[string]Options{
		"threads": {Threads: -1}, "bytes": {MaxBytes: -1}, "set": {Set: "mmx"},
	} {
		if _, err := New(m, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	b := open(t, m, Options{Alignment: &lm.Alignment{W: make([]float32, 4)}})
	thought := lm.Thought{Hidden: make([]float32, config.Width), Into: b.New()}
	if _, err := b.Latent(context.Background(), []lm.Thought{thought}, 1, nil); err == nil || !strings.Contains(err.Error(), "another model") {
		t.Errorf("an alignment of another model: %v", err)
	}
}
