package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
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
func (r *Round) evaluate(ctx context.Context, swarms []*Swarm, edits []*Edit) error {
	if err := r.ready(Evaluated, swarms); err != nil {
		return err
	}
	start := time.Now()
	batch := r.candidates(swarms, edits)
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
func (r *Round) candidates(swarms []*Swarm, edits []*Edit) []candidate {
	var batch []candidate
	for _, sw := range swarms {
		for k, sum := range sw.summaries {
			if sum.Program == nil {
				p := r.candidate(sw.kind, sw.index, k, sw.parents, sum.Description, sum.Code)
				batch = append(batch, candidate{p, func(p *Program) { sw.summaries[k] = sum.became(p) }})
			}
		}
	}
	for _, e := range edits {
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
		Hash: python.Hash(code), problem: r.search.problem, parent: parents[0], branch: r.branch}
	if len(added) > 0 {
		p.Message = fmt.Sprintf("imports added: %q", added)
	}
	for _, parent := range parents {
		p.Parents = append(p.Parents, parent.ID)
	}
	return p
}

// judge gives every candidate a verdict, several at a time, and stores them in the order of the batch, each as soon as all
// before it are judged, so that ids do not depend on how the judge raced. Duplicates are found before anything runs. When
// one cannot be judged, what the others got is stored all the same.
func (r *Round) judge(ctx context.Context, batch []candidate, start time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := &queue{round: r, batch: batch, originals: r.originals(batch), results: make([]judge.Result, len(batch)), start: start}
	slots := make(chan struct{}, r.search.parallel)
	var wg sync.WaitGroup
	for i, c := range batch {
		if result, known := q.known(i); known {
			q.put(ctx, i, result, cancel)
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result, err := r.search.evaluator.Evaluate(ctx, r.search.problem, c.program.Code)
			if err == nil && result.Outcome == "" {
				err = errors.New("engine: the judge gave no outcome")
			}
			if err != nil {
				cancel(err)
				return
			}
			q.put(ctx, i, result, cancel)
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return errors.Join(err, q.flush(ctx))
	}
	return nil
}

// originals gives for each candidate the earlier program with its hash, nil when there is none: of the branch, of the
// round, or before it in the batch.
func (r *Round) originals(batch []candidate) []*Program {
	first := map[string]*Program{}
	for _, p := range r.known() {
		if _, ok := first[p.Hash]; !ok {
			first[p.Hash] = p
		}
	}
	originals := make([]*Program, len(batch))
	for i, c := range batch {
		if c.program.Code == "" {
			continue
		}
		if originals[i] = first[c.program.Hash]; originals[i] == nil {
			first[c.program.Hash] = c.program
		}
	}
	return originals
}

// known lists the programs that a candidate may repeat: those of the branch, also the ones that Lag hides from the draws,
// and the round's own.
func (r *Round) known() []*Program {
	return append(r.search.branches[r.branch].archive.with(), r.programs()...)
}

// queue collects the results of a batch. mu guards results, settled and the ids of the batch's programs.
type queue struct {
	round     *Round
	batch     []candidate
	originals []*Program // of each candidate; nil: it is new
	start     time.Time
	mu        sync.Mutex
	results   []judge.Result
	settled   int // results[:settled] are stored
}

// known is the result of the i-th candidate when it holds no program or repeats an earlier one: it is not run.
func (q *queue) known(i int) (judge.Result, bool) {
	switch {
	case q.batch[i].program.Code == "":
		return judge.Result{Outcome: problems.SyntaxError, Message: "the reply holds no program"}, true
	case q.originals[i] != nil:
		return judge.Result{Outcome: problems.Duplicate}, true
	}
	return judge.Result{}, false
}

// put takes the i-th result and stores all that now stand in an unbroken row.
func (q *queue) put(ctx context.Context, i int, result judge.Result, fail func(error)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.results[i] = result
	report(ctx, Event{Round: q.round.n, Stage: "evaluate", Swarm: -1, Done: q.done(), Total: len(q.batch), Unit: "programs",
		Text: fmt.Sprintf("%s: %s", q.batch[i].program.Kind, result.Outcome), Took: time.Since(q.start)})
	for q.settled < len(q.batch) && q.results[q.settled].Outcome != "" {
		if err := q.settle(ctx, q.settled); err != nil {
			fail(err)
			return
		}
		q.settled++
	}
}

// done counts the results that are there.
func (q *queue) done() int {
	n := 0
	for _, result := range q.results {
		if result.Outcome != "" {
			n++
		}
	}
	return n
}

// flush stores the results behind one that is missing, so that their work is not lost.
func (q *queue) flush(ctx context.Context) error {
	for i := q.settled; i < len(q.batch); i++ {
		if original := q.originals[i]; q.results[i].Outcome == "" || original != nil && original.ID == 0 {
			continue
		}
		if err := q.settle(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// settle stores the i-th candidate with its result and publishes it.
func (q *queue) settle(ctx context.Context, i int) error {
	p, result, s := q.batch[i].program, q.results[i], q.round.search
	note := p.Message
	if original := q.originals[i]; original != nil && result.Outcome == problems.Duplicate {
		p.DuplicateOf, result.Message = original.ID, fmt.Sprintf("the same as program %d", original.ID)
	}
	p.judged(result)
	if note != "" {
		p.Message = strings.TrimSuffix(note+"; "+p.Message, "; ")
	}
	if err := s.accept(p); err != nil {
		return err
	}
	e := evaluation(result, 0)
	e.Message = p.Message
	id, err := s.store.AddProgram(context.WithoutCancel(ctx), p.row(q.round.branch), e)
	if err != nil {
		return fmt.Errorf("engine: round %d: a judged program could not be stored: %w", q.round.n, err)
	}
	s.update(func() {
		p.ID, p.added = id, s.clock()
		q.batch[i].done(p)
	})
	return nil
}

// accept asks the Accept policy about a program. Its panic is an error: this may run on a goroutine of ours, where a
// panic would end the process.
func (s *Search) accept(p *Program) (err error) {
	if s.opts.Accept == nil || !p.Ranked() {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("engine: the Accept policy panicked: %v", v)
		}
	}()
	p.refused = !s.opts.Accept(p)
	return nil
}

// unduplicate takes the verdict "duplicate" back where the earlier program was written anew and is gone. The caller holds
// the search's mu.
func (r *Round) unduplicate() {
	here := map[int64]bool{}
	for _, p := range r.known() {
		here[p.ID] = true
	}
	orphan := func(p *Program) bool { return p != nil && p.Outcome == problems.Duplicate && !here[p.DuplicateOf] }
	for _, sw := range r.swarms {
		for k, sum := range sw.summaries {
			if orphan(sum.Program) {
				sw.summaries[k], sw.stage = sum.became(nil), min(sw.stage, Written)
			}
		}
	}
	for _, e := range r.tunes {
		if orphan(e.Program) {
			e.Program = nil
		}
	}
}

// reproduce evaluates the best program of the round once more before it can become a parent, if it beats the archive. A
// program whose value differs ranks by the worse of the two, and says so.
func (r *Round) reproduce(ctx context.Context) error {
	best := archive(nil).with(r.programs()...).best()
	if top := r.search.branches[r.branch].archive.best(); best == nil || best.Repeats > 0 || top != nil && best.Score <= top.Score {
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
	now := best.repeated(again)
	if err := r.search.accept(now); err != nil {
		return err
	}
	r.replace(best, now)
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
			for k, sum := range sw.summaries {
				if sum.Program == old {
					sw.summaries[k] = sum.became(now)
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

// programs lists the round's judged programs: those of its present texts and edits. Texts of a stale swarm are not present.
func (r *Round) programs() []*Program {
	var list []*Program
	for _, sw := range r.swarms {
		for _, sum := range sw.summaries {
			if sum.Program != nil && sw.stage >= Written {
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
	r.spent("commit", -1, start)
	s.update(func() { r.committed = true })
	if err := r.save(context.WithoutCancel(ctx)); err != nil {
		s.update(func() { r.committed = false })
		return err
	}
	s.update(func() {
		b := s.branches[r.branch]
		b.archive, b.history = b.archive.with(r.programs()...), r.refinements()
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
		Description: row.Description, Code: row.Code, problem: problem, branch: row.Branch, Value: math.NaN(), Score: math.NaN()}
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
