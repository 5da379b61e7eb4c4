package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"skep/engine/judge"
	"skep/engine/store"
	"skep/problems"
	"skep/problems/value"
)

// Program is one judged candidate. It does not change once it can be reached; safe for concurrent use.
type Program struct {
	ID          int64
	Hash        string // of the code, looks ignored
	Kind        Kind   // the swarm that wrote it, or Tuner, or Initial
	Round       int    // 0: before the first round
	Swarm       int    // index in its round, -1: none
	Replicate   int    // which of the swarm's samples; for the tuner, which edit
	Parents     []int64
	Description string
	Code        string

	Outcome     problems.Outcome
	Message     string
	Value       float64 // recomputed objective; NaN when there is none
	Score       float64 // what ranks; NaN when there is none
	Strict      *bool   // feasible at tolerance 0; nil: unknown
	Numbers     problems.Numbers
	Margins     []problems.Margin
	Logs        string // stdout and stderr, cut
	Tier        string
	Seconds     float64 // wall time of the judge
	Repeats     int     // evaluations after the first
	Reproduced  int     // of them with the same value
	DuplicateOf int64   // the earlier program, when Outcome is Duplicate

	returned value.Value
	problem  problems.Problem
	parent   *Program // the first parent, for the diff; nil: none
	branch   string   // the branch whose round wrote it
	refused  bool     // by the Accept policy
	added    float64  // seconds since the search began, for the trajectory
}

// Ranked says whether the program has a score that counts.
func (p *Program) Ranked() bool { return p.Outcome.Ranked() && !math.IsNaN(p.Score) && !p.refused }

// judged fills in what the judge said.
func (p *Program) judged(r judge.Result) {
	v := r.Verdict
	p.Outcome, p.Message = r.Outcome, cmp.Or(r.Message, v.Message)
	p.Value, p.Score = orNaN(v.Value), orNaN(v.Numbers.SearchScore)
	p.Strict, p.Numbers, p.Margins = v.Strict, v.Numbers, v.Margins
	p.Logs, p.Tier, p.Seconds, p.returned = strings.TrimSpace(r.Stdout+"\n"+r.Stderr), r.Tier, r.Wall.Seconds(), r.Returned
}

// feedback is the evaluation as agents read it.
func (p *Program) feedback() string {
	if !p.Ranked() {
		return fmt.Sprintf("%s. %s", p.Outcome, firstLine(p.Message))
	}
	info := p.problem.Info()
	better := "higher"
	if info.Sense == problems.Minimize {
		better = "lower"
	}
	return fmt.Sprintf("value %.6f (%s is better; the best known is %.4f), score %.4f.", p.Value, better, info.Reference, p.Score)
}

// row is the program as the store keeps it.
func (p *Program) row(branch string) store.Program {
	plus, minus := 0, 0
	if p.parent != nil {
		plus, minus = diffStat(diffLines(p.parent.Code, p.Code))
	}
	return store.Program{
		Hash: p.Hash, Branch: branch, Round: p.Round, Swarm: p.Swarm, Kind: string(p.Kind), Parents: p.Parents,
		Description: p.Description, Code: p.Code, LinesAdded: plus, LinesRemoved: minus,
	}
}

// evaluation is a judge's result as the store keeps it.
func evaluation(r judge.Result, repeat int) store.Evaluation {
	v := r.Verdict
	return store.Evaluation{
		Repeat: repeat, Outcome: r.Outcome, Message: cmp.Or(r.Message, v.Message), Value: v.Value, Claim: v.Claim,
		Strict: v.Strict, Numbers: v.Numbers, Margins: v.Margins, Frame: r.Frame, Stdout: r.Stdout, Stderr: r.Stderr,
		CPU: r.CPU, Wall: r.Wall, Tier: r.Tier, Host: r.Host,
	}
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// archive is what a branch knows at one time: its committed programs in order of their ids. It is never changed
// in place, so that a round keeps the archive it was formed with.
type archive []*Program

// with returns an archive that has more programs.
func (a archive) with(more ...*Program) archive {
	all := append(slices.Clone(a), more...)
	slices.SortFunc(all, func(x, y *Program) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// ranked lists the programs that count, best first, equal scores by age.
func (a archive) ranked() []*Program {
	ranked := slices.DeleteFunc(slices.Clone(a), func(p *Program) bool { return !p.Ranked() || !p.Outcome.Parent() })
	slices.SortStableFunc(ranked, func(x, y *Program) int { return cmp.Compare(y.Score, x.Score) })
	return ranked
}

// best is the first of ranked, nil when nothing counts yet.
func (a archive) best() *Program {
	if r := a.ranked(); len(r) > 0 {
		return r[0]
	}
	return nil
}

// find returns the program with an id, nil if there is none.
func (a archive) find(id int64) *Program {
	i, ok := slices.BinarySearchFunc(a, id, func(p *Program, id int64) int { return cmp.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return a[i]
}

// lineage is the program that a chain of one-number edits started from.
func (a archive) lineage(p *Program) int64 {
	for p.Kind == Tuner && len(p.Parents) > 0 {
		parent := a.find(p.Parents[0])
		if parent == nil {
			break
		}
		p = parent
	}
	return p.ID
}

// pool is the best n programs, one per lineage.
func (a archive) pool(n int) []*Program {
	var pool []*Program
	seen := map[int64]bool{}
	for _, p := range a.ranked() {
		if root := a.lineage(p); !seen[root] && len(pool) < n {
			seen[root] = true
			pool = append(pool, p)
		}
	}
	return pool
}
