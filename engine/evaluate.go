package engine

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"skep/engine/judge"
	"skep/engine/python"
	"skep/engine/store"
	"skep/problems"
)

// Evaluator runs a program and judges what it returned. *judge.Judge is one. It must be safe for concurrent use; its
// error is a fault of ours or of the machine, never of the program.
type Evaluator interface {
	Evaluate(ctx context.Context, p problems.Problem, code string) (judge.Result, error)
	Close() error
}

// candidate is a program on its way to a verdict, and where the verdict goes.
type candidate struct {
	program *Program
	done    func(*Program)
}

// evaluate judges what the swarms wrote and the edits: duplicates of anything seen are dropped, missing imports of
// standard packages added, the rest is judged. Every program is in the store when it is judged; a call that is cut
// short goes on with the others the next time.
func (r *Round) evaluate(ctx context.Context, swarms []*Swarm) error {
	if err := r.ready(Evaluated, swarms); err != nil {
		return err
	}
	start := time.Now()
	batch := r.candidates(swarms)
	if err := r.judge(ctx, batch, start); err != nil {
		return err
	}
	if err := r.reproduce(ctx); err != nil {
		return err
	}
	if len(batch) > 0 {
		r.spent("evaluate", -1, start)
	}
	return r.reached(ctx, Evaluated, swarms)
}

// candidates lists what has no verdict yet, in a fixed order: swarms by index and replicate, then edits.
func (r *Round) candidates(swarms []*Swarm) []candidate {
	var batch []candidate
	for _, sw := range swarms {
		for k, sum := range sw.summaries {
			if sum.Program == nil {
				p := r.candidate(sw.kind, sw.index, k, sw.parents, sum.Description, sum.Code)
				batch = append(batch, candidate{p, func(p *Program) { sum.Program = p }})
			}
		}
	}
	for _, e := range r.tunes {
		if e.Program == nil && e.Code != "" {
			p := r.candidate(Tuner, -1, e.replicate, []*Program{e.Target}, e.describe(), e.Code)
			batch = append(batch, candidate{p, func(p *Program) { e.Program = p }})
		}
	}
	return batch
}

func (r *Round) candidate(kind Kind, swarm, replicate int, parents []*Program, description, code string) *Program {
	code, added := python.Imports(code)
	p := &Program{Kind: kind, Round: r.n, Swarm: swarm, Replicate: replicate, Description: description, Code: code,
		Hash: python.Hash(code), problem: r.search.problem, parent: parents[0]}
	if len(added) > 0 {
		p.Message = fmt.Sprintf("imports added: %q", added)
	}
	for _, parent := range parents {
		p.Parents = append(p.Parents, parent.ID)
	}
	return p
}

// judge gives every candidate a verdict, several at a time, and stores them in the order of the batch, each as soon as all
// before it are judged, so that ids do not depend on how the judge raced. Duplicates are found before anything runs.
func (r *Round) judge(ctx context.Context, batch []candidate, start time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := &queue{round: r, batch: batch, results: make([]judge.Result, len(batch)), first: r.seen(), start: start}
	slots := make(chan struct{}, r.search.parallel)
	var wg sync.WaitGroup
	for i, c := range batch {
		if q.known(ctx, i, cancel) {
			continue
		}
		q.first[c.program.Hash] = c.program
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result, err := r.search.evaluator.Evaluate(ctx, r.search.problem, c.program.Code)
			if err != nil {
				cancel(err)
				return
			}
			q.put(ctx, i, result, cancel)
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// queue collects the results of a batch. mu guards results and settled.
type queue struct {
	round   *Round
	batch   []candidate
	first   map[string]*Program // by hash; changed only before the candidate with the hash is run
	start   time.Time
	mu      sync.Mutex
	results []judge.Result
	judged  int // results that are there
	settled int // results[:settled] are stored
}

// known settles the i-th candidate without running it when it holds no program or repeats an earlier one.
func (q *queue) known(ctx context.Context, i int, fail func(error)) bool {
	p := q.batch[i].program
	first, duplicate := q.first[p.Hash]
	switch {
	case p.Code == "":
		q.put(ctx, i, judge.Result{Outcome: problems.SyntaxError, Message: "the reply holds no program"}, fail)
	case duplicate:
		q.put(ctx, i, judge.Result{Outcome: problems.Duplicate, Message: "the same as " + first.label()}, fail)
	default:
		return false
	}
	return true
}

// put takes the i-th result and stores all that now stand in an unbroken row.
func (q *queue) put(ctx context.Context, i int, result judge.Result, fail func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.results[i] = result
	q.judged++
	report(ctx, Event{Round: q.round.n, Stage: "evaluate", Swarm: -1, Done: q.judged, Total: len(q.batch), Unit: "programs",
		Text: fmt.Sprintf("%s: %s", q.batch[i].program.Kind, result.Outcome), Took: time.Since(q.start)})
	for q.settled < len(q.batch) && q.results[q.settled].Outcome != "" {
		if err := q.settle(context.WithoutCancel(ctx), q.batch[q.settled], q.results[q.settled]); err != nil {
			fail(err)
			return
		}
		q.settled++
	}
}

// settle stores a judged candidate and publishes it.
func (q *queue) settle(ctx context.Context, c candidate, result judge.Result) error {
	p, note := c.program, c.program.Message
	p.judged(result)
	if note != "" {
		p.Message = note + "; " + p.Message
	}
	if first := q.first[p.Hash]; p.Outcome == problems.Duplicate {
		p.DuplicateOf = first.ID
	}
	e := evaluation(result, 0)
	e.Message = p.Message
	s := q.round.search
	id, err := s.store.AddProgram(ctx, p.row(q.round.branch), e)
	if err != nil {
		return fmt.Errorf("engine: round %d: a judged program could not be stored: %w", q.round.n, err)
	}
	s.update(func() {
		p.ID, p.added = id, s.clock()
		c.done(p)
	})
	return nil
}

func (p *Program) label() string {
	if p.ID == 0 {
		return fmt.Sprintf("another %s program of this round", p.Kind)
	}
	return fmt.Sprintf("program %d", p.ID)
}

// seen holds the first program of every hash that this branch knows, those of the open round included.
func (r *Round) seen() map[string]*Program {
	seen := map[string]*Program{}
	for _, p := range append(r.archive.with(), r.programs()...) {
		if _, ok := seen[p.Hash]; !ok {
			seen[p.Hash] = p
		}
	}
	return seen
}

// reproduce evaluates the best program of the round once more before it can become a parent, if it beats the archive. A
// program whose value differs ranks by the worse of the two, and says so.
func (r *Round) reproduce(ctx context.Context) error {
	best := archive(r.programs()).best()
	if top := r.archive.best(); best == nil || best.Repeats > 0 || top != nil && best.Score <= top.Score {
		return nil
	}
	again, err := r.search.evaluator.Evaluate(ctx, r.search.problem, best.Code)
	if err != nil {
		return err
	}
	e := evaluation(again, best.Repeats+1)
	e.Program = best.ID
	if _, err := r.search.store.AddEvaluation(context.WithoutCancel(ctx), e); err != nil {
		return fmt.Errorf("engine: round %d: an evaluation could not be stored: %w", r.n, err)
	}
	r.replace(best, best.repeated(again))
	return r.reproduce(ctx) // the next one may be the best now
}

// repeated is p after one more evaluation.
func (p *Program) repeated(again judge.Result) *Program {
	q := *p
	q.Repeats++
	value, score := orNaN(again.Verdict.Value), orNaN(again.Verdict.Numbers.SearchScore)
	switch {
	case again.Outcome == p.Outcome && value == p.Value:
		q.Reproduced++
	case !again.Outcome.Ranked() || math.IsNaN(score):
		q.Outcome, q.Score = again.Outcome, math.NaN()
		q.Message = fmt.Sprintf("not reproduced: run again it is %s; %s", again.Outcome, again.Message)
	default:
		q.Message = fmt.Sprintf("not reproduced: value %v, run again %v; the worse one ranks. %s", p.Value, value, p.Message)
		if score < p.Score {
			q.Value, q.Score, q.Numbers = value, score, again.Verdict.Numbers
		}
	}
	return &q
}

// replace publishes a program in the place of its former self.
func (r *Round) replace(old, now *Program) {
	r.search.update(func() {
		for _, sw := range r.swarms {
			for _, sum := range sw.summaries {
				if sum.Program == old {
					sum.Program = now
				}
			}
		}
		for _, e := range r.tunes {
			if e.Program == old {
				e.Program = now
			}
		}
	})
}

// programs lists the round's judged programs: those of its present texts and edits.
func (r *Round) programs() []*Program {
	var list []*Program
	for _, sw := range r.swarms {
		for _, sum := range sw.summaries {
			if sum.Program != nil {
				list = append(list, sum.Program)
			}
		}
	}
	for _, e := range r.tunes {
		if e.Program != nil {
			list = append(list, e.Program)
		}
	}
	return list
}

// commit puts the round's programs into the archive of its branch.
func (r *Round) commit(ctx context.Context) error {
	if err := r.ready(Committed, nil); err != nil {
		return err
	}
	if stage := r.stage(); stage != Evaluated {
		return fmt.Errorf("engine: %w: round %d is %s; Commit needs %s first", ErrStage, r.n, stage, doing[r.missing()])
	}
	start := time.Now()
	s := r.search
	s.update(func() { r.committed = true })
	r.spent("commit", -1, start)
	if err := r.save(context.WithoutCancel(ctx)); err != nil {
		s.update(func() { r.committed = false })
		return err
	}
	s.update(func() {
		b := s.branches[r.branch]
		b.archive, b.history = b.archive.with(r.programs()...), r.history
		b.rounds = append(b.rounds, r)
	})
	report(ctx, Event{Round: r.n, Stage: "commit", Swarm: -1, Done: 1, Total: 1, Unit: "rounds", Text: s.Standing(), Took: time.Since(start)})
	return nil
}

// missing is the first stage that the round has not reached.
func (r *Round) missing() Stage {
	stage := r.stage()
	if stage == Written && !r.tuned {
		return Tuned
	}
	return min(stage+1, Evaluated)
}

// stored is a program read back.
func stored(row store.Program, problem problems.Problem) *Program {
	p := &Program{ID: row.ID, Hash: row.Hash, Kind: Kind(row.Kind), Round: row.Round, Swarm: row.Swarm, Parents: row.Parents,
		Description: row.Description, Code: row.Code, problem: problem, Value: math.NaN(), Score: math.NaN()}
	for i, e := range row.Evaluations {
		result := judge.Result{Outcome: e.Outcome, Message: e.Message, Stdout: e.Stdout, Stderr: e.Stderr, CPU: e.CPU, Wall: e.Wall, Tier: e.Tier, Host: e.Host,
			Verdict: problems.Verdict{Outcome: e.Outcome, Value: e.Value, Claim: e.Claim, Strict: e.Strict, Numbers: e.Numbers, Margins: e.Margins}}
		if i == 0 {
			p.judged(result)
			continue
		}
		p = p.repeated(result)
	}
	return p
}
