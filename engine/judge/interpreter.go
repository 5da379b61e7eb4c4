package judge

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed describe.py
var describeProgram string

// interpreter is what a Python says of itself.
type interpreter struct {
	Executable string   // the real binary, past shims and virtual environments
	Version    []int    // [3, 11, 2]
	Prefixes   []string // of the installation and of the virtual environment
	Path       []string // sys.path with the site packages, for candidates
	Numpy      string   // version, "" without numpy
	Fault      string   // why numpy cannot be imported
}

// describe asks a Python about itself. The error says what to do.
func describe(ctx context.Context, python string) (interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-c", describeProgram)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var i interpreter
	if err == nil {
		err = json.Unmarshal(out, &i)
	}
	if err != nil {
		return i, fmt.Errorf("judge: %s does not answer as a Python does: %w: %s", python, err, clip(strings.TrimSpace(stderr.String()), 500))
	}
	return i, nil
}

// About is a Python in words: "Python 3.11.7 at /usr/bin/python3.11, numpy 2.3.5".
func About(ctx context.Context, python string) (string, error) {
	i, err := describe(ctx, python)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Python %s at %s, numpy %s", i.version(), i.Executable, i.Numpy), nil
}

// minimumVersion is the oldest Python that the bootstrap's syntax runs on.
var minimumVersion = []int{3, 9}

// usable says whether candidates can run on this Python.
func (i interpreter) usable(python string) error {
	if slices.Compare(i.Version, minimumVersion) < 0 {
		return fmt.Errorf("judge: %s is Python %s; candidates need 3.9 or later", python, i.version())
	}
	if i.Numpy == "" {
		return fmt.Errorf("judge: %s has no numpy (%s): install it there, name another with --python, or leave --python out and skep makes an environment of its own", python, i.Fault)
	}
	return nil
}

func (i interpreter) version() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(i.Version), " ", "."), "[]")
}

// trees are the files and folders that this Python must be able to read: its binary, its libraries and its packages.
func (i interpreter) trees() []string {
	trees := append([]string{i.Executable}, i.Path...)
	for _, prefix := range i.Prefixes {
		trees = append(trees, filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"))
	}
	return trees
}
