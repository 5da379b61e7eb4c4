package judge

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed requirements.txt
var requirements string

// EnvOptions of Environment.
type EnvOptions struct {
	Python   string            // use this interpreter as it is; "": skep's own environment
	Cache    string            // folder to keep it in; "": $SKEP_CACHE, else os.UserCacheDir()/skep
	Progress func(line string) // of making it, a line at a time from one goroutine; nil: silent
	Existing bool              // do not make it: ErrNoEnvironment when it is not there
}

// ErrNoEnvironment: there is no environment yet, and EnvOptions.Existing forbade making one.
var ErrNoEnvironment = errors.New("judge: the Python environment for candidates is not made yet; the first search or evaluation makes it")

// Environment returns a Python for candidates, version 3.9 or later with numpy. Without EnvOptions.Python that is an
// environment of skep's own with the packages of requirements.txt, made on first use from the first Python 3 on PATH
// (uv if it is there, else venv and pip) and kept in the cache folder. One process makes it, others wait; a half-made
// one is never used.
func Environment(ctx context.Context, o EnvOptions) (python string, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Python != "" {
		return named(ctx, o.Python)
	}
	base, about, err := findPython(ctx)
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return "", err
	}
	m := maker{base: base, about: about, progress: o.Progress}
	m.folder = filepath.Join(cache, "python-"+m.key())
	unlock, err := m.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	python = filepath.Join(m.folder, "bin", "python")
	i, err := describe(ctx, python)
	switch {
	case err == nil && i.usable(python) == nil:
		return python, nil
	case ctx.Err() != nil: // it may be a good one that was not given the time to answer: it must stay
		return "", ctx.Err()
	}
	if o.Existing {
		return "", ErrNoEnvironment
	}
	return python, m.build(ctx)
}

// named checks an interpreter of the user's.
func named(ctx context.Context, python string) (string, error) {
	path, err := exec.LookPath(python)
	if err != nil {
		return "", fmt.Errorf("judge: no Python at %q: %w", python, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("judge: %w", err)
	}
	about, err := describe(ctx, path)
	if err != nil {
		return "", err
	}
	return path, about.usable(path)
}

// findPython returns the first Python of PATH that is new enough.
func findPython(ctx context.Context) (string, interpreter, error) {
	var faults []string
	for _, name := range []string{"python3", "python3.13", "python3.12", "python3.11", "python"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		about, err := describe(ctx, path)
		if err == nil && len(about.Version) > 1 && about.Version[0] == 3 && about.Version[1] >= 9 {
			return path, about, nil
		}
		faults = append(faults, fmt.Sprintf("%s is unfit (version %s)", path, about.version()))
	}
	if ctx.Err() != nil {
		return "", interpreter{}, ctx.Err()
	}
	return "", interpreter{}, fmt.Errorf("judge: no Python 3.9 or later on PATH%s; install one (Debian: apt install python3-venv) or name one with --python", found(faults))
}

// found lists what was no good.
func found(faults []string) string {
	if len(faults) == 0 {
		return ""
	}
	return " (" + strings.Join(faults, ", ") + ")"
}

// cacheFolder makes sure of the cache folder.
func cacheFolder(folder string) (string, error) {
	if folder == "" {
		folder = os.Getenv("SKEP_CACHE")
	}
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("judge: no cache folder: %w; set SKEP_CACHE", err)
		}
		folder = filepath.Join(user, "skep")
	}
	folder, err := filepath.Abs(folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("judge: cache folder: %w; set SKEP_CACHE to a folder that can be written", err)
	}
	return folder, nil
}

// maker makes one environment.
type maker struct {
	base     string // interpreter to make it from
	about    interpreter
	folder   string // where it will be, once whole
	progress func(string)
}

// key changes with the pins and with the Python, so an environment is never changed, only replaced.
func (m *maker) key() string {
	sum := sha256.Sum256([]byte(requirements + m.about.Executable + m.about.version()))
	return hex.EncodeToString(sum[:6])
}

// build builds the environment beside its place and moves it there once numpy, scipy and sympy import.
func (m *maker) build(ctx context.Context) error {
	start := time.Now()
	partial := m.folder + ".partial"
	for _, old := range []string{partial, m.folder} {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("judge: remove the unfinished environment: %w", err)
		}
	}
	if err := room(filepath.Dir(m.folder)); err != nil {
		return err
	}
	m.progress(fmt.Sprintf("making the Python environment for candidates (%s, Python %s)", m.base, m.about.version()))
	if err := m.fill(ctx, partial); err != nil {
		_ = os.RemoveAll(partial)
		return err
	}
	if err := m.do(ctx, filepath.Join(partial, "bin", "python"), "-I", "-c", "import numpy, scipy.optimize, sympy"); err != nil {
		_ = os.RemoveAll(partial)
		return fmt.Errorf("judge: the new environment does not import its packages: %w", err)
	}
	if err := os.Rename(partial, m.folder); err != nil {
		return fmt.Errorf("judge: finish the environment: %w", err)
	}
	m.progress(fmt.Sprintf("the Python environment is ready after %v", time.Since(start).Round(time.Second)))
	return nil
}

// envBytes is what an environment takes with its precompiled modules (329 MB with Python 3.11), rounded up.
const envBytes = 400 << 20

// room says whether the disk of folder has space for an environment.
func room(folder string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return nil // unknown: pip will say
	}
	if free := uint64(stat.Bavail) * uint64(stat.Bsize); free < envBytes {
		return fmt.Errorf("judge: not enough disk space for the Python environment: %d MB needed, %d MB free in %s: free some, set SKEP_CACHE to another disk, "+
			"or name a Python that has numpy and scipy with --python", envBytes/1000000, free/1000000, folder)
	}
	return nil
}

// fill makes a virtual environment in dir and installs the pins, by the first way that works: uv; venv and its pip;
// and, where the system has venv without ensurepip (Debian without python3-venv), a bare venv that the base Python's pip
// installs into.
func (m *maker) fill(ctx context.Context, dir string) error {
	pins := dir + ".txt"
	if err := os.WriteFile(pins, []byte(requirements), 0o644); err != nil {
		return fmt.Errorf("judge: write the pins: %w", err)
	}
	defer os.Remove(pins)
	var faults []error
	for _, way := range []func(ctx context.Context, dir, pins string) error{m.withUV, m.withVenv, m.withTarget} {
		err := way(ctx, dir, pins)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, exec.ErrNotFound) {
			m.progress("that did not work; trying another way")
			faults = append(faults, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("judge: remove the unfinished environment: %w", err)
		}
	}
	return fmt.Errorf("judge: make the Python environment from %s: %w\nIf venv or pip is missing: apt install python3-venv python3-pip (Debian, Ubuntu), or install uv. "+
		"If packages cannot be reached, check pip's settings. Or name a Python that has numpy and scipy with --python", m.base, errors.Join(faults...))
}

func (m *maker) withUV(ctx context.Context, dir, pins string) error {
	uv, err := exec.LookPath("uv")
	if err != nil {
		return err
	}
	if err := m.do(ctx, uv, "venv", "--quiet", "--python", m.base, dir); err != nil {
		return err
	}
	return m.do(ctx, uv, "pip", "install", "--only-binary", ":all:", "--python", filepath.Join(dir, "bin", "python"), "-r", pins)
}

func (m *maker) withVenv(ctx context.Context, dir, pins string) error {
	if err := m.do(ctx, m.base, "-m", "venv", dir); err != nil {
		return err
	}
	return m.do(ctx, filepath.Join(dir, "bin", "python"), pipInstall(pins)...)
}

func (m *maker) withTarget(ctx context.Context, dir, pins string) error {
	if err := m.do(ctx, m.base, "-m", "venv", "--without-pip", dir); err != nil {
		return err
	}
	site := filepath.Join(dir, "lib", fmt.Sprintf("python%d.%d", m.about.Version[0], m.about.Version[1]), "site-packages")
	return m.do(ctx, m.base, append(pipInstall(pins), "--target", site)...)
}

func pipInstall(pins string) []string {
	return []string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--only-binary", ":all:", "-r", pins}
}

// do runs a tool and passes on its lines; its error carries the last of them.
func (m *maker) do(ctx context.Context, name string, args ...string) error {
	var tail lines
	tail.each = m.progress
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &tail, &tail
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // pip and venv start processes: they end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PYTHONPATH=") && !strings.HasPrefix(v, "PYTHONHOME=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), err, tail.last())
	}
	return nil
}

// lines passes on whole lines as they come and keeps the last few.
type lines struct {
	each    func(string)
	partial []byte
	kept    []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.partial = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			l.kept = append(l.kept, text)
			l.kept = l.kept[max(0, len(l.kept)-6):]
			l.each(text)
		}
	}
}

func (l *lines) last() string {
	return strings.Join(append(l.kept, strings.TrimSpace(string(l.partial))), " | ")
}
