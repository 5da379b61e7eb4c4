package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// addCoded adds a program whose evaluation repeats its code, so that a reader can tell a torn pair.
func addCoded(s *Store, code string) error {
	_, err := s.AddProgram(context.Background(), Program{Kind: "fresh", Code: code}, Evaluation{Outcome: "ok", Message: code})
	return err
}

func TestConcurrentWritersAndReaders(t *testing.T) {
	s := create(t)
	v, err := View(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	const writers, each = 8, 10
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				n := w*each + i + 1
				err := errors.Join(addCoded(s, fmt.Sprint(n)), s.SaveRound(context.Background(), Round{N: n, Stage: Formed, Swarms: []Swarm{{Kind: "fresh", Stage: Formed}}}),
					s.SaveHidden(context.Background(), Main, n, Means, []int{1}, []float32{float32(n)}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	for _, r := range []*Reader{s.Reader, v, s.Reader, v} {
		reading.Go(func() { readUntil(t, r, stop) })
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	if list, err := v.Programs(context.Background()); err != nil || len(list) != writers*each {
		t.Errorf("%d programs, %v", len(list), err)
	}
}

func readUntil(t *testing.T, r *Reader, stop chan struct{}) {
	for seen := 0; ; {
		list, err := r.Programs(context.Background())
		rounds, err2 := r.Rounds(context.Background())
		if err := errors.Join(err, err2); err != nil || len(list) < seen {
			t.Errorf("%d programs after %d, %v", len(list), seen, err)
			return
		}
		seen = len(list)
		for _, p := range list {
			if len(p.Evaluations) != 1 || p.Evaluations[0].Message != p.Code {
				t.Errorf("program %d is torn", p.ID)
			}
		}
		for _, round := range rounds {
			if len(round.Swarms) != 1 {
				t.Errorf("round %d is torn", round.N)
			}
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// blocked starts a job that holds the writer, with its transaction open, until release is called.
func blocked(s *Store) (release func()) {
	begun, gate := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- s.write(context.Background(), func(t *tx) error {
			_, err := t.exec("UPDATE meta SET branch = branch")
			close(begun)
			<-gate
			return err
		})
	}()
	<-begun
	return func() { close(gate); <-done }
}

// What is queued shares a commit; the one that is refused is undone alone.
func TestBatchRefusesOne(t *testing.T) {
	s := create(t)
	release := blocked(s)
	outcomes := make([]error, 20)
	var wg sync.WaitGroup
	for i := range outcomes {
		wg.Go(func() {
			e := Evaluation{Outcome: "ok"}
			if i%5 == 0 {
				e.Outcome = "great"
			}
			_, outcomes[i] = s.AddProgram(context.Background(), Program{Kind: "fresh", Code: fmt.Sprint(i)}, e)
		})
	}
	release()
	wg.Wait()
	for i, err := range outcomes {
		if (err != nil) != (i%5 == 0) {
			t.Errorf("job %d: %v", i, err)
		}
	}
	list, err := s.Programs(context.Background())
	if err != nil || len(list) != 16 {
		t.Errorf("%d programs, %v; a refused evaluation must take its program with it", len(list), err)
	}
}

// Errors of SQLite come with and without a message; after some of them it has undone the transaction by itself.
func TestHarmless(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("ours"): true, sqlite3.CONSTRAINT_CHECK: true, sqlite3.CONSTRAINT: true, sqlite3.TOOBIG: true,
		sqlite3.IOERR_WRITE: false, sqlite3.FULL: false, sqlite3.CORRUPT: false, sqlite3.BUSY: false,
	} {
		if got := harmless(fmt.Errorf("row: %w", err)); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func python(t *testing.T, script, dir string) *exec.Cmd {
	t.Helper()
	return exec.Command("python3", filepath.Join("testdata", script), dir)
}

// Python's own sqlite3 reads the run while it is written: whole transactions only, never fewer than before.
func TestPythonReadsWhileWeWrite(t *testing.T) {
	s := create(t)
	c := start(t, python(t, "reader.py", s.Dir()))
	c.line(t)
	for i := range 300 {
		if err := addCoded(s, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintln(c.stdin, "stop")
	last := c.line(t)
	if err := c.Wait(); err != nil || !strings.HasPrefix(last, "300 ") {
		t.Errorf("Python saw %q, %v", last, err)
	}
}

// Other code of this process reads, hashes or copies the files of an open run. With POSIX locks, closing them would
// drop SQLite's locks, and another process could write into our transaction; ours are held by open file.
func TestLockSurvivesOtherReadersOfTheFiles(t *testing.T) {
	s := create(t)
	try := func() string {
		out, err := python(t, "writer.py", s.Dir()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := try(); got != "taken" {
		t.Fatalf("Python gets no lock on an idle run: %s", got)
	}
	release := blocked(s)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if _, err := os.ReadFile(filepath.Join(s.Dir(), dbName+suffix)); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(s.Dir(), dbName+suffix), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if got := try(); got != "database is locked" {
		t.Errorf("inside our transaction Python got: %s", got)
	}
	release()
	if got := try(); got != "taken" {
		t.Errorf("afterwards Python got: %s", got)
	}
}
