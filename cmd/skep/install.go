package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"skep/kernel"
)

// cmdInstall registers this binary as the Jupyter kernel "Go (skep)".
func cmdInstall(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("install", flag.ContinueOnError)
	user := fs.Bool("user", false, "for this user (the default)")
	sysPrefix := fs.Bool("sys-prefix", false, "in the Python environment that python3 runs in")
	prefix := fs.String("prefix", "", "below `FOLDER`/share/jupyter")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	if *user && *sysPrefix || (*user || *sysPrefix) && *prefix != "" {
		return fmt.Errorf("%w: --user, --sys-prefix and --prefix exclude each other", errUsage)
	}
	binary, err := lastingBinary()
	if err != nil {
		return err
	}
	dataDir, err := jupyterDir(ctx, *sysPrefix, *prefix)
	if err != nil {
		return err
	}
	dir, err := kernel.InstallSpec(dataDir, binary)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Out, "installed the kernel \"Go (skep)\" in %s\nopen a notebook with it: jupyter lab\n", dir)
	return nil
}

// jupyterDir returns the Jupyter data folder that the flags name.
func jupyterDir(ctx context.Context, sysPrefix bool, prefix string) (string, error) {
	switch {
	case prefix != "":
		abs, err := filepath.Abs(prefix)
		return filepath.Join(abs, "share", "jupyter"), err
	case sysPrefix:
		out, err := exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.prefix)").Output()
		if err != nil {
			return "", fmt.Errorf("python3 does not say its sys.prefix: %w; use --prefix", err)
		}
		return filepath.Join(strings.TrimSpace(string(out)), "share", "jupyter"), nil
	}
	return kernel.UserDataDir()
}

// errTemporary is the refusal to register a binary that will be gone.
var errTemporary = errors.New("this binary is the temporary one of `go run` and will be deleted; run `go install ./cmd/skep` first, then `skep install`")

// lastingBinary returns the absolute path of this program, unless `go run` built it to throw it away.
func lastingBinary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("where is this program? %w", err)
	}
	if isTemporary(self) {
		return "", errTemporary
	}
	return self, nil
}

// isTemporary reports whether a path is one that the go command builds programs and tests to: …/go-build123/b001/exe/skep.
func isTemporary(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		if rest, ok := strings.CutPrefix(part, "go-build"); ok && strings.Trim(rest, "0123456789") == "" {
			return true
		}
	}
	// With a build cache for executables (Go 1.24 and later) go run starts them from there.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	dir := strings.TrimSpace(string(cache))
	return err == nil && dir != "" && strings.HasPrefix(path, dir+string(filepath.Separator))
}
