package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"skep/engine/lm/lmtest"
)

// TestForkAtEveryStage forks a round behind each stage, forks the fork, runs all of them to the end in another order, and
// gets the same texts each time; the main branch knows nothing of it, also after opening again.
func TestForkAtEveryStage(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	num := small
	num.NewTokens, num.TuneTokens = 6, 4
	f := beginWith(t, m, dir, Options{Seed: 2, Numbers: num}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	forks := []*Round{must[*Round](t)(r.Fork(t.Context(), ""))}
	for _, step := range []func(context.Context) error{r.Read, r.Reason, r.Filter, r.Transfer, func(ctx context.Context) error { return r.Write(ctx) }, r.Tune, r.Evaluate, r.Commit} {
		noError(t, step(t.Context()))
		fork := must[*Round](t)(r.Fork(t.Context(), ""))
		if want := min(r.Stage(), Evaluated); fork.Stage() != want {
			t.Errorf("a fork of a round that is %s is %s", r.Stage(), fork.Stage())
		}
		forks = append(forks, fork, must[*Round](t)(fork.Fork(t.Context(), "")))
	}
	noError(t, f.RunRounds(t.Context(), 1))
	for _, fork := range slices.Backward(forks) {
		noError(t, fork.Run(t.Context()))
		if !slices.Equal(texts(fork), texts(r)) {
			t.Errorf("%s: other texts than the round it was forked from", fork.Branch())
		}
	}
	main := ids(f.Programs())
	names := f.branchNames()
	noError(t, f.store.Close())
	f = beginWith(t, m, dir, Options{}, nil)
	if got := ids(f.Programs()); !slices.Equal(got, main) {
		t.Errorf("opened again the main branch has programs %v, had %v", got, main)
	}
	if !slices.Equal(f.branchNames(), names) {
		t.Errorf("branches %v, had %v", f.branchNames(), names)
	}
	for _, name := range names {
		if next := must[*Round](t)(f.NextOn(t.Context(), name)); name != "main" && next.Number() != 2 {
			t.Errorf("branch %s goes on with round %d", name, next.Number())
		}
	}
	if _, err := r.Fork(t.Context(), "../x"); err == nil {
		t.Error("a branch with a slash")
	}
}

// TestForkKnowsWhatLagHides: the draws of a round lag behind; the branch that a fork makes of it does not lose the rounds in
// between, live and opened again.
func TestForkKnowsWhatLagHides(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	num := small
	num.Lag = 1
	n := 0
	say := func(int) string { n++; return program(float64(n)) }
	f := beginWith(t, m, dir, Options{Numbers: num}, say)
	noError(t, f.RunRounds(t.Context(), 2))
	r := must[*Round](t)(f.Next(t.Context()))
	if len(r.archive) >= len(f.Programs()) {
		t.Fatalf("round 3 sees %d of %d programs with a lag of 1", len(r.archive), len(f.Programs()))
	}
	fork := must[*Round](t)(r.Fork(t.Context(), "side"))
	want := ids(f.branches["side"].archive)
	if len(want) != len(f.Programs()) {
		t.Errorf("the fork's branch knows %d programs of %d", len(want), len(f.Programs()))
	}
	noError(t, fork.Run(t.Context()))
	history := f.branches["side"].history
	again := must[*Round](t)(fork.Fork(t.Context(), "of-a-fork"))
	noError(t, f.store.Close())
	f = beginWith(t, m, dir, Options{}, say)
	if got := f.branches["side"].history; !slices.Equal(got, history) || len(history) != 3 {
		t.Errorf("refinements of the fork %v, were %v", got, history)
	}
	if got := f.branches["of-a-fork"]; !slices.Equal(ids(got.archive), want) || !slices.Equal(got.open.history, again.history) || len(again.history) != 2 {
		t.Errorf("the fork of a fork knows %v and %v, knew %v and %v", ids(got.archive), got.open.history, want, again.history)
	}
}

// TestNoVerdictFromAnotherBranch: a fork evaluated before its round gives it no verdicts, also not through a reopening.
func TestNoVerdictFromAnotherBranch(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	f := beginWith(t, m, dir, Options{Numbers: small}, dictated(2, 3, 4, 5))
	r := ready(t, f)
	fork := must[*Round](t)(r.Fork(t.Context(), "side"))
	noError(t, fork.Evaluate(t.Context()))
	noError(t, f.store.Close())
	f = beginWith(t, m, dir, Options{}, nil)
	if got := must[*Round](t)(f.Next(t.Context())).programs(); len(got) > 0 {
		t.Errorf("the round took over %v from the fork", ids(got))
	}
	if got := must[*Round](t)(f.NextOn(t.Context(), "side")).programs(); len(got) != 4 {
		t.Errorf("the fork has %v", ids(got))
	}
}

// TestAdoptsWhatWasJudged: programs that were judged before the process died are taken, in place, with their replicates.
func TestAdoptsWhatWasJudged(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	num := small
	num.Samples = 2
	f := beginWith(t, m, dir, Options{Numbers: num}, dictated(2, 2, 3, 4, 5, 6, 7, 8))
	f.parallel = 1
	r := ready(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	judgedSoFar := 0
	ctx = WithSink(ctx, sinkFunc(func(e Event) {
		if e.Stage == "evaluate" {
			if judgedSoFar++; judgedSoFar == 5 {
				cancel()
			}
		}
	}))
	if err := r.Evaluate(ctx); err == nil {
		t.Fatal("not cancelled")
	}
	want := r.programs()
	noError(t, f.store.Close())
	f = beginWith(t, m, dir, Options{}, dictated())
	r = must[*Round](t)(f.Next(t.Context()))
	got := r.programs()
	if !slices.Equal(ids(got), ids(want)) || len(got) < 4 {
		t.Errorf("took %v, had %v", ids(got), ids(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i].Replicate != want[i].Replicate || got[i].DuplicateOf != want[i].DuplicateOf {
			t.Errorf("program %d: replicate %d, duplicate of %d; had %d, %d", got[i].ID, got[i].Replicate, got[i].DuplicateOf, want[i].Replicate, want[i].DuplicateOf)
		}
	}
	noError(t, r.Run(t.Context()))
	if f.Best().Value != 8 || !strings.Contains(f.Standing(), "1 rounds") {
		t.Errorf("%s", f.Standing())
	}
}
