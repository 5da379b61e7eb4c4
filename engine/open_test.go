package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/engine/lm/lmtest"
	"skep/engine/store"
)

// TestClose: a closed search refuses what computes instead of touching weights that are no longer mapped; a running call
// keeps it open; closing again does nothing.
func TestClose(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	inside := false
	ctx := WithSink(t.Context(), sinkFunc(func(Event) {
		if !inside {
			inside = true
			if err := f.Close(); !errors.Is(err, ErrBusy) {
				t.Errorf("closed while a stage ran: %v", err)
			}
		}
	}))
	noError(t, r.Reason(ctx))
	if !inside {
		t.Error("the stage reported nothing")
	}
	noError(t, f.Close())
	noError(t, f.Close())
	_, next := f.Next(t.Context())
	_, thoughts := r.swarms[0].agents[0].Thoughts()
	for what, err := range map[string]error{"Next": next, "Thoughts": thoughts, "Filter": r.Filter(t.Context()), "Wait": f.Start(t.Context(), time.Hour).Wait(t.Context())} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed search: %v", what, err)
		}
	}
	f.SimpleRender()
	r.SimpleRender()
}

// TestCloseEndsAJob: the job ends behind its stage, and the run can be opened again at once.
func TestCloseEndsAJob(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	f := beginWith(t, m, dir, Options{Numbers: small}, dictated())
	f.Start(t.Context(), time.Hour)
	noError(t, f.Close())
	st := must[*store.Store](t)(store.Open(dir))
	noError(t, st.Close())
}

// TestJobPanics: a policy that panics ends the job with an error, not the process.
func TestJobPanics(t *testing.T) {
	o := Options{Numbers: small, Policies: Policies{Filter: func([][]float32, int) []int { panic("oh") }}}
	f := begin(t, t.TempDir(), o, nil)
	if err := f.Start(t.Context(), time.Hour).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("the job ended with %v", err)
	}
	if _, err := f.Next(t.Context()); err != nil {
		t.Errorf("the search is stuck: %v", err)
	}
}

// TestOpenTogether: a second Open of a folder waits for the first, gives up with its ctx, and tries for itself when the
// first fails.
func TestOpenTogether(t *testing.T) {
	dir := t.TempDir()
	first := &opening{done: make(chan struct{})}
	openMu.Lock()
	openRuns[dir] = first
	openMu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenContext(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with an ended ctx: %v", err)
	}
	got := make(chan error)
	go func() {
		_, err := OpenContext(context.Background(), dir, Options{Problem: "no such problem"})
		got <- err
	}()
	openMu.Lock()
	delete(openRuns, dir)
	openMu.Unlock()
	first.err = errFault
	close(first.done)
	if err := <-got; err == nil || errors.Is(err, errFault) || !strings.Contains(err.Error(), "no such problem") {
		t.Errorf("after the first failed: %v", err)
	}
	if openMu.Lock(); openRuns[dir] != nil {
		t.Error("a failed Open leaves an entry")
	}
	openMu.Unlock()
}

// TestNumbersAreChecked: what makes no sense is refused with the name of the field, before anything runs.
func TestNumbersAreChecked(t *testing.T) {
	nan := math.NaN()
	for field, n := range map[string]Numbers{
		"at least one swarm": {Refine: -1, Hybridize: -1, Explore: -1, Fresh: -1},
		"latent steps":       {Steps: -1},
		"agents":             {Agents: -2},
		"keeps 9 of 3":       {Agents: 3, Keep: 9},
		"keeps 0":            {Keep: -1},
		"Samples":            {Samples: -1},
		"Tries 0":            {Tries: -3},
		"NewTokens":          {NewTokens: -1},
		"RefineBest":         {RefineBest: -1},
		"ExploreParents":     {ExploreParents: -1},
		"TuneTokens":         {TuneTokens: -1},
		"TopP":               {TopP: nan},
		"TopP 0":             {TopP: -1},
		"TopP 2":             {TopP: 2},
		"temperatures":       {HybridTemp: nan},
		"temperatures 0.7":   {TuneTemp: math.Inf(1)},
		"limits":             {CPU: -1},
		"Form":               {Form: "novel"},
	} {
		if _, err := (Options{Problem: "toy", Profile: "cpu", Numbers: n}).resolved(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, n := range map[string]Numbers{
		"one agent":  {Agents: 1, Keep: 1},
		"all kept":   {Keep: 6},
		"greedy":     {RefineTemp: -1, TuneTemp: -1},
		"no tuner":   {Tunes: -1, TuneTokens: -1},
		"no explore": {Explore: -1, ExploreParents: -1},
	} {
		o, err := (Options{Problem: "toy", Profile: "cpu", Numbers: n}).resolved()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		o.json()
	}
}

// TestSmallestRound runs with one agent, one swarm of each kind and no tuner, greedily, and opens again without options.
func TestSmallestRound(t *testing.T) {
	m, dir := lmtest.Tiny(t), t.TempDir()
	num := Numbers{Agents: 1, Keep: 1, Steps: 1, NewTokens: 3, Tries: 1, Tunes: -1, RefineTemp: -1, Form: "program"}
	f := beginWith(t, m, dir, Options{Numbers: num}, nil)
	noError(t, f.RunRounds(t.Context(), 1))
	noError(t, f.store.Close())
	noError(t, beginWith(t, m, dir, Options{Numbers: num}, nil).RunRounds(t.Context(), 1))
}

// TestPoliciesOfNonsense: what a policy gives is checked, and the message names the policy.
func TestPoliciesOfNonsense(t *testing.T) {
	m := lmtest.Tiny(t)
	for name, p := range map[string]Policies{
		"Draw policy gave 0":   {Draw: func(string, []*Program, int) []*Program { return nil }},
		"Draw policy gave 1":   {Draw: func(string, []*Program, int) []*Program { return []*Program{nil} }},
		"Draw policy gave 2":   {Draw: func(string, []*Program, int) []*Program { return []*Program{{ID: 9}, {ID: 1}} }},
		"Focus policy":         {Focus: func(string, []*Program, int) string { return " \n" }},
		"Filter policy kept":   {Filter: func([][]float32, int) []int { return []int{0, 7} }},
		"Filter policy kept [": {Filter: func([][]float32, int) []int { return []int{1, 1} }},
	} {
		f := beginWith(t, m, t.TempDir(), Options{Numbers: small, Policies: p}, nil)
		if err := f.RunRounds(t.Context(), 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spoil := func(means [][]float32, keep int) []int {
		for _, m := range means {
			m[0] = 1e9
		}
		return []int{2, 0}
	}
	f := beginWith(t, m, t.TempDir(), Options{Numbers: small, Policies: Policies{Filter: spoil}}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.Reason(t.Context()))
	noError(t, r.Filter(t.Context()))
	if sw := r.swarms[0]; sw.agents[0].Mean()[0] == 1e9 || !slices.Equal(sw.Kept(), []int{0, 2}) {
		t.Error("a policy changed the agents' means")
	}
}

// TestKeptBeyondTheContext: more agents kept by hand than the context holds is refused when the view is built.
func TestKeptBeyondTheContext(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.Reason(t.Context()))
	noError(t, r.Filter(t.Context()))
	sw := r.swarms[0]
	f.model.Config.Context = sw.longest + leastNewTokens
	noError(t, sw.Transfer(t.Context()))
	noError(t, sw.SetKept(0, 1, 2, 3, 4))
	if err := sw.Transfer(t.Context()); err == nil || !strings.Contains(err.Error(), "keep fewer than its 5 agents") {
		t.Errorf("five agents in a context for three: %v", err)
	}
}

func TestOtherOptionsAreRefused(t *testing.T) {
	dir := t.TempDir()
	f := begin(t, dir, Options{Seed: 1, Numbers: small}, nil)
	noError(t, f.store.Close())
	num := small
	num.Agents = 7
	_, _, err := openStore(dir, Options{Problem: "toy", Model: "tiny", Seed: 2, Numbers: num})
	if err == nil || !strings.Contains(err.Error(), "Seed: the run has 1, you ask for 2") || !strings.Contains(err.Error(), "Agents: the run has 5, you ask for 7") {
		t.Errorf("other options: %v", err)
	}
}
