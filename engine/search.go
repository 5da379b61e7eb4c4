package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"skep/engine/lm"
	"skep/engine/store"
	"skep/plotting"
	"skep/problems"
)

// Search is a live search: a run folder, its archive, and what works on it. Safe for concurrent use; close it when done.
type Search struct {
	dir       string
	opts      Options // resolved
	problem   problems.Problem
	model     *lm.Model
	backend   *shared
	evaluator Evaluator
	store     *store.Store
	meta      store.Meta
	prompts   prompts
	parallel  int // programs judged at a time

	// Used only by the call that holds busy.
	problemKV stretch
	programKV map[int64]stretch

	mu       sync.Mutex // guards everything below, and the fields of rounds, swarms and agents that change
	busy     string     // what is at work; "": nothing
	closed   bool
	began    time.Time // when it began
	worked   time.Duration
	job      *Job
	branches map[string]*branch
}

// branch is a line of rounds with its own view of the archive.
type branch struct {
	name    string
	archive archive // committed
	history []refinement
	rounds  []*Round // committed, in order
	open    *Round   // formed and not committed; nil: none
	from    string   // branch it was forked from; "": none
}

// exclusive runs one call that changes the search. While another is at work it is refused with ErrBusy.
func (s *Search) exclusive(what string, do func() error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("engine: %w: the run in %s; call engine.Open again", ErrClosed, s.dir)
	}
	if s.job != nil && s.busy != "" {
		s.mu.Unlock()
		return fmt.Errorf("engine: %w: a job is running (%s); call job.Pause() first, or job.Wait()", ErrBusy, s.busy)
	}
	if s.busy != "" {
		s.mu.Unlock()
		return fmt.Errorf("engine: %w: %s is running; wait for it or stop it, then call %s again", ErrBusy, s.busy, what)
	}
	s.busy, s.began = what, time.Now()
	s.mu.Unlock()
	defer s.update(func() {
		s.worked += time.Since(s.began)
		s.busy = ""
	})
	return do()
}

// update publishes a change to what others may read.
func (s *Search) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// clock is the time that the search has worked, in seconds. The caller holds mu or busy.
func (s *Search) clock() float64 {
	worked := s.worked
	if s.busy != "" {
		worked += time.Since(s.began)
	}
	return worked.Seconds()
}

// Next returns the round that is open, or forms the next one of the main branch.
func (s *Search) Next(ctx context.Context) (*Round, error) { return s.NextOn(ctx, store.Main) }

// NextOn is Next for a branch that a Fork has made.
func (s *Search) NextOn(ctx context.Context, name string) (r *Round, err error) {
	err = s.exclusive("Next", func() error {
		r, err = s.next(ctx, name)
		return err
	})
	return r, err
}

func (s *Search) next(ctx context.Context, name string) (*Round, error) {
	b := s.branches[name]
	if b == nil {
		return nil, fmt.Errorf("engine: there is no branch %q; there are %v", name, s.branchNames())
	}
	if b.open != nil && !b.open.committed {
		return b.open, nil
	}
	n := 1
	if b.open != nil {
		n = b.open.n + 1
		b.open.release()
	}
	r, err := s.form(ctx, name, n, b.before(n, s.opts.Lag), b.history)
	if err != nil {
		return nil, err
	}
	if err := r.save(ctx); err != nil {
		return nil, err
	}
	s.forget(slices.Concat(r.archive.pool(s.opts.HybridizePool), r.parents())...)
	s.update(func() { b.open = r })
	return r, nil
}

// before is the archive that round n sees: what was committed up to round n-1-lag.
func (b *branch) before(n, lag int) archive {
	return slices.DeleteFunc(slices.Clone(b.archive), func(p *Program) bool { return p.Round > 0 && p.Round >= n-lag })
}

// parents lists the programs that the round's swarms read.
func (r *Round) parents() []*Program {
	var all []*Program
	for _, sw := range r.swarms {
		all = append(all, sw.parents...)
	}
	return all
}

// Run searches for a time: it forms and runs rounds until d has passed, and ends with the round that is then open. Stop it
// with ctx: the round stays open at its last stage.
func (s *Search) Run(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return s.exclusive("Run", func() error { return s.loop(ctx, func(int) bool { return time.Now().Before(end) }) })
}

// RunRounds searches for n rounds, one that is open counted in.
func (s *Search) RunRounds(ctx context.Context, n int) error {
	return s.exclusive("Run", func() error { return s.loop(ctx, func(done int) bool { return done < n }) })
}

// loop is the search: rounds one after the other.
func (s *Search) loop(ctx context.Context, more func(done int) bool) error {
	for done := 0; more(done); done++ {
		r, err := s.next(ctx, store.Main)
		if err != nil {
			return err
		}
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Dir is the run folder.
func (s *Search) Dir() string { return s.dir }

// Options are the search's options, every field filled in.
func (s *Search) Options() Options { return s.opts }

// Problem is what the search is about.
func (s *Search) Problem() problems.Problem { return s.problem }

// Stats reports the language model's memory and work.
func (s *Search) Stats() lm.Stats { return s.backend.Stats() }

// Best is the best program of the main branch.
func (s *Search) Best() *Program { return s.archive().best() }

// Programs lists the committed programs of the main branch by id.
func (s *Search) Programs() []*Program { return slices.Clone(s.archive()) }

// Program returns a committed program of any branch, nil if there is none with this id.
func (s *Search) Program(id int64) *Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.branches {
		if p := b.archive.find(id); p != nil {
			return p
		}
	}
	return nil
}

func (s *Search) archive() archive {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.branches[store.Main].archive
}

// Rounds lists the rounds of the main branch, the open one included.
func (s *Search) Rounds() []*Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.branches[store.Main]
	rounds := slices.Clone(b.rounds)
	if b.open != nil && !b.open.committed {
		rounds = append(rounds, b.open)
	}
	return rounds
}

func (s *Search) branchNames() []string {
	var list []string
	for name := range s.branches {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Trace lists the programs of the main branch for plotting.Trajectory.
func (s *Search) Trace() []plotting.Point { return s.archive().trace() }

func (a archive) trace() []plotting.Point {
	points := make([]plotting.Point, len(a))
	best := 0.0
	for i, p := range a {
		if p.Ranked() && (i == 0 || p.Score > best) {
			best = p.Score
		}
		points[i] = plotting.Point{Program: i + 1, Seconds: p.added, Round: p.Round, Source: string(p.Kind), Outcome: string(p.Outcome), Score: p.Score, Best: best}
	}
	return points
}
