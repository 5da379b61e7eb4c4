package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pull prints the path alone on stdout, with --json one object; a second one needs no server; what cannot be pulled
// leaves stdout empty.
func TestPullCommand(t *testing.T) {
	data := bytes.Repeat([]byte("model"), 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/m.gguf" {
			http.NotFound(w, r)
			return
		}
		w.Write(data)
	}))
	defer server.Close()
	dir, address := t.TempDir(), server.URL+"/m.gguf"
	pull := func(args ...string) (stdout, stderr string, err error) {
		var out, errs bytes.Buffer
		err = cmdPull(t.Context(), append(args, "--dir", dir), stdio{nil, &out, &errs})
		return out.String(), errs.String(), err
	}
	stdout, stderr, err := pull(address)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(stdout)
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) || !strings.HasPrefix(path, dir) {
		t.Errorf("stdout %q: %d bytes, %v", stdout, len(got), err)
	}
	if !strings.Contains(stderr, "pull: from "+address) {
		t.Errorf("stderr %q does not say where the bytes come from", stderr)
	}
	stdout, _, err = pull("--json", address, "--offline")
	var result pulled
	if err != nil || json.Unmarshal([]byte(stdout), &result) != nil || result.Path != path || result.Bytes != int64(len(data)) {
		t.Errorf("--json prints %q, %v", stdout, err)
	}
	for name, want := range map[string]string{"no-such-model": "smollm2-135m", filepath.Join(dir, "x"): "unknown model", server.URL + "/n.gguf": "404"} {
		stdout, _, err := pull(name)
		if err == nil || stdout != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: stdout %q, error %v; want %q", name, stdout, err, want)
		}
	}
	if _, _, err := pull(); err == nil || !strings.Contains(err.Error(), "known models: qwen2.5-coder-0.5b") {
		t.Errorf("no name: %v", err)
	}
}
