package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"skep/engine"
	"skep/problems"
)

// writersResult is what skep bench writers reports: how well the model writes programs, over several seeds.
type writersResult struct {
	Problem  string       `json:"problem"`
	Model    string       `json:"model"`
	Profile  string       `json:"profile"`
	Seeds    int          `json:"seeds"`
	Rounds   int          `json:"rounds"`
	Written  int          `json:"written"`   // programs of summarizers
	Differ   float64      `json:"differ"`    // share of them different from every parent
	OK       float64      `json:"ok"`        // share of them different and with outcome ok
	Improved int          `json:"improved"`  // seeds whose best beats the initial program
	BySwarms int          `json:"by_swarms"` // of these, seeds whose best was written by a swarm
	Runs     []writersRun `json:"runs"`
}

// writersRun is one seed.
type writersRun struct {
	Seed     uint64             `json:"seed"`
	Score    float64            `json:"score"`
	Value    float64            `json:"value"`
	BestKind string             `json:"best_kind"`
	Outcomes map[string]int     `json:"outcomes"` // of summarizers' programs; "copy": the same as a parent
	Tuner    map[string]int     `json:"tuner"`    // of edits
	Seconds  map[string]float64 `json:"seconds"`
}

// benchWriters runs a search per seed and counts what the summarizers wrote.
func benchWriters(ctx context.Context, args []string, io stdio) (err error) {
	fs := flag.NewFlagSet("bench writers", flag.ContinueOnError)
	o := engine.Options{}
	fs.StringVar(&o.Model, "model", "", "language model (default $SKEP_MODEL, else the default model)")
	fs.StringVar(&o.Problem, "problem", "circles_square_26", "problem")
	fs.StringVar(&o.Python, "python", "", "Python interpreter for candidates")
	fs.IntVar(&o.Threads, "threads", 0, "threads of the language model")
	seeds := fs.Int("seeds", 10, "number of seeds, from 1 on")
	rounds := fs.Int("rounds", 3, "rounds of each")
	asJSON := fs.Bool("json", false, "JSON on stdout")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	if *seeds < 1 || *rounds < 1 || o.Threads < 0 {
		return fmt.Errorf("%w: --seeds %d and --rounds %d must be at least 1, --threads %d not negative", errUsage, *seeds, *rounds, o.Threads)
	}
	dir, err := os.MkdirTemp("", "skep-writers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	result := writersResult{Problem: o.Problem, Seeds: *seeds, Rounds: *rounds}
	shown := newTerminal(io.Err)
	for seed := range uint64(*seeds) {
		o.Seed = seed + 1
		if err := result.run(engine.WithSink(ctx, shown), filepath.Join(dir, fmt.Sprint(o.Seed)), o); err != nil {
			return fmt.Errorf("seed %d: %w", o.Seed, err)
		}
		last := result.Runs[len(result.Runs)-1]
		shown.line("seed", fmt.Sprintf("seed %d: value %.6f by %s, %v", last.Seed, last.Value, last.BestKind, last.Outcomes), true)
	}
	if result.Written > 0 {
		result.Differ /= float64(result.Written)
		result.OK /= float64(result.Written)
	}
	if *asJSON {
		return printJSON(io.Out, result)
	}
	fmt.Fprintf(io.Out, "%d programs written: %.0f %% differ from every parent, %.0f %% differ and are ok; %d of %d seeds beat the initial program (%d by swarms)\n",
		result.Written, 100*result.Differ, 100*result.OK, result.Improved, result.Seeds, result.BySwarms)
	return nil
}

// run searches with one seed and adds what it finds to the counts.
func (w *writersResult) run(ctx context.Context, dir string, o engine.Options) error {
	s, err := engine.OpenContext(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.RunRounds(ctx, w.Rounds); err != nil {
		return err
	}
	w.Model, w.Profile = s.Options().Model, s.Options().Profile
	best := s.Best()
	r := writersRun{Seed: o.Seed, Score: best.Score, Value: best.Value, BestKind: string(best.Kind), Outcomes: map[string]int{}, Tuner: map[string]int{}, Seconds: stageSeconds(s)}
	for _, p := range s.Programs() {
		switch p.Kind {
		case engine.Initial:
		case engine.Tuner:
			r.Tuner[string(p.Outcome)]++
		default:
			w.count(s, p, r.Outcomes)
		}
	}
	if best.Kind != engine.Initial {
		w.Improved++
		if best.Kind != engine.Tuner {
			w.BySwarms++
		}
	}
	w.Runs = append(w.Runs, r)
	return nil
}

// count takes in one written program.
func (w *writersResult) count(s *engine.Search, p *engine.Program, outcomes map[string]int) {
	w.Written++
	copied := p.Code == ""
	for _, id := range p.Parents {
		copied = copied || s.Program(id).Hash == p.Hash
	}
	if copied {
		outcomes["copy"]++
		return
	}
	w.Differ++
	outcomes[string(p.Outcome)]++
	if p.Outcome == problems.OK {
		w.OK++
	}
}
