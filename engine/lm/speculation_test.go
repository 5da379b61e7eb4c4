package lm_test

import (
	"slices"
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/cpu"
	"skep/engine/lm/lmtest"
)

const program = `import numpy as np

def construct(n=26):
    side = int(np.ceil(np.sqrt(n)))
    centers = np.array([((i % side + 0.5) / side, (i // side + 0.5) / side) for i in range(n)])
    radii = np.full(n, 0.5 / side)
    return centers, radii
`

// TestDraftsLeaveARealModelsTextAlone writes the same texts with and without drafts, together and alone, greedy and
// drawn: a real model rewriting a program copies much of it, so that drafts are accepted and rejected often.
func TestDraftsLeaveARealModelsTextAlone(t *testing.T) {
	m, err := lm.Open(lmtest.SmolLM(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	source := m.Tokenizer.Encode(program)
	prompt := slices.Concat(m.Chat.System("You improve programs."), m.Chat.UserOpen(), source,
		m.Tokenizer.Encode("\nRepeat this program with a docstring."), m.Chat.UserClose(), m.Chat.AssistantOpen())
	var results [][]lm.Generation
	for _, how := range []struct{ drafts, together bool }{{true, true}, {false, true}, {true, false}} {
		b, err := cpu.New(m, cpu.Options{})
		if err != nil {
			t.Fatal(err)
		}
		streams := make([]lm.Stream, 3)
		for i := range streams {
			streams[i] = lm.Stream{
				Prompt:   lm.Span{Tokens: prompt, Into: b.New()},
				Sampling: lm.Sampling{Temperature: 0.4 * float64(i), TopP: 0.95, TopK: 20, MaxNew: 60},
				Key:      lm.Key{Run: 5, Swarm: uint64(i)},
			}
			if how.drafts {
				streams[i].Draft = lm.NewDrafter(source)
			}
		}
		results = append(results, decode(t, lm.Decoder{Backend: b, Text: m.Tokenizer, RowCost: -1}, streams, how.together))
	}
	accepted, rejected := 0, 0
	for i, with := range results[0] {
		if with.Text != results[1][i].Text || with.Reason != results[1][i].Reason {
			t.Errorf("stream %d differs with drafts:\n%q\nwithout:\n%q", i, with.Text, results[1][i].Text)
		}
		if with.Text != results[2][i].Text {
			t.Errorf("stream %d differs beside others:\n%q\nalone:\n%q", i, with.Text, results[2][i].Text)
		}
		accepted += with.Accepted
		rejected += with.Drafted - with.Accepted
	}
	if accepted < 20 || rejected < 20 {
		t.Errorf("%d drafts accepted and %d rejected: the test saw too little speculation", accepted, rejected)
	}
	t.Logf("%d drafts accepted, %d rejected", accepted, rejected)
}

// decode runs streams in one batch or one after the other.
func decode(t *testing.T, d lm.Decoder, streams []lm.Stream, together bool) []lm.Generation {
	t.Helper()
	batches := [][]lm.Stream{streams}
	if !together {
		batches = slices.Collect(slices.Chunk(streams, 1))
	}
	var all []lm.Generation
	for _, batch := range batches {
		written, err := d.Run(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, written...)
	}
	return all
}
