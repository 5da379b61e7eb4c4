package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/engine/judge"
	"skep/engine/lm"
	"skep/engine/lm/cpu"
	"skep/engine/lm/lmtest"
	"skep/plotting"
	"skep/problems"
	"skep/problems/value"
)

// toy is a problem whose programs are worth the number they assign to VALUE.
type toy struct{}

func (toy) Info() problems.Info {
	return problems.Info{Name: "toy", Title: "A toy", Sense: problems.Maximize, Entry: "run", Reference: 10}
}
func (toy) Statement() string                   { return "Return the largest VALUE." }
func (toy) Initial() string                     { return "VALUE = 1.0\nLIMIT = 5\n\n\ndef run():\n    return VALUE\n" }
func (toy) Verify(value.Value) problems.Verdict { panic("the toy judge verifies") }
func (toy) Picture(value.Value) *plotting.Figure {
	return plotting.Trajectory(archive(nil))
}

func (a archive) Trace() []plotting.Point { return a.trace() }

// toyJudge reads VALUE from the text of a program. It counts what it judged.
type toyJudge struct {
	mu    sync.Mutex
	count int
	codes []string
}

var valueLine = regexp.MustCompile(`(?m)^VALUE = \(?(-?[\d.]+)`)

func (j *toyJudge) Evaluate(ctx context.Context, _ problems.Problem, code string) (judge.Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	j.codes = append(j.codes, code)
	m := valueLine.FindStringSubmatch(code)
	if m == nil {
		return judge.Result{Outcome: problems.Exception, Message: "NameError: VALUE"}, ctx.Err()
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return judge.Result{Outcome: problems.Exception, Message: err.Error()}, nil
	}
	score := v / 10
	return judge.Result{Outcome: problems.OK, Tier: "toy", Verdict: problems.Verdict{Outcome: problems.OK, Value: &v, Numbers: problems.Numbers{SearchScore: &score}}}, ctx.Err()
}

func (j *toyJudge) Close() error { return nil }

// scripted is a real backend whose texts are dictated: the n-th block that a text is decoded into gets say(n). Hidden states
// and cached keys stay the real ones.
type scripted struct {
	lm.Backend
	say   func(n int) string
	texts map[lm.BlockID]*script
	begun int
}

type script struct {
	tokens []lm.Token
	pos    int // of the row that draws tokens[0]
}

func (b *scripted) Pass(ctx context.Context, spans []lm.Span) ([]lm.Output, error) {
	out, err := b.Backend.Pass(ctx, spans)
	if err != nil {
		return nil, err
	}
	for i, sp := range spans {
		if sp.Want.TopK == 0 && !sp.Want.Logits {
			continue
		}
		sc := b.texts[sp.Into]
		if sc == nil || sp.At == 0 {
			sc = &script{pos: sp.Pos + len(sp.Tokens) - 1}
			for _, c := range []byte(b.say(b.begun)) {
				sc.tokens = append(sc.tokens, byteToken(c))
			}
			sc.tokens = append(sc.tokens, 258) // <|im_end|>
			b.begun++
			b.texts[sp.Into] = sc
		}
		for row := range out[i].Top {
			at := sp.Pos + len(sp.Tokens) - len(out[i].Top) + row - sc.pos
			token := sc.tokens[min(at, len(sc.tokens)-1)]
			out[i].Top[row] = lm.Ranking{Tokens: []lm.Token{token}, Logits: []float32{1}, LogSum: 1}
		}
	}
	return out, nil
}

// byteToken is the tiny model's token of a byte: its vocabulary lists the bytes in order.
func byteToken(c byte) lm.Token { return lm.Token(c) }

// program is a reply with a program worth v.
func program(v float64) string {
	return fmt.Sprintf("Idea worth %v.\n```python\nVALUE = %v\nLIMIT = 5\n\n\ndef run():\n    return VALUE\n```\n", v, v)
}

// fixture is a search on the toy problem with the tiny model.
type fixture struct {
	*Search
	judge   *toyJudge
	backend *scripted
}

// small are numbers that keep a test round short.
var small = Numbers{Agents: 5, Steps: 3, Keep: 3, NewTokens: 400, Tries: 1, Tunes: 2, Form: "program", CPU: time.Second, Wall: time.Second}

// begin opens a search in dir. say dictates the texts in order of swarms and rounds; nil lets the model babble.
func begin(t *testing.T, dir string, o Options, say func(n int) string) *fixture {
	t.Helper()
	return beginWith(t, lmtest.Tiny(t), dir, o, say)
}

func beginWith(t *testing.T, m *lm.Model, dir string, o Options, say func(n int) string) *fixture {
	t.Helper()
	o.Problem, o.Model = "toy", "tiny"
	st, o, err := openStore(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	real, err := cpu.New(m, cpu.Options{Threads: max(1, o.Threads)})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{judge: &toyJudge{}, backend: &scripted{Backend: real, say: say, texts: map[lm.BlockID]*script{}}}
	var b lm.Backend = real
	if say != nil {
		b = f.backend
	}
	if f.Search, err = open(t.Context(), dir, o, st, tools{toy{}, m, b, f.judge}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.store.Close() })
	return f
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRoundStepByStep(t *testing.T) {
	values := []float64{2, 3, 3, 0.5}
	say := func(n int) string {
		switch {
		case n < 4:
			return program(values[n])
		case n == 4:
			return "1: 4.5\n"
		default:
			return "nothing\n"
		}
	}
	f := begin(t, t.TempDir(), Options{Numbers: small}, say)
	ctx := t.Context()
	r := must[*Round](t)(f.Next(ctx))
	if again := must[*Round](t)(f.Next(ctx)); again != r {
		t.Error("Next formed a second round while one is open")
	}
	var stages []Stage
	for _, step := range []func(context.Context) error{r.Read, r.Reason, r.Filter, r.Transfer, func(ctx context.Context) error { return r.Write(ctx) }, r.Tune, r.Evaluate, r.Commit} {
		stages = append(stages, r.Stage())
		noError(t, step(ctx))
	}
	if want := []Stage{Formed, Formed, Reasoned, Filtered, Filtered, Written, Tuned, Evaluated}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	best := f.Best()
	if best.Value != 4.5 || best.Kind != Tuner || best.Repeats != 1 || best.Reproduced != 1 {
		t.Errorf("best is %v by %s, reproduced %d of %d", best.Value, best.Kind, best.Reproduced, best.Repeats)
	}
	var outcomes []problems.Outcome
	for _, p := range f.Programs() {
		outcomes = append(outcomes, p.Outcome)
	}
	if want := []problems.Outcome{problems.OK, problems.OK, problems.OK, problems.Duplicate, problems.OK, problems.OK}; !slices.Equal(outcomes, want) {
		t.Errorf("outcomes %v, want %v", outcomes, want)
	}
	if err := r.Reason(ctx); err == nil || !strings.Contains(err.Error(), "Fork it") {
		t.Errorf("a committed round reasoned: %v", err)
	}
	for _, v := range []interface{ SimpleRender() map[string]any }{f, r, r.swarms[0], r.swarms[0].agents[0], r.swarms[0].Summary(), best, f.Assumptions(), must[*Thoughts](t)(r.swarms[0].agents[0].Thoughts()), r.Clusters(), r.swarms[2].Clusters()} {
		if shown := v.SimpleRender(); shown["text/plain"] == "" || shown["text/plain"] == nil {
			t.Errorf("%T shows nothing", v)
		}
	}
}

func TestStageTooEarly(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	for what, step := range map[string]func() error{
		"Filter needs Reason":   func() error { return r.Filter(t.Context()) },
		"Write needs Reason":    func() error { return r.Write(t.Context()) },
		"Evaluate needs Reason": func() error { return r.Evaluate(t.Context()) },
		"Commit needs Reason":   func() error { return r.Commit(t.Context()) },
		"Drop needs Filter":     func() error { return r.swarms[0].Drop(0) },
		"Thoughts needs Reason": func() error { _, err := r.swarms[0].agents[0].Thoughts(); return err },
		"Ask needs Reason":      func() error { _, err := r.swarms[0].agents[0].Ask(t.Context(), "?"); return err },
		"Distances needs":       func() error { _, err := r.swarms[0].Distances(); return err },
	} {
		if err := step(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; want %q", err, what)
		}
	}
}

// texts of a round, to compare rounds by.
func texts(r *Round) []string {
	var list []string
	for _, sw := range r.swarms {
		for _, sum := range sw.summaries {
			list = append(list, sum.Text)
		}
	}
	for _, e := range r.tunes {
		list = append(list, e.Text)
	}
	return list
}

// latent is everything that a round computed before its texts.
func latent(r *Round) (hidden [][]float32, kept [][]int) {
	for _, sw := range r.swarms {
		for _, a := range sw.agents {
			hidden = append(hidden, a.trajectory...)
		}
		kept = append(kept, sw.kept)
	}
	return hidden, kept
}

// written runs a round until its texts are there.
func written(t *testing.T, f *fixture, step func(r *Round)) *Round {
	t.Helper()
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.Reason(t.Context()))
	noError(t, r.Filter(t.Context()))
	if step != nil {
		step(r)
	}
	noError(t, r.Write(t.Context()))
	noError(t, r.Tune(t.Context()))
	return r
}

func TestSameSeedSameRound(t *testing.T) {
	m := lmtest.Tiny(t)
	num := small
	num.NewTokens = 40
	first := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 7, Threads: 1, Numbers: num}, nil), nil)
	hidden, kept := latent(first)
	for threads := 2; threads <= 3; threads++ {
		again := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 7, Threads: threads, Numbers: num}, nil), nil)
		h, k := latent(again)
		if !slices.EqualFunc(hidden, h, slices.Equal) || !slices.EqualFunc(kept, k, slices.Equal) {
			t.Errorf("%d threads: other hidden states or kept sets", threads)
		}
		if !slices.Equal(texts(first), texts(again)) {
			t.Errorf("%d threads: other texts", threads)
		}
	}
	other := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 8, Numbers: num}, nil), nil)
	if slices.Equal(texts(first), texts(other)) {
		t.Error("another seed gives the same texts")
	}
}

// TestSwarmAloneEqualsBatch steps the swarms one by one, in another order, and gets the same round.
func TestSwarmAloneEqualsBatch(t *testing.T) {
	m := lmtest.Tiny(t)
	num := small
	num.NewTokens = 30
	whole := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 3, Numbers: num}, nil), nil)
	f := beginWith(t, m, t.TempDir(), Options{Seed: 3, Numbers: num}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	for _, sw := range slices.Backward(r.swarms) {
		noError(t, sw.Reason(t.Context()))
		noError(t, sw.Filter(t.Context()))
		noError(t, sw.Write(t.Context()))
	}
	noError(t, r.Tune(t.Context()))
	if !slices.Equal(texts(whole), texts(r)) {
		t.Error("swarms alone write other texts than together")
	}
}

func TestSetFocusTouchesOneSwarm(t *testing.T) {
	num := small
	num.NewTokens = 30
	f := begin(t, t.TempDir(), Options{Seed: 5, Numbers: num}, nil)
	r := written(t, f, nil)
	before := texts(r)
	sw := r.Kind("explore")[0]
	noError(t, sw.SetFocus("A completely different thing"))
	if !sw.Stale() || sw.Stage() != Formed || r.Stage() != Formed {
		t.Errorf("stale %v, swarm %v, round %v", sw.Stale(), sw.Stage(), r.Stage())
	}
	for _, other := range r.swarms {
		if other != sw && (other.Stale() || other.Stage() != Written) {
			t.Errorf("swarm %d was touched", other.index)
		}
	}
	noError(t, r.Reason(t.Context()))
	noError(t, r.Filter(t.Context()))
	noError(t, r.Write(t.Context()))
	after := texts(r)
	for i := range before {
		if (before[i] == after[i]) == (i == sw.index) {
			t.Errorf("text %d: changed is %v", i, before[i] != after[i])
		}
	}
	if err := sw.SetFocus(""); err == nil {
		t.Error("an empty focus was taken")
	}
}

func TestForkDiffersOnlyByItsChange(t *testing.T) {
	num := small
	num.NewTokens = 30
	f := begin(t, t.TempDir(), Options{Seed: 5, Numbers: num}, nil)
	r := written(t, f, nil)
	fork := must[*Round](t)(r.Fork(t.Context(), ""))
	if fork.Branch() != "fork-1" || fork.Stage() != r.Stage() {
		t.Fatalf("fork %s at %s, the round at %s", fork.Branch(), fork.Stage(), r.Stage())
	}
	for _, sw := range fork.swarms { // written again without a change: the same texts
		noError(t, sw.Write(t.Context()))
	}
	if !slices.Equal(texts(fork), texts(r)) {
		t.Error("a fork without a change writes other texts")
	}
	want := texts(r)
	noError(t, fork.swarms[1].Drop(fork.swarms[1].Kept()[1]))
	noError(t, fork.Write(t.Context()))
	for i, text := range texts(fork) {
		if (text == want[i]) == (i == 1) {
			t.Errorf("text %d: changed is %v", i, text != want[i])
		}
	}
	if !slices.Equal(texts(r), want) || r.swarms[1].Kept() == nil || len(r.swarms[1].Kept()) != 3 {
		t.Error("the fork changed the round it was taken from")
	}
	if _, err := r.Fork(t.Context(), "fork-1"); err == nil {
		t.Error("a second fork took the same name")
	}
	noError(t, fork.Run(t.Context()))
	if n := len(f.Programs()); n != 1 {
		t.Errorf("a fork's programs are in the main archive: %d", n)
	}
}

// TestViewIsEq6 checks the summarizer's view: blocks one behind the other without gaps, shifts as Eq. 1 has them, a hole
// where an agent was dropped.
func TestViewIsEq6(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.Reason(t.Context()))
	noError(t, r.Filter(t.Context()))
	sw := r.Kind("explore")[0]
	noError(t, r.Transfer(t.Context()))
	full := sw.View()
	at := 0
	for _, p := range full {
		if p.To != at {
			t.Errorf("%s %d stands at %d, want %d", p.What, p.Agent, p.To, at)
		}
		at += p.Tokens
	}
	v, end := seen(full)
	if end != at {
		t.Errorf("the view ends at %d, its blocks at %d", end, at)
	}
	next := 0
	for _, seg := range v {
		kv := must[lm.KV](t)(f.Search.backend.Snapshot(seg.Block))
		if seg.Len != kv.Len {
			t.Errorf("a segment shows %d of %d entries", seg.Len, kv.Len)
		}
		next += seg.Len
	}
	if next != end {
		t.Errorf("segments hold %d entries, the view %d positions", next, end)
	}
	noError(t, sw.Drop(sw.Kept()[0]))
	noError(t, sw.Transfer(t.Context()))
	holed := sw.View()
	for i := range full {
		if holed[i].To != full[i].To || holed[i].Dropped != (i == 1) {
			t.Errorf("block %d: at %d (was %d), dropped %v", i, holed[i].To, full[i].To, holed[i].Dropped)
		}
	}
	if got, _ := seen(holed); len(got) != len(v)-2 {
		t.Errorf("%d segments after dropping an agent of two blocks, %d before", len(got), len(v))
	}
}

func TestCancelKeepsTheStage(t *testing.T) {
	num := small
	num.NewTokens = 60
	m := lmtest.Tiny(t)
	want := written(t, beginWith(t, m, t.TempDir(), Options{Seed: 4, Numbers: num}, nil), nil)
	f := beginWith(t, m, t.TempDir(), Options{Seed: 4, Numbers: num}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	for _, stage := range []string{"reason", "write"} {
		step := r.Reason
		if stage == "write" {
			step = func(ctx context.Context) error { return r.Write(ctx) }
		}
		ctx, cancel := context.WithCancel(t.Context())
		ctx = WithSink(ctx, sinkFunc(func(e Event) {
			if e.Stage == stage {
				cancel()
			}
		}))
		if stage == "write" {
			noError(t, r.Reason(t.Context()))
			noError(t, r.Filter(t.Context()))
		}
		before := r.Stage()
		if err := step(ctx); err == nil {
			t.Errorf("%s was cancelled and gave no error", stage)
		}
		if stage == "write" && r.Stage() != before {
			t.Errorf("%s was cancelled and moved the round to %s", stage, r.Stage())
		}
		cancel()
	}
	noError(t, r.Write(t.Context()))
	noError(t, r.Tune(t.Context()))
	if !slices.Equal(texts(want), texts(r)) {
		t.Error("after cancelled stages the round has other texts")
	}
}

type sinkFunc func(Event)

func (f sinkFunc) Progress(e Event) { f(e) }

// TestReopenAtEveryStage closes the run after each stage, opens it again and goes on; the round ends as one that was
// never closed.
func TestReopenAtEveryStage(t *testing.T) {
	m := lmtest.Tiny(t)
	num := small
	num.NewTokens = 30
	straight := beginWith(t, m, t.TempDir(), Options{Seed: 6, Numbers: num}, nil)
	noError(t, straight.RunRounds(t.Context(), 2))
	dir := t.TempDir()
	f := beginWith(t, m, dir, Options{Seed: 6, Numbers: num}, nil)
	for range 2 {
		for _, step := range []func(*Round) error{
			func(r *Round) error { return nil },
			func(r *Round) error { return r.Reason(t.Context()) },
			func(r *Round) error { return r.Filter(t.Context()) },
			func(r *Round) error { return r.Write(t.Context()) },
			func(r *Round) error { return r.Tune(t.Context()) },
			func(r *Round) error { return r.Evaluate(t.Context()) },
			func(r *Round) error { return r.Commit(t.Context()) },
		} {
			r := must[*Round](t)(f.Next(t.Context()))
			noError(t, step(r))
			noError(t, f.store.Close())
			f = beginWith(t, m, dir, Options{Seed: 6}, nil)
		}
	}
	want, got := straight.Rounds(), f.Rounds()
	if len(got) != len(want) {
		t.Fatalf("%d rounds, want %d", len(got), len(want))
	}
	for i := range want {
		if !slices.Equal(texts(want[i]), texts(got[i])) {
			t.Errorf("round %d has other texts", i+1)
		}
		_, a := latent(want[i])
		_, b := latent(got[i])
		if !slices.EqualFunc(a, b, slices.Equal) {
			t.Errorf("round %d keeps other agents", i+1)
		}
	}
	if a, b := len(straight.Programs()), len(f.Programs()); a != b {
		t.Errorf("%d programs, want %d", b, a)
	}
}

// TestReadDuringJob reads everything from other goroutines while a job runs; the race detector looks on.
func TestReadDuringJob(t *testing.T) {
	n := 0
	f := begin(t, t.TempDir(), Options{Numbers: small}, func(int) string { n++; return program(1 + float64(n)/1000) })
	job := f.Start(t.Context(), time.Hour)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for len(f.Rounds()) < 3 && job.Running() {
				look(f.Search)
			}
		})
	}
	wg.Wait()
	err := f.Rounds()[0].Write(t.Context())
	if err == nil || !strings.Contains(err.Error(), "job.Pause()") {
		t.Errorf("an edit during a job: %v", err)
	}
	noError(t, job.Pause())
	if job.Running() {
		t.Error("a paused job runs")
	}
	noError(t, job.Wait(t.Context()))
	noError(t, f.RunRounds(t.Context(), 1))
}

// look reads all that can be read.
func look(s *Search) {
	s.SimpleRender()
	s.Trace()
	for _, r := range s.Rounds() {
		r.SimpleRender()
		r.Timings()
		r.Clusters()
		for _, sw := range r.Swarms() {
			sw.SimpleRender()
			sw.View()
			sw.Clusters("way")
			for _, sum := range sw.Summaries() {
				sum.SimpleRender()
			}
			for _, a := range sw.Agents() {
				a.SimpleRender()
				if a.Trajectory() != nil {
					a.Thoughts()
				}
			}
		}
	}
	if best := s.Best(); best != nil {
		best.SimpleRender()
	}
}
