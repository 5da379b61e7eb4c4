package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"time"

	"skep/engine/judge"
	"skep/engine/lm"
	"skep/engine/lm/cpu"
	"skep/engine/python"
	"skep/engine/store"
	"skep/problems"
)

// tools are what a search works with. open takes them so that tests can bring their own.
type tools struct {
	problem   problems.Problem
	model     *lm.Model
	backend   lm.Backend
	evaluator Evaluator
}

// opening is a search that this process has open, or is about to.
type opening struct {
	done   chan struct{} // closed when search and err are there
	search *Search
	err    error
}

var (
	openMu   sync.Mutex
	openRuns = map[string]*opening{} // by folder: a cell that opens a run again gets the open search
)

// Open opens the run in dir, or creates it. Opening a run that this process has open gives the same Search; other options
// than those of an existing run are an error that prints the difference. Python, Threads, Evaluators and the policies stay
// those that it was opened with: Close it first to change them. What is missing is made ready first:
// the model is pulled, the Python environment made, the initial program judged.
func Open(dir string, o Options) (*Search, error) { return OpenContext(context.Background(), dir, o) }

// OpenContext is Open with progress (WithSink) and a way to stop.
func OpenContext(ctx context.Context, dir string, o Options) (*Search, error) {
	if o.Threads < 0 || o.Evaluators < 0 {
		return nil, fmt.Errorf("engine: Threads %d and Evaluators %d must not be negative; 0 takes the default", o.Threads, o.Evaluators)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	mine := &opening{done: make(chan struct{})}
	openMu.Lock()
	other := openRuns[dir]
	if other == nil {
		openRuns[dir] = mine
	}
	openMu.Unlock()
	if other != nil {
		return other.wait(ctx, dir, o)
	}
	defer close(mine.done)
	mine.err = errors.New("engine: opening the run did not end") // unless what follows says otherwise
	defer func() {
		if mine.err != nil {
			openMu.Lock()
			delete(openRuns, dir)
			openMu.Unlock()
		}
	}()
	mine.search, mine.err = openRun(ctx, dir, o)
	return mine.search, mine.err
}

// wait waits for a search that another call opens and checks that its options are those asked for.
func (op *opening) wait(ctx context.Context, dir string, asked Options) (*Search, error) {
	select {
	case <-op.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if op.err != nil { // that call may have been stopped, which is no answer to this one
		return OpenContext(ctx, dir, asked)
	}
	if err := op.search.agree(asked); err != nil {
		return nil, err
	}
	return op.search, nil
}

func openRun(ctx context.Context, dir string, o Options) (*Search, error) {
	st, o, err := openStore(dir, o)
	if err != nil {
		return nil, err
	}
	s, err := equip(ctx, dir, o, st)
	if err != nil && st != nil {
		err = errors.Join(err, st.Close())
	}
	return s, err
}

// agree checks that asked options fit a run's, open fields taking the run's.
func (s *Search) agree(asked Options) error {
	fill(reflect.ValueOf(&asked.Numbers).Elem(), reflect.ValueOf(s.opts.Numbers))
	asked.Problem = cmp.Or(asked.Problem, s.opts.Problem)
	asked.Model = cmp.Or(asked.Model, s.opts.Model)
	asked.Backend = cmp.Or(asked.Backend, s.opts.Backend)
	asked.Profile = cmp.Or(asked.Profile, s.opts.Profile)
	asked.Seed = cmp.Or(asked.Seed, s.opts.Seed)
	if diff := difference(s.opts, asked); diff != "" {
		return fmt.Errorf("engine: the run in %s was made with other options: %s; open another folder, or leave these out", s.dir, diff)
	}
	return nil
}

// openStore opens the run in dir and merges its options with those asked; nil when there is no run yet.
func openStore(dir string, o Options) (*store.Store, Options, error) {
	st, err := store.Open(dir)
	if errors.Is(err, store.ErrNoRun) {
		if o.Problem == "" {
			return nil, o, fmt.Errorf("engine: there is no run in %s, and Options.Problem names no problem to start one: %v", dir, names())
		}
		o, err = o.resolved()
		return nil, o, err
	}
	if err != nil {
		return nil, o, err
	}
	kept, err := storedOptions(st, o)
	if err != nil {
		return nil, o, errors.Join(err, st.Close())
	}
	probe := Search{dir: dir, opts: kept}
	if err := probe.agree(o); err != nil {
		return nil, o, errors.Join(err, st.Close())
	}
	return st, kept, nil
}

// equip gathers the tools of a search.
func equip(ctx context.Context, dir string, o Options, st *store.Store) (*Search, error) {
	problem, err := problems.Get(o.Problem)
	if err != nil {
		return nil, err
	}
	model, err := openModel(ctx, o.Model)
	if err != nil {
		return nil, err
	}
	alignment, err := lm.Align(ctx, model, lm.AlignOptions{Progress: func(done, total int) {
		report(ctx, Event{Stage: "open", Swarm: -1, Done: done, Total: total, Unit: "rows", Text: "alignment of hidden states with embeddings (Eq. 2)"})
	}})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	backend, err := cpu.New(model, cpu.Options{Threads: o.Threads, Alignment: alignment})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	python, err := judge.Environment(ctx, judge.EnvOptions{Python: cmp.Or(o.Python, os.Getenv("SKEP_PYTHON")), Progress: func(line string) {
		report(ctx, Event{Stage: "open", Swarm: -1, Unit: "python", Text: line})
	}})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	j, err := judge.Open(ctx, judge.Options{Python: python, Evaluators: o.Evaluators})
	if err != nil {
		return nil, errors.Join(err, model.Close())
	}
	s, err := open(ctx, dir, o, st, tools{problem, model, backend, j})
	if err != nil {
		return nil, errors.Join(err, j.Close(), model.Close())
	}
	return s, nil
}

// openModel pulls a model when it is not a file and opens it.
func openModel(ctx context.Context, name string) (*lm.Model, error) {
	start := time.Now()
	path, err := lm.Pull(ctx, name, lm.PullOptions{
		Progress: func(done, total int64) {
			report(ctx, Event{Stage: "open", Swarm: -1, Done: int(done >> 20), Total: int(total >> 20), Unit: "MiB", Text: "model " + name, Took: time.Since(start)})
		},
		Log: func(line string) { report(ctx, Event{Stage: "open", Swarm: -1, Unit: "model", Text: line}) },
	})
	if err != nil {
		return nil, err
	}
	return lm.Open(path)
}

// open makes the Search of a run. st is nil for a new one.
func open(ctx context.Context, dir string, o Options, st *store.Store, t tools) (*Search, error) {
	if err := t.model.Chat.Err(); err != nil {
		return nil, fmt.Errorf("engine: model %s: %w", o.Model, err)
	}
	s := &Search{dir: dir, opts: o, problem: t.problem, model: t.model, backend: &shared{Backend: t.backend}, evaluator: t.evaluator,
		store: st, parallel: cmp.Or(o.Evaluators, min(8, runtime.NumCPU())), programKV: map[int64]stretch{}}
	if o.CPU > 0 || o.Wall > 0 {
		s.problem = limited{t.problem, o.CPU, o.Wall}
	}
	s.prompts = newPrompts(t.model, s.problem.Statement())
	if st == nil {
		return s, s.create(ctx)
	}
	var err error
	if s.meta, err = st.Meta(ctx); err != nil {
		return nil, err
	}
	if hash := s.meta.ModelHash; hash != t.model.Hash {
		return nil, fmt.Errorf("engine: the run in %s was made with another file of model %s (SHA-256 %.12s…, this one is %.12s…)", dir, o.Model, hash, t.model.Hash)
	}
	return s, s.load(ctx)
}

// create starts a run: its folder, and the initial program judged.
func (s *Search) create(ctx context.Context) error {
	start := time.Now()
	code := s.problem.Initial()
	p := &Program{Kind: Initial, Swarm: -1, Description: "the initial program", Code: code, Hash: python.Hash(code), problem: s.problem}
	result, err := s.evaluator.Evaluate(ctx, s.problem, code)
	if err != nil {
		return err
	}
	p.judged(result)
	if !p.Ranked() {
		return fmt.Errorf("engine: the initial program of %s is %s: %s", s.opts.Problem, p.Outcome, p.Message)
	}
	if s.store, err = store.Create(s.dir, s.newMeta()); err != nil {
		return err
	}
	if p.ID, err = s.store.AddProgram(ctx, p.row(store.Main), evaluation(result, 0)); err != nil {
		return errors.Join(err, s.store.Close())
	}
	s.worked = time.Since(start)
	s.branches = map[string]*branch{store.Main: {name: store.Main, archive: archive{p}}}
	report(ctx, Event{Stage: "open", Swarm: -1, Done: 1, Total: 1, Unit: "programs", Text: s.Standing()})
	return nil
}

func names() []string {
	var list []string
	for _, p := range problems.All() {
		list = append(list, p.Info().Name)
	}
	return list
}

// limited is a problem with tighter limits for its candidates.
type limited struct {
	problems.Problem
	cpu, wall time.Duration
}

func (l limited) Info() problems.Info {
	info := l.Problem.Info()
	info.Limits.CPU = tighter(info.Limits.CPU, l.cpu)
	info.Limits.Wall = tighter(info.Limits.Wall, l.wall)
	return info
}

func tighter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Close ends the search: a job stops at its next stage, the store is closed, the model unmapped. While another call is at
// work it is refused with ErrBusy. What was read from the search stays valid; calls that compute are ErrClosed. Closing
// again does nothing.
func (s *Search) Close() error {
	s.mu.Lock()
	job := s.job
	s.mu.Unlock()
	if job != nil {
		job.Pause()
	}
	err := s.exclusive("Close", func() error {
		openMu.Lock() // an Open of the folder waits until the store's lock is free
		defer openMu.Unlock()
		if op := openRuns[s.dir]; op != nil && op.search == s {
			delete(openRuns, s.dir)
		}
		s.backend.close()
		s.update(func() { s.closed = true })
		return errors.Join(s.store.Close(), s.evaluator.Close(), s.model.Close())
	})
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
