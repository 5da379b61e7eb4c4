package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const fileLimit = 1 << 20 // bytes of one file in the child

// mountSmall mounts a small file system on dir and says how to make it larger; set where there is such a thing.
var mountSmall func(dir string) (release func() error, err error)

// childFill writes until there is no space, frees some, and goes on. What it prints is "program ID" for each that was
// acknowledged. The space is limited by the size of a file, which every user may do, or by a small file system.
func childFill(dir string) error {
	release, err := limitSpace(dir)
	if err != nil {
		return err
	}
	run := filepath.Join(dir, "run")
	s, err := Create(run, testMeta())
	if err != nil {
		return err
	}
	if err := s.SaveRound(context.Background(), Round{N: 1, Stage: Formed}); err != nil {
		return err
	}
	if err := fillUp(s); err != nil {
		return err
	}
	if err := s.SaveHidden(context.Background(), Main, 1, Means, []int{1 << 20}, make([]float32, 1<<20)); !errors.Is(err, ErrFull) {
		return fmt.Errorf("hidden states on a full disk: %v", err)
	}
	if v, err := View(run); err != nil {
		return err
	} else if err := report(v); err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	if err := addOne(s); err != nil {
		return fmt.Errorf("after space was freed: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(run); err != nil {
		return err
	}
	return errors.Join(report(s.Reader), s.Close())
}

// report prints "stored" and the ids of the programs that are there whole.
func report(r *Reader) error {
	list, err := r.Programs(context.Background())
	fmt.Print("stored")
	for _, p := range list {
		if len(p.Code) == 20_000 && len(p.Evaluations) == 1 {
			fmt.Print(" ", p.ID)
		}
	}
	fmt.Println()
	return err
}

// limitSpace gives this process little room in dir, and says how to free some.
func limitSpace(dir string) (release func() error, err error) {
	if os.Getenv("SKEP_STORE_MOUNT") != "" {
		return mountSmall(dir)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return nil, err
	}
	limit := before
	limit.Cur = fileLimit
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

func fillUp(s *Store) error {
	for range 10_000 {
		err := addOne(s)
		if errors.Is(err, ErrFull) && strings.Contains(err.Error(), s.Dir()) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("no clear error: %w", err)
		}
	}
	return errors.New("the disk never filled up")
}

func addOne(s *Store) error {
	p := Program{Kind: "fresh", Code: strings.Repeat("pass\n", 4000)}
	id, err := s.AddProgram(context.Background(), p, Evaluation{Outcome: "ok"})
	if err == nil {
		fmt.Println("program", id)
	}
	return err
}

// A file size limit stands for a full disk or quota: the error is clear, what was acknowledged is there, nothing half
// written is left, and the same Store goes on once there is space.
func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	checkFill(t, inRole("fill", dir))
	if files, err := os.ReadDir(filepath.Join(dir, "run", hiddenName)); err != nil || len(files) != 0 {
		t.Errorf("half a hidden file is left: %v %v", files, err)
	}
}

// checkFill runs the child and compares what it found stored, full and freed, with what was acknowledged.
func checkFill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	c := start(t, cmd)
	acknowledged, reports := "stored", 0
	for c.lines.Scan() {
		line := c.lines.Text()
		if id, ok := strings.CutPrefix(line, "program "); ok {
			acknowledged += " " + id
			continue
		}
		reports++
		if line != acknowledged {
			t.Errorf("got %q, acknowledged %q", line, acknowledged)
		}
	}
	if err := c.Wait(); err != nil || reports != 2 || strings.Count(acknowledged, " ") < 5 {
		t.Errorf("%v after %d reports; acknowledged %q", err, reports, acknowledged)
	}
}
