package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Killed at any moment, twenty times in a row on one run: every acknowledged program is there once and whole, SQLite
// finds its file sound, no hidden file is without a row, and the ids go on.
func TestKillLosesNothing(t *testing.T) {
	s := create(t)
	dir := s.Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged, hidden, last := map[int64]string{}, map[int]bool{}, int64(0)
	for range 20 {
		killWriter(t, dir, acknowledged, hidden)
		last = checkAfterKill(t, dir, acknowledged, hidden, last)
	}
	if len(acknowledged) < 100 || len(hidden) == 0 {
		t.Errorf("only %d programs and %d rounds were acknowledged: the children hardly wrote", len(acknowledged), len(hidden))
	}
	t.Logf("%d programs acknowledged, %d stored", len(acknowledged), last)
}

// killWriter runs a writing child, kills it some moment after its first word, and notes what it had acknowledged until
// then.
func killWriter(t *testing.T, dir string, acknowledged map[int64]string, hidden map[int]bool) {
	t.Helper()
	c := start(t, inRole("write", dir))
	var once sync.Once
	for c.lines.Scan() {
		once.Do(func() {
			time.AfterFunc(time.Duration(rand.IntN(150))*time.Millisecond, func() { c.Process.Kill() })
		})
		var id int64
		var code string
		var n int
		if _, err := fmt.Sscanf(c.lines.Text(), "program %d %s", &id, &code); err == nil {
			acknowledged[id] = code
		} else if _, err := fmt.Sscanf(c.lines.Text(), "hidden %d", &n); err == nil {
			hidden[n] = true
		}
	}
	c.Wait()
}

// checkAfterKill opens the run, compares, adds one program, and returns its id.
func checkAfterKill(t *testing.T, dir string, acknowledged map[int64]string, hidden map[int]bool, last int64) int64 {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Programs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range list {
		if p.ID != int64(i+1) || len(p.Evaluations) != 1 || p.Evaluations[0].Message != p.Code {
			t.Fatalf("program %d at place %d has %d evaluations", p.ID, i, len(p.Evaluations))
		}
	}
	for id, code := range acknowledged {
		if id > int64(len(list)) || !strings.HasPrefix(list[id-1].Code, code) {
			t.Fatalf("acknowledged program %d is lost or changed", id)
		}
	}
	for n := range hidden {
		if shape, data, err := s.Hidden(context.Background(), Main, n, Means); err != nil || len(data) != 3000 || shape[0] != 30 {
			t.Fatalf("hidden states of round %d: %v %v", n, shape, err)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(dir, hiddenName)); len(files) > 5 {
		t.Fatalf("%d files of 5 rounds: orphans stayed", len(files))
	}
	var said string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Fatalf("integrity_check: %s %v", said, err)
	}
	id := add(t, s, Program{Kind: "fresh", Code: "mine"}, Evaluation{Outcome: "ok", Message: "mine"})
	if id != int64(len(list)+1) || id <= last {
		t.Fatalf("next id is %d after %d programs, the last one was %d", id, len(list), last)
	}
	acknowledged[id] = "mine"
	return id
}

// Killed while it is made, a run exists whole or not at all, and its folder can be used.
func TestKillDuringCreate(t *testing.T) {
	made := 0
	for i := range 12 {
		dir := filepath.Join(t.TempDir(), "run")
		c := start(t, inRole("create", dir))
		time.AfterFunc(time.Duration(10+15*i)*time.Millisecond, func() { c.Process.Kill() })
		created := c.lines.Scan()
		c.Process.Kill()
		c.Wait()
		s, err := Open(dir)
		if errors.Is(err, ErrNoRun) && !created {
			s, err = Create(dir, testMeta())
		}
		if err != nil {
			t.Fatalf("after %d ms (created: %v): %v", 10+15*i, created, err)
		}
		if _, err := s.Meta(context.Background()); err != nil {
			t.Error(err)
		}
		if created {
			made++
		}
		s.Close()
	}
	t.Logf("%d of 12 were made in time", made)
}
