package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"skep/engine/judge"
	"skep/engine/lm/lmtest"
	"skep/problems"
)

// judged is a judge that a test dictates: say sees the n-th evaluation (from 1) and the toy judge's result.
type judged struct {
	toyJudge
	mu   sync.Mutex
	n    int
	told []string // programs that got a result
	say  func(n int, code string, r judge.Result) (judge.Result, error)
}

func (j *judged) Evaluate(ctx context.Context, p problems.Problem, code string) (judge.Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	r, err := j.toyJudge.Evaluate(ctx, p, code)
	if err != nil {
		return r, err
	}
	if r, err = j.say(j.n, code, r); err == nil {
		j.told = append(j.told, code)
	}
	return r, err
}

// dictated says one program after the other, then nothing of use.
func dictated(values ...float64) func(int) string {
	return func(n int) string {
		if n < len(values) {
			return program(values[n])
		}
		return "nothing\n"
	}
}

// ready is a round that waits for Evaluate.
func ready(t *testing.T, f *fixture) *Round {
	t.Helper()
	return written(t, f, nil)
}

// TestJudgeFaultLosesNothing fails the judge at each program: the others are in the store all the same, and calling again
// goes on without judging them twice.
func TestJudgeFaultLosesNothing(t *testing.T) {
	m := lmtest.Tiny(t)
	for at := 1; at <= 5; at++ {
		f := beginWith(t, m, t.TempDir(), Options{Numbers: small}, dictated(2, 3, 4, 5))
		f.parallel = 1
		broken := &judged{say: func(n int, _ string, r judge.Result) (judge.Result, error) {
			if n == at {
				return judge.Result{}, errFault
			}
			return r, nil
		}}
		f.evaluator = broken
		r := ready(t, f)
		if err := r.Evaluate(t.Context()); !errors.Is(err, errFault) {
			t.Fatalf("a fault of the judge at %d gave %v", at, err)
		}
		if r.Stage() == Evaluated {
			t.Error("evaluated in spite of the fault")
		}
		done := len(r.programs())
		rows := must[[]any](t)(programRows(t, f))
		if len(rows) != done+1 || done < at-1 && at < 5 {
			t.Errorf("fault at %d: %d programs in the store, %d in the round", at, len(rows), done)
		}
		noError(t, r.Run(t.Context()))
		if best := f.Best(); best.Value != 5 || best.Repeats != 1 {
			t.Errorf("fault at %d: best %v, evaluated %d times more", at, best.Value, best.Repeats)
		}
		for code, n := range counts(broken.told) {
			if n > 2 || n == 2 && !strings.Contains(code, "VALUE = 5") {
				t.Errorf("fault at %d: judged %d times:\n%s", at, n, code)
			}
		}
	}
}

func counts(list []string) map[string]int {
	n := map[string]int{}
	for _, s := range list {
		n[s]++
	}
	return n
}

func programRows(t *testing.T, f *fixture) (rows []any, err error) {
	t.Helper()
	list, err := f.store.Programs(t.Context())
	for _, p := range list {
		rows = append(rows, p)
	}
	return rows, err
}

// TestJudgeWithoutOutcome: a judge that says nothing is a fault, not a program without a verdict.
func TestJudgeWithoutOutcome(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, dictated(2, 3, 4, 5))
	f.evaluator = &judged{say: func(int, string, judge.Result) (judge.Result, error) { return judge.Result{}, nil }}
	r := ready(t, f)
	if err := r.Evaluate(t.Context()); err == nil || r.Stage() == Evaluated {
		t.Errorf("no outcome: %v, stage %s", err, r.Stage())
	}
}

// TestDuplicateNamesItsOriginal: whatever the judge's order, a duplicate names the program it repeats.
func TestDuplicateNamesItsOriginal(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, dictated(3, 3, 6, 3))
	r := ready(t, f)
	noError(t, r.Evaluate(t.Context()))
	want := []int64{0, 2, 0, 2}
	for i, sw := range r.swarms {
		if p := sw.Summary().Program; p.DuplicateOf != want[i] || (want[i] > 0) != strings.HasPrefix(p.Message, "the same as program") {
			t.Errorf("swarm %d: duplicate of %d, want %d: %q", i, p.DuplicateOf, want[i], p.Message)
		}
	}
}

// TestDuplicateOfWhatIsGone: when the first of two equal programs is written anew, the second gets a verdict of its own.
func TestDuplicateOfWhatIsGone(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, dictated(7, 7, 2, 3, 1, 1, 4))
	r := ready(t, f)
	noError(t, r.Evaluate(t.Context()))
	seen := r.swarms[1].Summary()
	if seen.Program.Outcome != problems.Duplicate {
		t.Fatalf("the second 7 is %s", seen.Program.Outcome)
	}
	noError(t, r.swarms[0].SetTemperature(1))
	noError(t, r.swarms[0].Write(t.Context()))
	noError(t, r.swarms[0].Evaluate(t.Context()))
	if err := r.Commit(t.Context()); !errors.Is(err, ErrStage) {
		t.Errorf("committed with a duplicate of nothing: %v", err)
	}
	noError(t, r.Run(t.Context()))
	if best := f.Best(); best.Value != 7 || best.Swarm != 1 {
		t.Errorf("best is %v of swarm %d; the 7 of swarm 1 is no duplicate any more", best.Value, best.Swarm)
	}
	if seen.Program.Outcome != problems.Duplicate {
		t.Error("a summary that was read has changed")
	}
}

// TestReproduction: a new best is run again; the worse value ranks, and the next best has its turn.
func TestReproduction(t *testing.T) {
	for name, c := range map[string]struct {
		again func(code string, r judge.Result) judge.Result
		best  float64
	}{
		"same":   {func(_ string, r judge.Result) judge.Result { return r }, 5},
		"worse":  {func(_ string, r judge.Result) judge.Result { return worth(r, 2.5) }, 4},
		"fails":  {func(string, judge.Result) judge.Result { return judge.Result{Outcome: problems.Exception} }, 4},
		"higher": {func(_ string, r judge.Result) judge.Result { return worth(r, 9) }, 5},
	} {
		f := begin(t, t.TempDir(), Options{Numbers: small}, dictated(2, 5, 4, 3))
		seen := map[string]bool{}
		f.evaluator = &judged{say: func(_ int, code string, r judge.Result) (judge.Result, error) {
			if seen[code] && strings.Contains(code, "VALUE = 5") {
				return c.again(code, r), nil
			}
			seen[code] = true
			return r, nil
		}}
		noError(t, f.RunRounds(t.Context(), 1))
		if best := f.Best(); best.Value != c.best || best.Repeats != 1 {
			t.Errorf("%s: best %v after %d more runs, want %v", name, best.Value, best.Repeats, c.best)
		}
	}
}

func worth(r judge.Result, v float64) judge.Result {
	score := v / 10
	r.Verdict.Value, r.Verdict.Numbers.SearchScore = &v, &score
	return r
}

// TestAcceptPolicy: what the policy refuses does not rank, also after opening again; a panic of it is an error.
func TestAcceptPolicy(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	o := Options{Numbers: small, Policies: Policies{Accept: func(p *Program) bool { return p.Value < 4 }}}
	f := beginWith(t, m, dir, o, dictated(2, 5, 3, 4))
	noError(t, f.RunRounds(t.Context(), 1))
	if f.Best().Value != 3 {
		t.Errorf("best %v, want 3", f.Best().Value)
	}
	noError(t, f.store.Close())
	if again := beginWith(t, m, dir, o, nil); again.Best().Value != 3 {
		t.Errorf("opened again: best %v, want 3", again.Best().Value)
	}
	o.Accept = func(*Program) bool { panic("no") }
	f = beginWith(t, m, t.TempDir(), o, dictated(2, 5, 3, 4))
	if err := f.RunRounds(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "Accept policy panicked") {
		t.Errorf("a policy that panics: %v", err)
	}
}

// TestEvaluateOneSwarm judges the texts of that swarm and nothing else.
func TestEvaluateOneSwarm(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, func(n int) string {
		if n < 4 {
			return program(float64(n + 2))
		}
		return "1: 4.5\n"
	})
	r := ready(t, f)
	noError(t, r.swarms[2].Evaluate(t.Context()))
	if got := r.programs(); len(got) != 1 || got[0].Swarm != 2 {
		t.Errorf("judged %v", ids(got))
	}
	if r.Stage() != Tuned {
		t.Errorf("the round is %s", r.Stage())
	}
	noError(t, r.Run(t.Context()))
}

// TestRefinementsFollowTheFocus: the history of refinements is what the swarms look at in the end.
func TestRefinementsFollowTheFocus(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	f := beginWith(t, m, dir, Options{Numbers: small}, dictated(2, 5, 3, 4))
	r := must[*Round](t)(f.Next(t.Context()))
	first := r.swarms[0].Focus()
	r.history = []refinement{{1, first}} // as if an earlier round had looked at the same
	noError(t, r.swarms[0].SetFocus("  Mirrors "))
	if want := []refinement{{1, first}, {1, "Mirrors"}}; !slices.Equal(r.refinements(), want) {
		t.Errorf("refinements %v, want %v", r.refinements(), want)
	}
}
