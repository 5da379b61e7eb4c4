package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/engine/lm/lmtest"
)

// tool writes a stand-in for one of llama.cpp's programs that prints text.
func tool(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	script := "#!/bin/sh\ncat <<'END'\n" + text + "\nEND\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBenchLM(t *testing.T) {
	folder := t.TempDir()
	llama := tool(t, folder, "llama-bench", `[{"n_prompt": 512, "n_gen": 0, "avg_ts": 200}, {"n_prompt": 0, "n_gen": 64, "avg_ts": 50}]`)
	tool(t, folder, "llama-batched-bench", "loading\n"+`{"pp": 16, "tg": 64, "pl": 4, "speed_tg": 80}`)
	code, out, errs := call(t, "", "bench", "lm", "--json", "--rounds", "1", "--model", lmtest.SmolLM(t), "--llama-bench", llama)
	if code != 0 {
		t.Fatal(errs)
	}
	var r lmBench
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for theirs, pair := range map[float64]benchPair{200: r.Prefill, 50: r.Decode1, 80: r.Decode4} {
		if pair.LlamaMedian != theirs || !(pair.OursMedian > 0) || pair.Ratio != pair.OursMedian/theirs {
			t.Errorf("%+v, want llama.cpp at %v", pair, theirs)
		}
	}
	if r.Threads < 1 || r.Rounds != 1 || len(r.SHA256) != 64 || r.Vectors == "" {
		t.Errorf("%+v", r)
	}
}

func TestBenchRefusesBadInput(t *testing.T) {
	folder := t.TempDir()
	strange := tool(t, folder, "llama-bench", "not json")
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{nil, "name a benchmark", 2},
		{[]string{"nothing"}, `no benchmark "nothing"`, 2},
		{[]string{"lm", "--rounds", "0"}, "--rounds 0", 2},
		{[]string{"lm", "--rounds", "1", "--model", lmtest.SmolLM(t), "--llama-bench", filepath.Join(folder, "absent")}, "absent", 1},
		{[]string{"lm", "--rounds", "1", "--model", lmtest.SmolLM(t), "--llama-bench", strange}, "not the output", 1},
	} {
		code, _, errs := call(t, "", append([]string{"bench"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, stderr %q; want %d and %q", c.args, code, errs, c.code, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		xs   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{5, 1}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.xs); got != c.want {
			t.Errorf("median of %v is %v, want %v", fmt.Sprint(c.xs), got, c.want)
		}
	}
}
