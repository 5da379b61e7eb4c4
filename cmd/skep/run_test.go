package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"skep/engine"
	"skep/engine/lm/lmtest"
	"skep/engine/store"
)

// runLines runs skep run --json and decodes its lines.
func runLines(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	code, out, errs := call(t, "", append([]string{"run", "circles_square_26", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("code %d: %s", code, errs)
	}
	var lines []map[string]any
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, m)
	}
	return lines
}

// storedTexts are the texts that the swarms of a stored run wrote, and the programs, in order.
func storedTexts(t *testing.T, dir string) (texts []string) {
	t.Helper()
	r, err := store.View(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rounds, err := r.Rounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range rounds {
		for _, swarm := range round.Swarms {
			for _, summary := range swarm.Summaries {
				texts = append(texts, summary.Text)
			}
		}
	}
	programs, err := r.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		texts = append(texts, p.Code)
	}
	return texts
}

// smallRun makes a run of few and short agents, for skep run to go on with.
func smallRun(t *testing.T, dir, model string) {
	t.Helper()
	s, err := engine.Open(dir, engine.Options{Problem: "circles_square_26", Model: model, Seed: 3,
		Numbers: engine.Numbers{Agents: 3, Steps: 2, Keep: 2, Tries: 2, Tunes: 2, NewTokens: 48}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRunJSON: every line is JSON and the last one the summary, which agrees with the store; the same seed gives the same
// texts with other threads; a run goes on where it was; other options are refused and change nothing.
func TestRunJSON(t *testing.T) {
	model, dir := lmtest.SmolLM(t), t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	smallRun(t, one, model)
	smallRun(t, two, model)
	lines := runLines(t, "--rounds", "1", "--dir", one, "--seed", "3", "--threads", "1")
	stages := map[any]bool{}
	for _, line := range lines[:len(lines)-1] {
		if line["event"] != "progress" {
			t.Errorf("a line in the middle is %v", line)
		}
		stages[line["stage"]] = true
	}
	for _, stage := range []string{"form", "read", "reason", "filter", "transfer", "write", "tune", "evaluate", "commit"} {
		if !stages[stage] {
			t.Errorf("no line of stage %s", stage)
		}
	}
	last := lines[len(lines)-1]
	texts := storedTexts(t, one)
	if programs, _ := last["programs"].(float64); last["event"] != "summary" || last["rounds"] != 1.0 || int(programs) != len(texts)-4 {
		t.Errorf("the summary %v does not agree with %d texts and programs", last, len(texts))
	}
	runLines(t, "--rounds", "1", "--dir", two, "--model", model, "--threads", "2")
	if again := storedTexts(t, two); strings.Join(again, "\x00") != strings.Join(texts, "\x00") {
		t.Errorf("with two threads the same seed gives\n%q\nwant\n%q", again, texts)
	}
	for _, change := range [][]string{{"--seed", "4"}, {"--profile", "paper"}, {"--model", "smollm2-360m"}} {
		code, out, errs := call(t, "", append([]string{"run", "circles_square_26", "--rounds", "1", "--dir", two, "--json"}, change...)...)
		if code != 1 || out != "" || !strings.Contains(errs, "other options") || !strings.Contains(errs, change[1]) {
			t.Errorf("%v: code %d, stdout %q, stderr %q", change, code, out, errs)
		}
	}
	more := runLines(t, "--rounds", "1", "--dir", two)
	if sum := more[len(more)-1]; sum["rounds"] != 2.0 {
		t.Errorf("going on: %v", sum)
	}
	if kept := storedTexts(t, two); strings.Join(kept[:4], "\x00") != strings.Join(texts[:4], "\x00") {
		t.Error("going on changed what the first round wrote")
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "x")
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"no problem":       {[]string{"--rounds", "1"}, "skep run PROBLEM", 2},
		"unknown problem":  {[]string{"nosuch", "--rounds", "1"}, "circles_square_26", 1},
		"unknown model":    {[]string{"circles_square_26", "--rounds", "1", "--model", "nosuch"}, "smollm2-135m", 1},
		"unknown profile":  {[]string{"circles_square_26", "--rounds", "1", "--profile", "big"}, `"paper" and "cpu"`, 1},
		"unknown backend":  {[]string{"circles_square_26", "--rounds", "1", "--backend", "tpu"}, `"tpu"`, 1},
		"no length":        {[]string{"circles_square_26"}, "one of --rounds N and --minutes T", 2},
		"two lengths":      {[]string{"circles_square_26", "--rounds", "-1", "--minutes", "1"}, "one of", 2},
		"no rounds":        {[]string{"circles_square_26", "--rounds", "0"}, "--rounds 0", 2},
		"negative minutes": {[]string{"circles_square_26", "--minutes", "-3"}, "--minutes -3", 2},
		"no number":        {[]string{"circles_square_26", "--minutes", "NaN"}, "--minutes NaN", 2},
		"endless":          {[]string{"circles_square_26", "--minutes", "Inf"}, "--minutes +Inf", 2},
		"negative threads": {[]string{"circles_square_26", "--rounds", "1", "--threads", "-1"}, "Threads -1", 1},
		"negative judges":  {[]string{"circles_square_26", "--rounds", "1", "--evaluators", "-2"}, "Evaluators -2", 1},
		"unknown flag":     {[]string{"circles_square_26", "--round", "1"}, "skep run --help", 2},
		"a file as folder": {[]string{"circles_square_26", "--rounds", "1", "--dir", filepath.Join(dir, "file")}, "a run is a folder", 1},
	} {
		args := append([]string{"run", "--json", "--dir", filepath.Join(dir, "new")}, c.args...)
		code, out, errs := call(t, "", args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want %d and %q", name, code, out, errs, c.code, c.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("refused runs leave %v", left)
	}
}
