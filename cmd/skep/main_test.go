package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"skep/engine/judge"
)

// TestMain lets the test binary be a candidate's supervisor, as main does.
func TestMain(m *testing.M) {
	judge.Main()
	os.Exit(m.Run())
}

// skep runs one command line in process.
func skep(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), args, stdio{strings.NewReader(""), &out, &err})
	return code, out.String(), err.String()
}

// fields decodes a JSON document that must be all of stdout.
func fields(t *testing.T, stdout string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(stdout), &m); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return m
}
