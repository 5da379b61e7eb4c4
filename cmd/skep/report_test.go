package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skep/engine/store"
	"skep/plotting"
	"skep/problems"

	"golang.org/x/net/html"
)

const evil = `</td></table><script>alert(1)</script> & "q"`

// storedTestRun writes a run of two rounds with a fork, and returns its folder.
func storedTestRun(t *testing.T) string {
	t.Helper()
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "run")
	begun := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	s, err := store.Create(dir, store.Meta{
		Created: begun, SkepVersion: version, Problem: "circles_square_26", Model: "test " + evil, ModelHash: strings.Repeat("ab", 32),
		Backend: "cpu", Profile: "cpu", Seed: 7, Options: json.RawMessage(`{"keep": 4}`), Assumptions: json.RawMessage(`[]`),
		AssumptionsHash: strings.Repeat("0", 64), Branch: store.Main,
	})
	if err != nil {
		t.Fatal(err)
	}
	add := func(round, swarm int, kind, branch string, outcome problems.Outcome, score float64, code string, parents ...int64) {
		t.Helper()
		e := store.Evaluation{Outcome: outcome, Message: evil, Wall: time.Second, Tier: "C"}
		if outcome == problems.OK {
			e.Value, e.Numbers.SearchScore, e.Frame = &score, &score, circlesFrame(score)
		}
		p := store.Program{Hash: code, Branch: branch, Round: round, Swarm: swarm, Kind: kind, Parents: parents,
			Description: "because " + evil, Code: code, Created: begun.Add(time.Duration(round*100+swarm) * time.Second)}
		if _, err := s.AddProgram(ctx, p, e); err != nil {
			t.Fatal(err)
		}
	}
	add(0, -1, "initial", store.Main, problems.OK, 0.25, "radius = 1\nprint(1)\n")
	add(1, 0, "refine", store.Main, problems.OK, 0.5, "radius = 2\nprint(1)\n", 1)
	add(1, 1, "fresh", store.Main, problems.Exception, 0, "raise "+evil, 1)
	add(1, -1, "tuner", store.Main, problems.OK, 0.75, "radius = 3\nprint(1)\n", 2)
	add(2, 0, "refine", "what-if", problems.OK, 0.99, "on a fork\n", 2)
	add(2, 0, "refine", store.Main, problems.Infeasible, 0, "radius = 4\nprint(1)\n", 4)
	round := func(n int, branch, forked string, seen int64) {
		t.Helper()
		r := store.Round{Branch: branch, N: n, Stage: store.Committed, Forked: forked, Seen: seen, Started: begun,
			Timings: []store.Timing{{Stage: "write", Swarm: -1, Started: begun, Took: 90 * time.Second}, {Stage: "read", Swarm: -1, Started: begun, Took: 30 * time.Second}}}
		for _, kind := range []string{"refine", "fresh"} {
			r.Swarms = append(r.Swarms, store.Swarm{Kind: kind, Focus: evil, Parents: []int64{1}, Stage: store.Committed, Kept: []int{0, 2},
				Agents: []store.Agent{{Kept: true, Parent: 1}, {Parent: 1}, {Kept: true, Parent: 1}}})
		}
		if err := s.SaveRound(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	round(1, store.Main, "", 1)
	round(2, store.Main, "", 4)
	round(2, "what-if", store.Main, 2)
	means := make([]float32, 6*5)
	for i := range means {
		means[i] = float32(math.Sin(float64(i * i)))
	}
	if err := s.SaveHidden(ctx, store.Main, 1, store.Means, []int{6, 5}, means); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// circlesFrame is the frame of a program that returns 26 equal circles on a grid, written after engine/judge/frame.go.
func circlesFrame(sum float64) []byte {
	var header, values bytes.Buffer
	for i := range 26 {
		_ = binary.Write(&values, binary.LittleEndian, [2]float64{(float64(i%6) + 0.5) / 6, (float64(i/6) + 0.5) / 6})
	}
	for range 26 {
		_ = binary.Write(&values, binary.LittleEndian, sum/26)
	}
	fmt.Fprintf(&header, `{"status": "ok", "value": {"$tuple": [{"$nd": 0}, {"$nd": 1}, %g]}, "arrays": [{"dtype": "f8", "shape": [26, 2]}, {"dtype": "f8", "shape": [26]}]}`, sum)
	frame := append([]byte("SKEPFR1\n"), binary.LittleEndian.AppendUint32(nil, uint32(header.Len()))...)
	frame = append(append(frame, header.Bytes()...), values.Bytes()...)
	return append(frame, "SKEPEND\n"...)
}

// report runs `skep report` and returns its page, parsed, and the page's folder.
func report(t *testing.T, args ...string) (*html.Node, string) {
	t.Helper()
	var out, errs bytes.Buffer
	if err := cmdReport(context.Background(), args, stdio{Out: &out, Err: &errs}); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	path := strings.TrimSuffix(out.String(), "\n")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	return doc, filepath.Dir(path)
}

// texts lists the texts of the elements with this tag, in order.
func texts(doc *html.Node, tag string) (list []string) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != tag {
			continue
		}
		var b strings.Builder
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data)
			}
		}
		list = append(list, b.String())
	}
	return list
}

func TestReport(t *testing.T) {
	dir := storedTestRun(t)
	before := snapshot(t, dir)
	out := filepath.Join(t.TempDir(), "out")
	doc, folder := report(t, "--out", out, dir)
	if folder != out {
		t.Errorf("the page is in %s, want %s", folder, out)
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("the report changed the run:\n%s\n%s", before, after)
	}
	if scripts := texts(doc, "script"); len(scripts) != 0 {
		t.Errorf("a text of the run became a script: %q", scripts)
	}
	if svgs := len(texts(doc, "svg")); svgs != 5 {
		t.Errorf("%d pictures in the page, want 5", svgs)
	}
	for _, name := range []string{"trajectory", "minutes", "stages", "best", "agents"} {
		f, err := os.Open(filepath.Join(out, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(f); err != nil {
			t.Errorf("%s.png: %v", name, err)
		}
		f.Close()
	}
	body := strings.Join(texts(doc, "main"), "")
	for _, want := range []string{
		"Best score 0.75, from 0.25: +0.5, of which swarms wrote 50 % and the tuner's one-number edits found 50 %.",
		"ok 3, exception 1, infeasible 1", "Left out: 1 on other branches.",
		"This small profile is no evidence about the paper.", "240 s in 2 rounds", "#4, tuner, round 1, parents #2", "because " + evil,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page doesn't say %q", want)
		}
	}
	if diff := texts(doc, "pre")[0]; diff != "- radius = 2+ radius = 3  print(1)" {
		t.Errorf("the change against the parent is %q", diff)
	}
	rows := texts(doc, "tr")
	if !slices.Contains(rows, "1fresh"+evil+"#12 of 3#3exception–") {
		t.Errorf("no row of the failed swarm in:\n%s", strings.Join(rows, "\n"))
	}
}

// snapshot names the files of the run with their contents.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "-shm") && !strings.HasSuffix(path, "-wal") {
			data, readErr := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %d %x %v\n", path, len(data), data[:min(100, len(data))], readErr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportErrors(t *testing.T) {
	empty := t.TempDir()
	for name, args := range map[string][]string{
		"no run": {empty}, "no folder": {filepath.Join(empty, "none")}, "no argument": {}, "two": {"a", "b"}, "flag": {"--what", empty},
	} {
		var out, errs bytes.Buffer
		if err := cmdReport(context.Background(), args, stdio{Out: &out, Err: &errs}); err == nil || out.Len() > 0 {
			t.Errorf("%s: error %v, output %q", name, err, out.String())
		}
	}
	if left, _ := os.ReadDir(empty); len(left) > 0 {
		t.Errorf("a failed report left %v", left)
	}
}

// TestTakeBranch: a fork sees what its first round saw of the branch that it was forked from, and nothing later.
func TestTakeBranch(t *testing.T) {
	program := func(id int64, branch string) store.Program { return store.Program{ID: id, Branch: branch} }
	round := func(branch string, n int, forked string, seen int64) store.Round {
		return store.Round{Branch: branch, N: n, Forked: forked, Seen: seen}
	}
	programs := []store.Program{program(1, "main"), program(2, "main"), program(3, "main"), program(4, "a"), program(5, "main"), program(6, "b"), program(7, "a")}
	rounds := []store.Round{round("main", 1, "", 1), round("main", 2, "", 3), round("a", 2, "main", 2), round("main", 3, "", 5), round("a", 3, "", 4), round("b", 3, "a", 4)}
	for branch, want := range map[string]struct{ programs, rounds string }{
		"main": {"[1 2 3 5]", "[main1 main2 main3]"},
		"a":    {"[1 2 4 7]", "[main1 a2 a3]"},
		"b":    {"[1 2 4 6]", "[main1 a2 b3]"},
	} {
		var run storedRun
		run.takeBranch(branch, programs, rounds)
		var ids []int64
		var names []string
		for _, p := range run.programs {
			ids = append(ids, p.ID)
		}
		for _, r := range run.rounds {
			names = append(names, fmt.Sprint(r.Branch, r.N))
		}
		if fmt.Sprint(ids) != want.programs || fmt.Sprint(names) != want.rounds || run.others != len(programs)-len(ids) {
			t.Errorf("branch %s: programs %v, rounds %v, %d others; want %s, %s", branch, ids, names, run.others, want.programs, want.rounds)
		}
	}
}

// TestGain: the parts add up to the rise, and a naive second count agrees.
func TestGain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var points []plotting.Point
		for range r.IntN(12) {
			p := plotting.Point{Source: []string{"tuner", "refine", "fresh"}[r.IntN(3)], Score: float64(r.IntN(8))}
			if r.IntN(4) == 0 {
				p.Score = math.NaN()
			}
			points = append(points, p)
		}
		g := gainOf(points)
		before, after, tuner := math.NaN(), math.NaN(), 0.0
		for i, p := range points {
			if math.IsNaN(p.Score) {
				continue
			}
			earlier := math.NaN()
			for _, q := range points[:i] {
				earlier = fmax(earlier, q.Score)
			}
			if math.IsNaN(earlier) {
				before = p.Score
			} else if p.Source == "tuner" {
				tuner += math.Max(0, p.Score-earlier)
			}
			after = fmax(after, p.Score)
		}
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !same(g.before, before) || !same(g.after, after) || g.tuner != tuner || !math.IsNaN(after) && g.swarms != after-before-tuner {
			t.Fatalf("%v: %+v, want before %g, after %g, tuner %g", points, g, before, after, tuner)
		}
	}
}

// fmax is the larger number, and the number if one is NaN.
func fmax(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}
