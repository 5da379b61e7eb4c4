package judge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// environment is the candidates' Python, made on the first call in the user's cache folder.
func environment(t *testing.T) string {
	t.Helper()
	python, err := Environment(t.Context(), EnvOptions{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	return python
}

func bootstrapSource(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("bootstrap.py")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// script writes an executable shell script and returns its path.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNamedPython(t *testing.T) {
	dir := t.TempDir()
	cases := []struct{ name, text, want string }{
		{"old", `echo '{"Executable":"/x","Version":[3,8,1],"Numpy":"1.0"}'`, "is Python 3.8.1; candidates need 3.9"},
		{"bare", `echo '{"Executable":"/x","Version":[3,12,1],"Fault":"ModuleNotFoundError: No module named numpy"}'`, "has no numpy"},
		{"broken", `echo dead >&2; exit 3`, "does not answer as a Python does"},
		{"liar", `echo hello`, "does not answer as a Python does"},
	}
	for _, test := range cases {
		_, err := Environment(t.Context(), EnvOptions{Python: script(t, dir, test.name, test.text)})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := Environment(t.Context(), EnvOptions{Python: filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "no Python at") {
		t.Errorf("a missing Python: %v", err)
	}
	python := environment(t)
	if got, err := Environment(t.Context(), EnvOptions{Python: python}); err != nil || got != python {
		t.Errorf("a named environment: %q %v, want %q as it is", got, err, python)
	}
}

func TestNoPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Environment(t.Context(), EnvOptions{Cache: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "no Python 3.9 or later on PATH") || !strings.Contains(err.Error(), "python3-venv") {
		t.Errorf("%v", err)
	}
}

// TestHalfMade: an environment that fails on the way leaves nothing that a later call would take for one, and the
// error carries the tool's words and what to do.
func TestHalfMade(t *testing.T) {
	real := environment(t)
	bin, cache := t.TempDir(), t.TempDir()
	script(t, bin, "python3", `case "$*" in
*"-m venv"*) for d in "$@"; do :; done; mkdir -p "$d/bin"; echo "ensurepip is not available" >&2; exit 1;;
*"-m pip"*) echo "no such index" >&2; exit 1;;
*) exec `+real+` "$@";;
esac`)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	_, err := Environment(t.Context(), EnvOptions{Cache: cache})
	if err == nil || !strings.Contains(err.Error(), "ensurepip is not available") || !strings.Contains(err.Error(), "apt install python3-venv") {
		t.Errorf("%v", err)
	}
	_, err = Environment(t.Context(), EnvOptions{Cache: cache, Existing: true})
	if !errors.Is(err, ErrNoEnvironment) {
		t.Errorf("after a failure: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestStoppedWhileChecked: Ctrl-C while an environment is looked at leaves it where it is.
func TestStoppedWhileChecked(t *testing.T) {
	real := environment(t)
	bin, cache := t.TempDir(), t.TempDir()
	slow, looked := filepath.Join(cache, "slow"), filepath.Join(cache, "looked")
	script(t, bin, "made", `test -e `+slow+` && { touch `+looked+`; exec sleep 60; }; exec `+real+` "$@"`)
	script(t, bin, "python3", `case "$*" in
*"-m venv"*) for d in "$@"; do :; done; mkdir -p "$d/bin"; ln -s `+filepath.Join(bin, "made")+` "$d/bin/python";;
*) exec `+real+` "$@";;
esac`)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	python, err := Environment(t.Context(), EnvOptions{Cache: cache})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for _, err := os.Stat(looked); err != nil; _, err = os.Stat(looked) {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	if _, err := Environment(ctx, EnvOptions{Cache: cache}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if _, err := os.Lstat(python); err != nil {
		t.Errorf("the environment is gone: %v", err)
	}
}

// TestConcurrentCreation: of several that ask at once, one makes the environment and all get it. The tools are stand-ins.
func TestConcurrentCreation(t *testing.T) {
	real := environment(t)
	bin, cache := t.TempDir(), t.TempDir()
	count := filepath.Join(cache, "made")
	script(t, bin, "python3", `case "$*" in
*"-m venv"*) for d in "$@"; do :; done; echo x >> `+count+`; sleep 0.3; mkdir -p "$d/bin"; ln -s `+real+` "$d/bin/python";;
*) exec `+real+` "$@";;
esac`)
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if _, err := Environment(context.Background(), EnvOptions{Cache: cache}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	made, err := os.ReadFile(count)
	if err != nil || string(made) != "x\n" {
		t.Errorf("made %q times, %v", made, err)
	}
	if _, err := Environment(context.Background(), EnvOptions{Cache: cache, Existing: true}); err != nil {
		t.Error(err)
	}
}
