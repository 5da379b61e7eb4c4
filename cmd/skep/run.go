package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"skep/engine"
)

// cmdRun searches in a terminal: the same search that a notebook steps.
func cmdRun(ctx context.Context, args []string, io stdio) (err error) {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	var o engine.Options
	seed := fs.Uint64("seed", 0, "seed of everything random")
	rounds := fs.Int("rounds", 0, "rounds to run, one that is open counted in")
	minutes := fs.Float64("minutes", 0, "minutes to search; the round that is open then is finished")
	dir := fs.String("dir", "", "run folder; a folder with a run goes on with it (default runs/PROBLEM)")
	asJSON := fs.Bool("json", false, "one JSON line per event on stdout, a summary last")
	fs.StringVar(&o.Model, "model", "", "language model (default $SKEP_MODEL, else qwen2.5-coder-0.5b)")
	fs.StringVar(&o.Backend, "backend", "", "cpu (default $SKEP_BACKEND, else cpu)")
	fs.StringVar(&o.Profile, "profile", "", "paper or cpu (default cpu)")
	fs.StringVar(&o.Python, "python", "", "Python interpreter for candidates (default: skep makes its own)")
	fs.IntVar(&o.Threads, "threads", 0, "threads of the language model (default: all cores)")
	fs.IntVar(&o.Evaluators, "evaluators", 0, "programs judged at a time")
	rest, err := parse(fs, args, io, 1, 1)
	if err != nil {
		return err
	}
	if err := checkLength(fs, *rounds, *minutes); err != nil {
		return err
	}
	o.Problem, o.Seed = rest[0], *seed
	if *dir == "" {
		*dir = "runs/" + o.Problem
	}
	shown := newTerminal(io.Err)
	defer shown.done()
	lines := &jsonLines{out: io.Out}
	if *asJSON {
		ctx = engine.WithSink(ctx, both{shown, lines})
	} else {
		ctx = engine.WithSink(ctx, shown)
	}
	search, err := engine.OpenContext(ctx, *dir, o)
	if err != nil {
		return err
	}
	defer func() {
		if e := search.Close(); err == nil {
			err = e
		}
	}()
	before := search.Best()
	if *rounds > 0 {
		err = search.RunRounds(ctx, *rounds)
	} else {
		err = search.Run(ctx, time.Duration(*minutes*float64(time.Minute)))
	}
	shown.done()
	if *asJSON {
		lines.write(summary(search, before))
	} else {
		fmt.Fprintln(io.Out, search.Standing())
	}
	if err != nil {
		return fmt.Errorf("%w (what was judged is kept in %s; the same command goes on from there)", err, *dir)
	}
	return nil
}

// checkLength wants one of --rounds and --minutes, and a length that is one.
func checkLength(fs *flag.FlagSet, rounds int, minutes float64) error {
	const most = 1e6 // minutes: two years
	switch {
	case given(fs, "rounds") == given(fs, "minutes"):
		return fmt.Errorf("%w: give one of --rounds N and --minutes T", errUsage)
	case given(fs, "rounds") && rounds < 1:
		return fmt.Errorf("%w: --rounds %d must be at least 1", errUsage, rounds)
	case given(fs, "minutes") && !(minutes > 0 && minutes <= most):
		return fmt.Errorf("%w: --minutes %v must lie above 0, up to %.0f", errUsage, minutes, most)
	}
	return nil
}

// runSummary is the last JSON line of skep run.
type runSummary struct {
	Event    string             `json:"event"` // "summary"
	Dir      string             `json:"dir"`
	Problem  string             `json:"problem"`
	Model    string             `json:"model"`
	Profile  string             `json:"profile"`
	Rounds   int                `json:"rounds"`
	Programs int                `json:"programs"`
	Before   *float64           `json:"score_before"`
	Score    *float64           `json:"score"`
	Value    *float64           `json:"value"`
	BestID   int64              `json:"best"`
	BestKind string             `json:"best_kind"`
	Outcomes map[string]int     `json:"outcomes"`
	Seconds  map[string]float64 `json:"seconds"` // by stage
}

func summary(s *engine.Search, before *engine.Program) runSummary {
	o, best := s.Options(), s.Best()
	sum := runSummary{Event: "summary", Dir: s.Dir(), Problem: o.Problem, Model: o.Model, Profile: o.Profile, Programs: len(s.Programs()),
		Before: finite(before.Score), Score: finite(best.Score), Value: finite(best.Value), BestID: best.ID, BestKind: string(best.Kind),
		Outcomes: map[string]int{}, Seconds: stageSeconds(s)}
	for _, r := range s.Rounds() {
		if r.Stage() == engine.Committed {
			sum.Rounds++
		}
	}
	for _, p := range s.Programs() {
		sum.Outcomes[string(p.Outcome)]++
	}
	return sum
}

// stageSeconds adds up the time of each stage over all rounds.
func stageSeconds(s *engine.Search) map[string]float64 {
	seconds := map[string]float64{}
	for _, r := range s.Rounds() {
		for _, t := range r.Timings() {
			seconds[t.Stage] += t.Took.Seconds()
		}
	}
	return seconds
}
