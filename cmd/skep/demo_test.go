package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/engine/lm/lmtest"
	"skep/engine/store"
	"skep/kernel/client"
	"skep/notebooks"
)

// smaller rewrites the first notebook so that a test can wait for it: the statements stay, the numbers shrink.
func smaller(t *testing.T) *client.Notebook {
	t.Helper()
	raw, err := notebooks.Files.ReadFile(demoNotebook)
	if err != nil {
		t.Fatal(err)
	}
	for old, shorter := range map[string]string{
		"Seed: 1}":                 "Seed: 1, Numbers: engine.Numbers{Agents: 4, Steps: 2, Keep: 2, Tries: 2, Tunes: 2, NewTokens: 64}}",
		"search.RunRounds(ctx, 2)": "search.RunRounds(ctx, 1)",
	} {
		if bytes.Count(raw, []byte(old)) != 1 {
			t.Fatalf("the notebook holds %q %d times, want once", old, bytes.Count(raw, []byte(old)))
		}
		raw = bytes.Replace(raw, []byte(old), []byte(shorter), 1)
	}
	nb, err := client.ParseNotebook(raw)
	if err != nil {
		t.Fatal(err)
	}
	return nb
}

// TestFirstNotebook runs the first notebook as the demo does: every cell in a kernel process of its own, on a real model.
func TestFirstNotebook(t *testing.T) {
	model, bin, dir := lmtest.SmolLM(t), buildSkep(t), t.TempDir()
	nb := smaller(t)
	err := client.RunNotebook(t.Context(), nb, client.RunOptions{
		Options: client.Options{Dir: dir, Env: []string{"SKEP_MODEL=" + model, "XDG_DATA_HOME=" + dir}, Stderr: t.Output()},
		Argv:    []string{bin, "kernel", "-f", "{connection_file}"},
	})
	var failed *client.CellError
	if errors.As(err, &failed) {
		t.Fatal(failed.Print())
	} else if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{ // what a cell shows, by its source
		"search":                      {"text/html"},
		"round":                       {"text/html"},
		"explore":                     {"text/html"},
		"explore.Agent(3).Thoughts()": {"text/html"},
		"round.Clusters()":            {"image/png", "image/svg+xml"},
		"explore.Clusters()":          {"image/png", "image/svg+xml"},
		"explore.Summary()":           {"text/html"},
		"plotting.Trajectory(search)": {"image/png", "image/svg+xml"},
		"search.Best()":               {"text/html"},
	}
	for _, c := range nb.Cells() {
		for _, mime := range want[c.Source()] {
			if shown(t, c)[mime] == "" {
				t.Errorf("%s shows no %s", c.Source(), mime)
			}
		}
		if c.Source() == "search.Best()" && !strings.Contains(shown(t, c)["text/html"], "<img") {
			t.Error("the best program shows no picture")
		}
		if c.Source() == "explore" && !strings.Contains(shown(t, c)["text/html"], "physics-inspired") {
			t.Error("the swarm does not show its new focus")
		}
		delete(want, c.Source())
	}
	if len(want) > 0 {
		t.Errorf("the notebook has no cells %v", want)
	}
	checkRun(t, filepath.Join(dir, demoRun))
}

// shown is the MIME bundle of a cell's last output.
func shown(t *testing.T, c *client.Cell) map[string]string {
	t.Helper()
	bundle := map[string]string{}
	outputs := c.Outputs()
	if len(outputs) == 0 {
		return bundle
	}
	data, _ := outputs[len(outputs)-1].(map[string]any)["data"].(map[string]any)
	for mime, v := range data {
		switch v := v.(type) {
		case string:
			bundle[mime] = v
		case []any:
			for _, line := range v {
				bundle[mime] += line.(string)
			}
		}
	}
	return bundle
}

// checkRun: the run that a notebook left is whole and closed, with two rounds.
func checkRun(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "run.db-wal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the session left the run's log: %v", err)
	}
	r, err := store.View(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, err := loadRun(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.rounds) != 2 || len(run.programs) < 9 { // one initial, four of swarms a round
		t.Errorf("%d rounds, %d programs", len(run.rounds), len(run.programs))
	}
}

// TestDemoLines compares the six lines with a run whose gain is known (storedTestRun: 0.25 to 0.75, half by the tuner).
func TestDemoLines(t *testing.T) {
	dir := storedTestRun(t)
	r, err := store.View(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	run, err := loadRun(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := demo{out: &out}
	d.print(run, "n.ipynb", "n.html")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := [][]string{
		{"best score", "0.250000 before, 0.750000 after 2 rounds"},
		{"gain", "+0.250000 from swarms, +0.250000 from the tuner"},
		{"programs", "evaluated", "infeasible 1"},
		{"model", run.meta.Model, "profile " + run.meta.Profile, "no evidence about the paper"},
		{"time", "write 180.0 s, read 60.0 s"},
		{"to open it", "jupyter lab n.ipynb", "n.html"},
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d does not say %q: %s", i+1, part, lines[i])
			}
		}
	}
	out.Reset()
	run.programs = run.programs[:1]
	d.print(run, "n.ipynb", "n.html")
	if !strings.Contains(out.String(), "nothing improved on the initial program") {
		t.Errorf("without a gain: %s", out.String())
	}
}

// TestDemoRefuses: what stands in the way is named, and nothing is left.
func TestDemoRefuses(t *testing.T) {
	dir := t.TempDir()
	earlier := filepath.Join(dir, "earlier")
	writeFile(t, filepath.Join(earlier, demoRun, "run.db"), "x")
	writeFile(t, filepath.Join(dir, "file"), "x")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an earlier run": {[]string{"--dir", earlier}, "an earlier demo"},
		"a file":         {[]string{"--dir", filepath.Join(dir, "file")}, "--dir"},
		"no such python": {[]string{"--dir", filepath.Join(dir, "new"), "--python", filepath.Join(dir, "none")}, "no Python"},
		"an argument":    {[]string{"x"}, "1 arguments"},
	} {
		code, out, errs := call(t, "", append([]string{"demo"}, c.args...)...)
		if code == 0 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want %q", name, code, out, errs, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused demo leaves a folder: %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
