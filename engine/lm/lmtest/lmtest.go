package lmtest

import (
	"testing"

	"skep/engine/lm"
)

// SmolLM returns the path of SmolLM2-135M-Instruct (Q4_1, 98 MB), pulled into the cache the first time. The test fails
// when the model cannot be had. Safe in several test processes at once: one pulls, the others wait.
func SmolLM(t testing.TB) string {
	t.Helper()
	path, err := lm.Pull(t.Context(), "smollm2-135m", lm.PullOptions{Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatalf("the tests' real model: %v", err)
	}
	return path
}
