package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/lmtest"
)

var errFault = errors.New("no power")

// faulty is a backend that fails once, at a given call that computes.
type faulty struct {
	lm.Backend
	calls, failAt int    // failAt 0: never
	stop          func() // called instead of failing
}

func (b *faulty) fault() error {
	b.calls++
	if b.calls != b.failAt {
		return nil
	}
	if b.stop != nil {
		b.stop()
		return nil
	}
	return errFault
}

func (b *faulty) Pass(ctx context.Context, spans []lm.Span) ([]lm.Output, error) {
	if err := b.fault(); err != nil {
		return nil, err
	}
	return b.Backend.Pass(ctx, spans)
}

func (b *faulty) Latent(ctx context.Context, thoughts []lm.Thought, steps int, done func(int)) ([][][]float32, error) {
	if err := b.fault(); err != nil {
		return nil, err
	}
	return b.Backend.Latent(ctx, thoughts, steps, done)
}

// faultyFixture is a search whose backend can be made to fail.
func faultyFixture(t *testing.T, m *lm.Model) (*fixture, *faulty) {
	num := small
	num.NewTokens, num.TuneTokens = 3, 2
	f := beginWith(t, m, t.TempDir(), Options{Seed: 4, Numbers: num}, nil)
	b := &faulty{Backend: f.Search.backend.Backend}
	f.Search.backend.Backend = b
	return f, b
}

// TestFaultsLeaveNoBlocks fails and cancels a round at every single pass, goes on, and ends with the texts and the cache
// of a round that was never disturbed.
func TestFaultsLeaveNoBlocks(t *testing.T) {
	m := lmtest.Tiny(t)
	plain, counter := faultyFixture(t, m)
	want := must[*Round](t)(plain.Next(t.Context()))
	noError(t, want.Run(t.Context()))
	held, calls := plain.Stats().BlockBytes, counter.calls
	for at := 1; at <= calls; at++ {
		for _, cancelled := range []bool{false, true} {
			f, b := faultyFixture(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			b.failAt, b.stop = at, map[bool]func(){true: cancel}[cancelled]
			r := must[*Round](t)(f.Next(t.Context()))
			if err := r.Run(ctx); !errors.Is(err, errFault) && !errors.Is(err, context.Canceled) {
				t.Fatalf("call %d, cancelled %v: %v", at, cancelled, err)
			}
			cancel()
			noError(t, r.Run(t.Context()))
			if got := f.Stats().BlockBytes; got != held {
				t.Errorf("call %d, cancelled %v: %d bytes of blocks, %d without the fault", at, cancelled, got, held)
			}
			if !slices.Equal(texts(r), texts(want)) {
				t.Errorf("call %d, cancelled %v: other texts", at, cancelled)
			}
		}
	}
}

// TestMemoryOverRounds searches for many rounds with looks back at old ones: the cache does not grow.
func TestMemoryOverRounds(t *testing.T) {
	n := 0
	f := begin(t, t.TempDir(), Options{Numbers: small}, func(int) string { n++; return program(1 + float64(n)/1000) })
	var most int64
	for i := range 24 {
		noError(t, f.RunRounds(t.Context(), 1))
		if old := f.Rounds()[i/2]; i%5 == 0 {
			must[*Answer](t)(old.swarms[0].agents[0].Ask(t.Context(), "What was it?"))
		}
		if held := f.Stats().BlockBytes; i < 12 {
			most = max(most, held)
		} else if held > most+most/4 {
			t.Fatalf("round %d holds %d bytes of blocks, the first 12 at most %d", i+1, held, most)
		}
	}
}

// TestReasonAgainCancelled: a swarm whose second Reason was cancelled behind its prompts has the latent steps of its first.
func TestReasonAgainCancelled(t *testing.T) {
	m := lmtest.Tiny(t)
	f, b := faultyFixture(t, m)
	r := written(t, f, nil)
	want := texts(r)
	for at := 1; at <= 3; at++ {
		b.calls, b.failAt = 0, at
		if err := r.swarms[0].Reason(t.Context()); !errors.Is(err, errFault) {
			t.Fatalf("call %d: %v", at, err)
		}
		for _, sw := range r.swarms {
			noError(t, sw.Write(t.Context()))
		}
		if !slices.Equal(texts(r), want) {
			t.Fatalf("after a Reason that failed at call %d the same views give other texts", at)
		}
	}
}

// TestOtherBranchPushesParentsOut: a round that has read its prompts reasons the same when a round of another branch was
// formed in between.
func TestOtherBranchPushesParentsOut(t *testing.T) {
	hidden := func(between func(f *fixture, fork *Round)) [][]float32 {
		n := 0
		f := begin(t, t.TempDir(), Options{Numbers: small}, func(int) string { n++; return program(1 + float64(n)/1000) })
		r := must[*Round](t)(f.Next(t.Context()))
		fork := must[*Round](t)(r.Fork(t.Context(), "side"))
		noError(t, f.RunRounds(t.Context(), 2))
		r = must[*Round](t)(f.Next(t.Context()))
		noError(t, r.Read(t.Context()))
		between(f, fork)
		noError(t, r.Reason(t.Context()))
		h, _ := latent(r)
		return h
	}
	want := hidden(func(*fixture, *Round) {})
	got := hidden(func(f *fixture, fork *Round) {
		noError(t, fork.Run(t.Context()))
		must[*Round](t)(f.NextOn(t.Context(), "side"))
	})
	if !slices.EqualFunc(want, got, slices.Equal) {
		t.Error("other hidden states after another branch went on")
	}
}

// TestEditsForgetWhatTheyMakeUntrue: what an edit makes untrue is no longer shown, and asking needs the stage again.
func TestEditsForgetWhatTheyMakeUntrue(t *testing.T) {
	num := small
	num.NewTokens = 6
	f := begin(t, t.TempDir(), Options{Numbers: num}, nil)
	r := written(t, f, nil)
	sw := r.swarms[0]
	kept := sw.Kept()
	noError(t, sw.Drop(kept[0]))
	noError(t, sw.SetKept(kept...))
	if !slices.Equal(sw.Kept(), kept) || sw.View() != nil {
		t.Errorf("after SetKept(%v): kept %v, view %v", kept, sw.Kept(), sw.View())
	}
	noError(t, sw.SetFocus("Another thing"))
	if sw.Kept() != nil || sw.View() != nil || sw.agents[0].Trajectory() != nil {
		t.Error("a swarm with a new focus shows what came of the old one")
	}
	if _, err := sw.agents[0].Ask(t.Context(), "?"); !errors.Is(err, ErrStage) {
		t.Errorf("asked with a new focus and no thoughts: %v", err)
	}
	if _, err := sw.agents[0].Thoughts(); !errors.Is(err, ErrStage) {
		t.Errorf("thoughts of the old focus: %v", err)
	}
	for _, bad := range []int{0, -1} {
		if err := r.Write(t.Context(), bad); err == nil {
			t.Errorf("Write of %d samples", bad)
		}
	}
}

// TestSwarmsAtDifferentStagesReopen: each swarm comes back with what it has.
func TestSwarmsAtDifferentStagesReopen(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	num := small
	num.NewTokens = 6
	f := beginWith(t, m, dir, Options{Numbers: num}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.swarms[1].Reason(t.Context()))
	noError(t, r.swarms[2].Reason(t.Context()))
	noError(t, r.swarms[2].Filter(t.Context()))
	noError(t, r.swarms[2].Write(t.Context()))
	want := fmt.Sprint(r.swarms[1].means(), r.swarms[2].means())
	noError(t, f.store.Close())
	again := beginWith(t, m, dir, Options{}, nil)
	r = must[*Round](t)(again.Next(t.Context()))
	if got := fmt.Sprint(r.swarms[1].means(), r.swarms[2].means()); got != want {
		t.Error("other means after opening again")
	}
	noError(t, r.swarms[1].Filter(t.Context()))
	noError(t, r.Run(t.Context()))
}

func TestAskLeavesNoTrace(t *testing.T) {
	num := small
	num.NewTokens = 30
	m := lmtest.Tiny(t)
	plain := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 9, Numbers: num}, nil), nil)
	f := beginWith(t, m, t.TempDir(), Options{Seed: 9, Numbers: num}, nil)
	asked := written(t, f, func(r *Round) {
		a := r.swarms[0].agents[2]
		before := must[lm.KV](t)(f.Search.backend.Snapshot(a.kv.block))
		answer := must[*Answer](t)(a.Ask(t.Context(), "What?"))
		if again := must[*Answer](t)(a.Ask(t.Context(), "What?")); again.Text != answer.Text {
			t.Errorf("asked twice: %q, %q", answer.Text, again.Text)
		}
		after := must[lm.KV](t)(f.Search.backend.Snapshot(a.kv.block))
		if before.Len != after.Len || !slices.EqualFunc(before.Keys, after.Keys, slices.Equal) {
			t.Error("asking changed the agent's keys")
		}
	})
	if !slices.Equal(texts(plain), texts(asked)) {
		t.Error("asking changed what the swarms write")
	}
}
