package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Stage is how far a swarm or a round has come.
type Stage int

// The stages in their order. Reasoned includes reading the prompts, Written includes the transfer of Eq. 6. Tuned and
// Committed are stages of a round only.
const (
	Formed Stage = iota
	Reasoned
	Filtered
	Written
	Tuned
	Evaluated
	Committed
)

var stageNames = [...]string{"formed", "reasoned", "filtered", "written", "tuned", "evaluated", "committed"}

// doing names the method that leads to a stage.
var doing = [...]string{"Next", "Reason", "Filter", "Write", "Tune", "Evaluate", "Commit"}

func (s Stage) String() string { return stageNames[s] }

// Errors a caller can test for.
var (
	ErrStage     = errors.New("stage missing")   // a stage was called before the one it needs
	ErrCommitted = errors.New("round committed") // a committed round does not change: Fork it
	ErrBusy      = errors.New("search busy")     // another call or a job is at work on the search
	ErrClosed    = errors.New("search closed")   // Close was called; engine.Open the folder again
)

// Round is one round of a search: a state machine over its swarms. Its methods may be called from any goroutine; those
// that change it run one at a time (ErrBusy).
type Round struct {
	search  *Search
	branch  string
	n       int
	archive archive      // what its draws see
	history []refinement // of the branch, before this round
	started time.Time

	swarms    []*Swarm
	tunes     []*Edit
	tuned     bool
	committed bool
	newTokens int // most tokens of a reply, after the context limit
	timings   []Timing
	phraseKV  map[phraseKey]stretch
}

// phraseKey names the shared beginning of the prompts of agents with one parent, focus and phrasing.
type phraseKey struct {
	parent   int64 // 0: none
	focus    string
	phrasing int
}

// Timing is the time one stage took, of one swarm or (-1) of the whole round.
type Timing struct {
	Stage string // "form", "read", "reason", "filter", "transfer", "write", "tune", "evaluate", "commit"
	Swarm int
	Start time.Time
	Took  time.Duration
}

// Number is the round's number, from 1.
func (r *Round) Number() int { return r.n }

// Branch is "main", or the name of the fork that the round belongs to.
func (r *Round) Branch() string { return r.branch }

// Stage is the stage that every swarm has reached.
func (r *Round) Stage() Stage {
	r.search.mu.Lock()
	defer r.search.mu.Unlock()
	return r.stage()
}

func (r *Round) stage() Stage {
	if r.committed {
		return Committed
	}
	least := Evaluated
	for _, sw := range r.swarms {
		least = min(least, sw.stage)
	}
	switch {
	case least == Evaluated && !(r.tuned && r.editsJudged()):
		least = Written
	case least > Written && least < Evaluated:
		least = Written
	}
	if least == Written && r.tuned {
		return Tuned
	}
	return least
}

func (r *Round) editsJudged() bool {
	return !slices.ContainsFunc(r.tunes, func(e *Edit) bool { return e.Program == nil && e.Code != "" })
}

// Swarms are the round's swarms in order.
func (r *Round) Swarms() []*Swarm { return slices.Clone(r.swarms) }

// Kind returns the round's swarms of one kind ("refine", "hybridize", "explore", "fresh").
func (r *Round) Kind(kind string) []*Swarm {
	return slices.DeleteFunc(slices.Clone(r.swarms), func(sw *Swarm) bool { return string(sw.kind) != kind })
}

// Timings lists what each stage took, in the order they ran; a stage that ran twice is there twice.
func (r *Round) Timings() []Timing {
	r.search.mu.Lock()
	defer r.search.mu.Unlock()
	return slices.Clone(r.timings)
}

// Read lets the agents read their prompts. Reason does it when it was not done.
func (r *Round) Read(ctx context.Context) error {
	return r.search.exclusive("Read", func() error { return r.read(ctx) })
}

func (r *Round) read(ctx context.Context) error {
	if err := r.ready(Reasoned, nil); err != nil {
		return err
	}
	return r.readPrompts(ctx, r.behind(Reasoned))
}

// Reason lets the agents of every swarm that has not reasoned yet, or whose focus changed, take their latent steps.
func (r *Round) Reason(ctx context.Context) error {
	return r.search.exclusive("Reason", func() error { return r.reason(ctx, r.behind(Reasoned)) })
}

// Filter keeps the most novel agents of every swarm that was not filtered yet (Eq. 4–5).
func (r *Round) Filter(ctx context.Context) error {
	return r.search.exclusive("Filter", func() error { return r.filter(ctx, r.behind(Filtered)) })
}

// Transfer builds the summarizers' views (Eq. 6). Write does it when it was not done.
func (r *Round) Transfer(ctx context.Context) error {
	return r.search.exclusive("Transfer", func() error { return r.transfer(ctx, r.behind(Written)) })
}

// Write lets the summarizer of every swarm that has no text yet write one; with samples, that many each.
func (r *Round) Write(ctx context.Context, samples ...int) error {
	return r.search.exclusive("Write", func() error { return r.write(ctx, r.behind(Written), r.samples(samples)) })
}

// Tune lets the tuning agent propose one-number edits of the best program that the round saw at Form.
func (r *Round) Tune(ctx context.Context) error {
	return r.search.exclusive("Tune", func() error { return r.tune(ctx) })
}

// Evaluate judges every written program and edit that has no verdict yet. Each is durable in the store once judged.
func (r *Round) Evaluate(ctx context.Context) error {
	return r.search.exclusive("Evaluate", func() error { return r.evaluate(ctx, r.behind(Evaluated), r.tunes) })
}

// Commit puts the round's programs into the archive of its branch. The round does not change afterwards.
func (r *Round) Commit(ctx context.Context) error {
	return r.search.exclusive("Commit", func() error { return r.commit(ctx) })
}

// Run takes the round through all stages that are left.
func (r *Round) Run(ctx context.Context) error {
	return r.search.exclusive("Run", func() error { return r.run(ctx) })
}

// run is the loop of one round.
func (r *Round) run(ctx context.Context) error {
	for _, step := range r.steps(ctx) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// steps are the stages of a round in order; one that is done does nothing.
func (r *Round) steps(ctx context.Context) []func() error {
	return []func() error{
		func() error { return r.reason(ctx, r.behind(Reasoned)) },
		func() error { return r.filter(ctx, r.behind(Filtered)) },
		func() error { return r.write(ctx, r.behind(Written), r.search.opts.Samples) },
		func() error { return r.tune(ctx) },
		func() error { return r.evaluate(ctx, r.behind(Evaluated), r.tunes) },
		func() error { return r.commit(ctx) },
	}
}

func (r *Round) samples(asked []int) int {
	if len(asked) > 0 {
		return asked[0]
	}
	return r.search.opts.Samples
}

// behind lists the swarms that have not reached a stage.
func (r *Round) behind(stage Stage) []*Swarm {
	return slices.DeleteFunc(slices.Clone(r.swarms), func(sw *Swarm) bool { return sw.stage >= stage })
}

// ready checks that a stage may run on the swarms: the round is open and each has the stage before.
func (r *Round) ready(stage Stage, swarms []*Swarm) error {
	if r.committed {
		return fmt.Errorf("engine: %w: round %d of branch %s; Fork it to try something else", ErrCommitted, r.n, r.branch)
	}
	needs := stage - 1
	if stage == Evaluated {
		needs = Written
	}
	for _, sw := range swarms {
		if sw.stage < needs {
			return fmt.Errorf("engine: %w: swarm %d (%s) of round %d is %s; %s needs %s first", ErrStage, sw.index, sw.kind, r.n, sw.stage, doing[stage], doing[sw.stage+1])
		}
	}
	return nil
}

// reached publishes the stage of swarms and keeps it in the store.
func (r *Round) reached(ctx context.Context, stage Stage, swarms []*Swarm) error {
	r.search.update(func() {
		for _, sw := range swarms {
			sw.stage, sw.stale = stage, false
		}
	})
	return r.save(ctx)
}

// spent notes the time since start; a look at a committed round is no part of it.
func (r *Round) spent(stage string, swarm int, start time.Time) {
	if r.committed {
		return
	}
	r.search.update(func() { r.timings = append(r.timings, Timing{stage, swarm, start, time.Since(start)}) })
}

// release frees the keys and values of the round's agents. What was made of them stays; a look that needs them reads
// the prompts again.
func (r *Round) release() {
	for _, sw := range r.swarms {
		sw.release()
	}
	for _, st := range r.phraseKV {
		r.search.backend.Free(st.block)
	}
	r.phraseKV = nil
}
