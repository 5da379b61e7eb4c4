package store

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"skep/problems/spec"
)

func testMeta() Meta {
	return Meta{SkepVersion: "test", Problem: "circles_square_26", Model: "smollm2-135m", ModelHash: "ab12", Backend: "cpu",
		Profile: "cpu", Seed: math.MinInt64, Options: json.RawMessage(`{"Steps":8}`), Assumptions: json.RawMessage(`[1]`), AssumptionsHash: "cd"}
}

func create(t *testing.T) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "run"), testMeta())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func reopen(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func ptr[T any](v T) *T { return &v }

// when is a time as exact as the store keeps it.
func when(s float64) time.Time { return time.UnixMicro(int64(s * 1e6)).UTC() }

func sampleProgram() Program {
	return Program{Hash: "h1", Branch: Main, Round: 3, Swarm: 0, Kind: "hybridize", Parents: []int64{4, 2}, Description: "two ideas",
		Code: "def run_packing():\n\treturn 'å\x00z'\n", Created: when(1.8e9), LinesAdded: 5, LinesRemoved: 1}
}

func sampleEvaluation() Evaluation {
	return Evaluation{Outcome: spec.Infeasible, Message: "circles 3 and 7 overlap by 1e-3", Value: ptr(2.5), Claim: ptr(math.Inf(1)), Strict: ptr(false),
		Numbers: spec.Numbers{SearchScore: ptr(0.5), Table1Score: ptr(0.25), TableS5Value: nil, StrictValue: ptr(math.Copysign(0, -1))},
		Margins: []spec.Margin{{Family: "pairs", Slack: -1e-3, At: "circles 3 and 7"}, {Family: "walls", Slack: math.Inf(-1)}},
		Frame:   []byte{0, 1, 255}, Stdout: "out", Stderr: "err", CPU: 1500 * time.Millisecond, Wall: 2 * time.Second, Tier: "C", Host: "box", Created: when(1.8e9 + 0.25)}
}

func add(t *testing.T, s *Store, p Program, e Evaluation) int64 {
	t.Helper()
	id, err := s.AddProgram(context.Background(), p, e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestMetaComesBack(t *testing.T) {
	s := reopen(t, create(t))
	got, err := s.Meta(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := testMeta()
	want.RunID, want.Created, want.Branch = got.RunID, got.Created, Main
	if !reflect.DeepEqual(got, want) || len(got.RunID) != 36 || time.Since(got.Created) > time.Hour {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if err := s.SetBranch(context.Background(), "what-if"); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Meta(context.Background()); got.Branch != "what-if" {
		t.Errorf("branch %q", got.Branch)
	}
}

func TestProgramComesBack(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	p, e := sampleProgram(), sampleEvaluation()
	if id := add(t, s, p, e); id != 1 {
		t.Errorf("first id %d", id)
	}
	again := e
	again.Program, again.Repeat, again.Outcome = 1, 1, spec.TimeoutCPU
	if _, err := s.AddEvaluation(ctx, again); err != nil {
		t.Fatal(err)
	}
	if id := add(t, s, Program{Kind: "tuner", Swarm: -1}, Evaluation{Outcome: spec.SyntaxError, Value: ptr(math.NaN())}); id != 2 {
		t.Errorf("second id %d", id)
	}

	s = reopen(t, s)
	list, err := s.Programs(ctx)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d programs, %v", len(list), err)
	}
	p.ID = 1
	e.ID, e.Program, again.ID = 1, 1, 2
	e.Frame, again.Frame = nil, nil
	p.Evaluations = []Evaluation{e, again}
	if !reflect.DeepEqual(list[0], p) {
		t.Errorf("got %+v\nwant %+v", list[0], p)
	}
	if q := list[1]; q.Swarm != -1 || q.Branch != Main || q.Parents != nil || q.Evaluations[0].Value != nil || q.Evaluations[0].Strict != nil {
		t.Errorf("an empty program came back as %+v", q)
	}
	if frame, err := s.Frame(ctx, 2); err != nil || string(frame) != "\x00\x01\xff" {
		t.Errorf("frame %v, %v", frame, err)
	}
	if frame, err := s.Frame(ctx, 3); err != nil || frame != nil {
		t.Errorf("no frame came back as %v, %v", frame, err)
	}
}

func TestBest(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	if _, ok, err := s.Best(ctx, Main); ok || err != nil {
		t.Fatalf("an empty run has a best: %v %v", ok, err)
	}
	score := func(branch string, v float64, o spec.Outcome) int64 {
		return add(t, s, Program{Branch: branch, Kind: "fresh"}, Evaluation{Outcome: o, Numbers: spec.Numbers{SearchScore: ptr(v)}})
	}
	score(Main, 0.5, spec.OK)
	want := score(Main, 0.7, spec.OK)
	score(Main, 0.7, spec.OK)
	score(Main, 0.9, spec.Suspicious)
	score("side", 0.8, spec.OK)
	if p, ok, err := s.Best(ctx, Main); err != nil || !ok || p.ID != want {
		t.Errorf("best is %d (%v, %v), want %d", p.ID, ok, err, want)
	}
}

func sampleRound(parent int64) Round {
	swarm := Swarm{Kind: "explore", Focus: "A physics-inspired method", Parents: []int64{parent}, Temperature: 0.8, Stage: Filtered, Kept: []int{1, 0},
		View: json.RawMessage(`{"Blocks":[1]}`), Extra: json.RawMessage(`{"Margins":[0.5]}`),
		Agents:    []Agent{{Phrasing: 4, Way: 8, Parent: parent, Prompt: "Consider <this> & that", Tokens: 12, Kept: true}, {Prompt: "bad \xff", Kept: true}, {Dropped: true}},
		Summaries: []Summary{{Text: "first", Reason: "stop", Tokens: 7, Took: time.Second, Drafted: 3, Accepted: 2, Temperature: 0.8}, {Program: parent, Text: "second"}},
	}
	return Round{Branch: Main, N: 1, Stage: Formed, Seen: parent, Started: when(1.8e9), Swarms: []Swarm{swarm, {Kind: "fresh", Stage: Formed, Stale: true}},
		Timings: []Timing{{Stage: "form", Swarm: -1, Started: when(1.8e9), Took: time.Second}, {Stage: "reason", Swarm: 1, Started: when(1.8e9 + 1), Took: time.Minute}}}
}

func TestRoundComesBackAtEachStage(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	r := sampleRound(add(t, s, sampleProgram(), sampleEvaluation()))
	save := func() {
		t.Helper()
		if err := s.SaveRound(ctx, r); err != nil {
			t.Fatal(err)
		}
		want := r
		want.Swarms = append([]Swarm(nil), r.Swarms...)
		if len(want.Swarms) > 0 && len(want.Swarms[0].Agents) > 1 {
			want.Swarms[0].Agents = append([]Agent(nil), want.Swarms[0].Agents...)
			want.Swarms[0].Agents[1].Prompt = "bad \uFFFD"
		}
		got, err := s.Round(ctx, Main, 1)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
		}
	}
	save()
	r.Stage, r.Swarms[0].Stale, r.Swarms[0].Kept = Committed, true, []int{}
	r.Swarms[0].Agents, r.Swarms[0].Summaries = r.Swarms[0].Agents[:2], r.Swarms[0].Summaries[:1]
	r.Timings = r.Timings[:1]
	save()
	r.Swarms = r.Swarms[:1]
	save()
	r.Swarms[0].Agents = nil
	save()
}

func TestForkComesAfterItsOrigin(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	for _, r := range []Round{{N: 1}, {N: 2}, {Branch: "a", N: 2, Forked: Main}, {N: 3}, {N: 1}} {
		r.Stage = Formed
		if err := s.SaveRound(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Rounds(ctx)
	var order []string
	for _, r := range list {
		order = append(order, r.Branch+string(rune('0'+r.N)))
	}
	if got := strings.Join(order, " "); err != nil || got != "main1 main2 a2 main3" {
		t.Errorf("order %q, %v", got, err)
	}
}

func TestRefusedRowsSayWhy(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"outcome": {func() error {
			_, err := s.AddProgram(ctx, Program{Kind: "fresh"}, Evaluation{Outcome: "great"})
			return err
		}, "outcome"},
		"kind": {func() error {
			_, err := s.AddProgram(ctx, Program{Kind: "magic"}, Evaluation{Outcome: "ok"})
			return err
		}, "kind"},
		"frame": {func() error {
			_, err := s.AddProgram(ctx, Program{Kind: "fresh"}, Evaluation{Outcome: "ok", Frame: make([]byte, MaxFrame+1)})
			return err
		}, "16777217"},
		"program":  {func() error { _, err := s.AddEvaluation(ctx, Evaluation{Program: 99, Outcome: "ok"}); return err }, "FOREIGN KEY"},
		"stage":    {func() error { return s.SaveRound(ctx, Round{N: 1, Stage: "begun"}) }, "stage"},
		"json":     {func() error { return s.SaveRound(ctx, Round{N: 1, Stage: Formed, Extra: json.RawMessage("{")}) }, "extra"},
		"branch":   {func() error { return s.SaveRound(ctx, Round{N: 1, Stage: Formed, Branch: "../x"}) }, "branch"},
		"shape":    {func() error { return s.SaveHidden(ctx, Main, 1, Means, []int{2, 2}, make([]float32, 3)) }, "[2 2]"},
		"no round": {func() error { return s.SaveHidden(ctx, Main, 9, Means, []int{1}, make([]float32, 1)) }, "FOREIGN KEY"},
		"unknown":  {func() error { _, err := s.Program(ctx, 12); return err }, "no program 12"},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if id := add(t, s, sampleProgram(), sampleEvaluation()); id != 1 {
		t.Errorf("a refused program took an id: next is %d", id)
	}
}

func TestOutputIsCut(t *testing.T) {
	s := create(t)
	e := sampleEvaluation()
	e.Stdout = "head" + strings.Repeat("é", MaxOutput) + "tail"
	add(t, s, sampleProgram(), e)
	p, err := s.Program(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	out := p.Evaluations[0].Stdout
	if len(out) > MaxOutput+8 || !strings.HasPrefix(out, "headé") || !strings.HasSuffix(out, "étail") || !strings.Contains(out, "bytes left out") {
		t.Errorf("%d bytes: %.20q … %q", len(out), out, out[len(out)-20:])
	}
}

func TestEvents(t *testing.T) {
	s := create(t)
	ctx := context.Background()
	if err := errors.Join(s.Event(ctx, 0, "written", "tokens", 2140, "api_key", "sk-1"), s.Event(ctx, 8, "full", "round", 3)); err != nil {
		t.Fatal(err)
	}
	all, err := s.Events(ctx, 0)
	if err != nil || len(all) != 3 || !strings.Contains(string(all[0].Line), `"msg":"opened"`) {
		t.Fatalf("%+v, %v", all, err)
	}
	list, err := s.Events(ctx, all[0].ID)
	if err != nil || len(list) != 2 || list[0].Level != "INFO" || list[1].Level != "ERROR" {
		t.Fatalf("%+v, %v", list, err)
	}
	var line map[string]any
	if err := json.Unmarshal(list[0].Line, &line); err != nil {
		t.Fatal(err)
	}
	if line["msg"] != "written" || line["tokens"] != 2140.0 || line["api_key"] != "redacted" {
		t.Errorf("line %v", line)
	}
	if rest, err := s.Events(ctx, list[0].ID); err != nil || len(rest) != 1 {
		t.Errorf("%d events after the first, %v", len(rest), err)
	}
}

func TestFolderWithOddName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%41é;&")
	s, err := Create(dir, testMeta())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(filepath.Join(dir, dbName)); err != nil {
		t.Error(err)
	}
}

func TestFolderByALinkAndByARelativeName(t *testing.T) {
	s := create(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Dir(), link); err != nil {
		t.Fatal(err)
	}
	var used *InUseError
	if _, err := Open(link); !errors.As(err, &used) {
		t.Errorf("a run in use, by another name: %v", err)
	}
	id := add(t, s, sampleProgram(), sampleEvaluation())
	t.Chdir(filepath.Dir(s.Dir()))
	for _, name := range []string{link, "run", "./run/"} {
		v, err := View(name)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := v.Program(context.Background(), id); err != nil || p.Hash != "h1" {
			t.Errorf("%s: %v", name, err)
		}
		v.Close()
	}
}

func TestWritingAfterClose(t *testing.T) {
	s := create(t)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddProgram(context.Background(), sampleProgram(), sampleEvaluation()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestCancelledBeforeQueued(t *testing.T) {
	s := create(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.AddProgram(ctx, sampleProgram(), sampleEvaluation()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if list, err := s.Programs(context.Background()); err != nil || len(list) != 0 {
		t.Errorf("%d programs, %v", len(list), err)
	}
}
