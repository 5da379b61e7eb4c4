package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"skep/engine/judge"
	"skep/engine/store"
	"skep/plotting"
	"skep/problems"
)

// storedRun is what the report tells of a stored run: one branch and what it was forked from. It is plotting.Traced.
type storedRun struct {
	meta     store.Meta
	problem  problems.Problem // nil: this skep doesn't have it
	programs []store.Program  // of the branch, by id
	rounds   []store.Round    // of the branch, by number
	others   int              // programs on other branches
	best     *store.Program   // nil: nothing counts yet
	parent   *store.Program   // of best, its first; nil: none
	picture  *plotting.Figure // of best; nil: none
	means    *plotting.Figure // the agents of the last round whose hidden states are stored; nil: none
}

// loadRun reads the branch that the run continues.
func loadRun(ctx context.Context, r *store.Reader) (run storedRun, err error) {
	if run.meta, err = r.Meta(ctx); err != nil {
		return run, err
	}
	run.problem, _ = problems.Get(run.meta.Problem) // a run of a problem that we lack still has numbers
	programs, err := r.Programs(ctx)
	if err != nil {
		return run, err
	}
	rounds, err := r.Rounds(ctx)
	if err != nil {
		return run, err
	}
	run.takeBranch(cmp.Or(run.meta.Branch, store.Main), programs, rounds)
	if err := run.findBest(ctx, r); err != nil {
		return run, err
	}
	return run, run.findMeans(ctx, r)
}

// takeBranch keeps what belongs to a branch: its own rows, and of the branch that it was forked from those that the
// fork could see, and so on.
func (run *storedRun) takeBranch(branch string, programs []store.Program, rounds []store.Round) {
	lastProgram, lastRound := int64(math.MaxInt64), math.MaxInt
	for seen := map[string]bool{}; branch != "" && !seen[branch]; {
		seen[branch] = true
		for _, p := range programs {
			if p.Branch == branch && p.ID <= lastProgram {
				run.programs = append(run.programs, p)
			}
		}
		from, first := "", lastRound
		for _, r := range rounds {
			if r.Branch != branch || r.N >= lastRound {
				continue
			}
			run.rounds = append(run.rounds, r)
			if r.N <= first {
				from, first, lastProgram = r.Forked, r.N, min(lastProgram, r.Seen)
			}
		}
		branch, lastRound = from, first
	}
	slices.SortFunc(run.programs, func(a, b store.Program) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(run.rounds, func(a, b store.Round) int { return cmp.Compare(a.N, b.N) })
	run.others = len(programs) - len(run.programs)
}

// findBest finds the best program of the branch, the oldest of equals, its parent and its picture.
func (run *storedRun) findBest(ctx context.Context, r *store.Reader) error {
	for i, p := range run.programs {
		if score := scoreOf(p); !math.IsNaN(score) && (run.best == nil || score > scoreOf(*run.best)) {
			run.best = &run.programs[i]
		}
	}
	if run.best == nil {
		return nil
	}
	if len(run.best.Parents) > 0 {
		run.parent = run.program(run.best.Parents[0])
	}
	frame, err := r.Frame(ctx, run.best.Evaluations[0].ID)
	if err != nil || frame == nil || run.problem == nil {
		return err
	}
	returned, err := judge.DecodeFrame(frame)
	if err != nil {
		return fmt.Errorf("what program %d returned can't be read: %w", run.best.ID, err)
	}
	run.picture = run.problem.Picture(returned)
	return nil
}

// findMeans draws the agents of the last round that has their mean hidden states.
func (run *storedRun) findMeans(ctx context.Context, r *store.Reader) error {
	for _, round := range slices.Backward(run.rounds) {
		shape, means, err := r.Hidden(ctx, round.Branch, round.N, store.Means)
		if err != nil {
			return err
		}
		if len(shape) == 2 && shape[0] > 0 {
			run.means = clusters(round, means, shape[1])
			return nil
		}
	}
	return nil
}

// clusters draws all agents of a round, Figure 5 left of arXiv 2611.08483. means: [A, D], row-major.
func clusters(round store.Round, means []float32, d int) *plotting.Figure {
	data := plotting.ClusterData{By: "swarm", Title: fmt.Sprintf("Agents of round %d", round.N),
		Caption: "Mean hidden states on their first two principal components, centred on the round's mean (cross). Hollow: dropped by the novelty filter."}
	for i, swarm := range round.Swarms {
		for j, agent := range swarm.Agents {
			at := len(data.Points) * d
			if at+d > len(means) {
				return plotting.Clusters(data)
			}
			p := plotting.ClusterPoint{Group: fmt.Sprintf("%d %s", i, swarm.Kind), Label: fmt.Sprintf("agent %d", j), Kept: agent.Kept}
			for _, x := range means[at : at+d] {
				p.X = append(p.X, float64(x))
			}
			data.Points = append(data.Points, p)
		}
	}
	return plotting.Clusters(data)
}

// program is the program of the branch with an id, nil if there is none.
func (run *storedRun) program(id int64) *store.Program {
	i, ok := slices.BinarySearchFunc(run.programs, id, func(p store.Program, id int64) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return &run.programs[i]
}

// outcomeOf is how the ranking evaluation of a program ended, "" when it wasn't evaluated yet.
func outcomeOf(p store.Program) problems.Outcome {
	if len(p.Evaluations) == 0 {
		return ""
	}
	return p.Evaluations[0].Outcome
}

// scoreOf is the score that ranks a program, NaN when it doesn't count.
func scoreOf(p store.Program) float64 {
	if outcomeOf(p).Ranked() && p.Evaluations[0].Numbers.SearchScore != nil {
		return *p.Evaluations[0].Numbers.SearchScore
	}
	return math.NaN()
}

// Trace is the history of the branch.
func (run storedRun) Trace() []plotting.Point {
	points, best := make([]plotting.Point, 0, len(run.programs)), math.NaN()
	for _, p := range run.programs {
		score := scoreOf(p)
		if !math.IsNaN(score) && !(score <= best) {
			best = score
		}
		points = append(points, plotting.Point{
			Program: int(p.ID), Seconds: p.Created.Sub(run.meta.Created).Seconds(), Round: p.Round, Source: p.Kind,
			Outcome: string(outcomeOf(p)), Score: score, Best: best,
		})
	}
	return points
}

// times is the time of every stage of every round.
func (run storedRun) times() (times []plotting.StageTime) {
	for _, r := range run.rounds {
		for _, t := range r.Timings {
			times = append(times, plotting.StageTime{Round: r.N, Stage: t.Stage, Seconds: t.Took.Seconds()})
		}
	}
	return times
}

func (run storedRun) title() string {
	if run.problem == nil {
		return run.meta.Problem
	}
	return run.problem.Info().Title
}

// pictures are the figures of the report, in its order.
func (run storedRun) pictures() []picture {
	list := []picture{
		{"trajectory", plotting.Trajectory(run)},
		{"minutes", plotting.TrajectoryBy(run, plotting.TrajectoryOptions{Axis: "minutes"})},
		{"stages", plotting.StageTimes(run.times())},
	}
	if run.picture != nil {
		list = append(list, picture{"best", run.picture})
	}
	if run.means != nil {
		list = append(list, picture{"agents", run.means})
	}
	return list
}

// gain is where the best score of a search came from.
type gain struct {
	before, after float64 // NaN: nothing counts
	swarms, tuner float64 // parts of after − before
}

// gainOf splits the rise of the best score by the source of each program that raised it. before is the first score.
func gainOf(points []plotting.Point) gain {
	g := gain{before: math.NaN(), after: math.NaN()}
	for _, p := range points {
		switch {
		case math.IsNaN(p.Score) || p.Score <= g.after:
		case math.IsNaN(g.before):
			g.before, g.after = p.Score, p.Score
		default:
			if p.Source == "tuner" {
				g.tuner += p.Score - g.after
			} else {
				g.swarms += p.Score - g.after
			}
			g.after = p.Score
		}
	}
	return g
}

// String is one sentence.
func (g gain) String() string {
	switch {
	case math.IsNaN(g.after):
		return "No program counts yet."
	case g.after == g.before:
		return fmt.Sprintf("Nothing improved on the initial program's score %.6g.", g.before)
	}
	rise := g.after - g.before
	return strings.TrimSpace(fmt.Sprintf("Best score %.6g, from %.6g: %+.6g, of which swarms wrote %.0f %% and the tuner's one-number edits found %.0f %%.",
		g.after, g.before, rise, 100*g.swarms/rise, 100*g.tuner/rise))
}
