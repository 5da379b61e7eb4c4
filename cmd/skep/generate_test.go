package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/engine/lm/lmtest"
)

// call runs one command line in process.
func call(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, stdio{strings.NewReader(stdin), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func TestGenerate(t *testing.T) {
	model := lmtest.SmolLM(t)
	generate := func(args ...string) generated {
		t.Helper()
		code, out, errs := call(t, "The capital of France is", append([]string{"generate", "--model", model, "--max-new", "12", "--json"}, args...)...)
		var g generated
		if err := json.Unmarshal([]byte(out), &g); err != nil || code != 0 {
			t.Fatalf("code %d, %v\n%s%s", code, err, out, errs)
		}
		return g
	}
	greedy := generate()
	if !strings.HasPrefix(greedy.Text, " Paris") || greedy.PromptTokens != 5 || len(greedy.Tokens) != 12 || greedy.Reason != "length" {
		t.Errorf("greedy: %+v", greedy)
	}
	if plain := generate("--draft=false"); plain.Text != greedy.Text || plain.Drafted != 0 {
		t.Errorf("without drafts: %q, with: %q", plain.Text, greedy.Text)
	}
	hot := []string{"--temperature", "1.2", "--top-k", "0", "--top-p", "1", "--seed"}
	first, again, other := generate(append(hot, "1")...), generate(append(hot, "1")...), generate(append(hot, "2")...)
	if !slices.Equal(first.Tokens, again.Tokens) || slices.Equal(first.Tokens, other.Tokens) {
		t.Errorf("seed 1: %q and %q, seed 2: %q", first.Text, again.Text, other.Text)
	}
	if chat := generate("--chat"); chat.PromptTokens <= greedy.PromptTokens || chat.Text == greedy.Text {
		t.Errorf("chat: %+v", chat)
	}
}

func TestGenerateStreamsText(t *testing.T) {
	prompt := filepath.Join(t.TempDir(), "prompt.txt")
	if err := os.WriteFile(prompt, []byte("1, 2, 3, 4,"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t, "", "generate", "--model", lmtest.SmolLM(t), "--prompt-file", prompt, "--max-new", "6")
	if code != 0 || out != " 5, 6,\n" || !strings.Contains(errs, "6 tokens after 11") {
		t.Errorf("code %d, out %q, stderr %q", code, out, errs)
	}
}

func TestGenerateRefusesBadInput(t *testing.T) {
	model := lmtest.SmolLM(t)
	for _, c := range []struct {
		stdin string
		args  []string
		want  string
		code  int
	}{
		{"", []string{"--model", model}, "is empty", 1},
		{"x", []string{"--model", model, "--prompt-file", "nowhere.txt"}, "nowhere.txt", 1},
		{"x", []string{"--model", model, "--temperature", "-1"}, "temperature -1", 1},
		{"x", []string{"--model", model, "--top-p", "2"}, "top-p 2", 1},
		{"x", []string{"--model", model, "--threads", "0"}, "--threads 0", 2},
		{"x", []string{"--model", "no-such-model"}, "unknown model", 1},
		{"x", []string{"--model", model, "stray"}, "1 arguments", 2},
		{strings.Repeat("word ", 9000), []string{"--model", model}, "shorten", 1},
	} {
		code, out, errs := call(t, c.stdin, append([]string{"generate", "--json"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%v: code %d, out %q, stderr %q; want %d and %q", c.args, code, out, errs, c.code, c.want)
		}
	}
}
