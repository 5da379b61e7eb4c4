package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// buildSkep builds the program once per test that needs it as a process.
func buildSkep(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "skep")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// TestExec runs notebooks through the real program: kernel, session and client as processes of their own.
func TestExec(t *testing.T) {
	bin, dir := buildSkep(t), t.TempDir()
	notebook := func(name string, cells ...string) string {
		var parts []string
		for i, c := range cells {
			parts = append(parts, `{"cell_type":"code","id":"c`+string(rune('0'+i))+`","metadata":{},"execution_count":null,"outputs":[],"source":`+quote(c)+`}`)
		}
		path := filepath.Join(dir, name)
		text := `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[` + strings.Join(parts, ",") + `]}`
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (stderr string, err error) {
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir)
		var b bytes.Buffer
		cmd.Stderr = &b
		err = cmd.Run()
		return b.String(), err
	}
	good := notebook("good.ipynb", "import \"os\"\nos.WriteFile(\"here.txt\", []byte(\"x\"), 0o644)", "6 * 7")
	if stderr, err := run("exec", good, "--out", filepath.Join(dir, "out.ipynb")); err != nil || !strings.Contains(stderr, "[2] 6 * 7") {
		t.Errorf("exec: %v\n%s", err, stderr)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out.ipynb")); err != nil || !strings.Contains(string(b), `"42"`) {
		t.Errorf("executed notebook: %v\n%s", err, b)
	}
	if _, err := os.Stat(filepath.Join(dir, "here.txt")); err != nil {
		t.Errorf("cells run beside the notebook: %v", err)
	}
	bad := notebook("bad.ipynb", "1 + 1", "panic(\"stop\")", "3")
	if stderr, err := run("exec", bad); err == nil || !strings.Contains(stderr, `| panic("stop")`) || !strings.Contains(stderr, "In[2]:1") {
		t.Errorf("a failing notebook: %v\n%s", err, stderr)
	}
	if b, err := os.ReadFile(bad); err != nil || !strings.Contains(string(b), `"2"`) || !strings.Contains(string(b), "ename") {
		t.Errorf("outputs so far: %v\n%s", err, b)
	}
	slow := notebook("slow.ipynb", "for {}")
	if stderr, err := run("exec", slow, "--timeout", "1s"); err == nil || !strings.Contains(stderr, "longer than 1s") {
		t.Errorf("a cell that takes too long: %v\n%s", err, stderr)
	}
	for _, args := range [][]string{{"exec"}, {"exec", "missing.ipynb"}, {"exec", good, "--timeout", "-1s"}, {"exec", good, "--out", filepath.Join(dir, "none", "x.ipynb")}, {"kernel"}, {"kernel", "-f", "missing.json"}, {"session"}} {
		if _, err := run(args...); err == nil {
			t.Errorf("skep %v succeeds", args)
		}
	}
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func TestInstall(t *testing.T) {
	bin, dir := buildSkep(t), t.TempDir()
	cmd := exec.Command(bin, "install", "--prefix", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "share/jupyter/kernels/skep/kernel.json"))
	if err != nil || !strings.Contains(string(b), quote(bin)) {
		t.Errorf("kernel.json: %v\n%s", err, b)
	}
	var out, errs bytes.Buffer
	if err := cmdInstall(context.Background(), []string{"--prefix", dir}, stdio{nil, &out, &errs}); err == nil || !strings.Contains(err.Error(), "go install ./cmd/skep") {
		t.Errorf("the test's own temporary binary is registered: %v", err) // as go run's would be
	}
	if err := cmdInstall(context.Background(), []string{"--user", "--sys-prefix"}, stdio{nil, &out, &errs}); err == nil {
		t.Error("--user and --sys-prefix together are accepted")
	}
	for path, want := range map[string]bool{
		"/var/x/go-build123/b001/exe/skep": true, "/home/u/go/bin/skep": false, "/home/u/go-builder/skep": false, "/opt/go-build/skep": true,
	} {
		if got := isTemporary(path); got != want {
			t.Errorf("isTemporary(%s) = %v", path, got)
		}
	}
}
