package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/ncruces/go-sqlite3/vfs/memdb"
)

func TestNoRunAndExistingRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	for name, open := range map[string]func(string) error{
		"Open": func(d string) error { _, err := Open(d); return err },
		"View": func(d string) error { _, err := View(d); return err },
	} {
		if err := open(dir); !errors.Is(err, ErrNoRun) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s of no folder: %v", name, err)
		}
	}
	s := create(t)
	s.Close()
	if _, err := Create(s.Dir(), testMeta()); !errors.Is(err, ErrExists) {
		t.Errorf("Create over a run: %v", err)
	}
	if _, err := Open(s.Dir()); err != nil {
		t.Errorf("the run after that: %v", err)
	}
}

func TestInUseByThisProcess(t *testing.T) {
	s := create(t)
	var used *InUseError
	_, err := Open(s.Dir())
	host, _ := os.Hostname()
	if !errors.As(err, &used) || used.PID != os.Getpid() || used.Host != host {
		t.Errorf("second Open: %v", err)
	}
	if _, err := Create(s.Dir(), testMeta()); !errors.As(err, &used) {
		t.Errorf("Create over an open run: %v", err)
	}
	s.Close()
	if s, err := Open(s.Dir()); err != nil {
		t.Error(err)
	} else {
		s.Close()
	}
}

func TestInUseByAnotherProcess(t *testing.T) {
	s := create(t)
	s.Close()
	c := start(t, inRole("hold", s.Dir()))
	c.line(t)
	var used *InUseError
	_, err := Open(s.Dir())
	if !errors.As(err, &used) || used.PID != c.Process.Pid || !strings.Contains(err.Error(), fmt.Sprint(c.Process.Pid)) {
		t.Errorf("Open of a run that process %d holds: %v", c.Process.Pid, err)
	}
	if v, err := View(s.Dir()); err != nil {
		t.Errorf("View of a run in use: %v", err)
	} else {
		v.Close()
	}
	c.Process.Kill()
	c.Wait()
	if left, err := os.ReadFile(filepath.Join(s.Dir(), lockName)); err != nil || !strings.HasPrefix(string(left), fmt.Sprint(c.Process.Pid)) {
		t.Errorf("the dead process left %q, %v", left, err)
	}
	if s, err = Open(s.Dir()); err != nil {
		t.Fatalf("the lock of a dead process is not taken over: %v", err)
	}
	defer s.Close()
	if now, _ := os.ReadFile(filepath.Join(s.Dir(), lockName)); !strings.HasPrefix(string(now), fmt.Sprintf("%d ", os.Getpid())) {
		t.Errorf("run.lock holds %q", now)
	}
}

func TestOtherVersion(t *testing.T) {
	s := create(t)
	if _, err := s.db.Exec("PRAGMA user_version = 7"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for name, open := range map[string]func(string) error{
		"Open": func(d string) error { _, err := Open(d); return err },
		"View": func(d string) error { _, err := View(d); return err },
	} {
		var version *VersionError
		err := open(s.Dir())
		if !errors.As(err, &version) || version.Found != 7 || version.Want != Version || !strings.Contains(err.Error(), "7") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherProgramsDatabase(t *testing.T) {
	s := create(t)
	if _, err := s.db.Exec("PRAGMA application_id = 12"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(s.Dir()); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("got %v", err)
	}
}

// filled is a closed run of some hundred KiB.
func filled(t *testing.T) string {
	s := create(t)
	p := sampleProgram()
	p.Code = strings.Repeat("pass\n", 2000)
	for range 30 {
		add(t, s, p, sampleEvaluation())
	}
	if err := s.SaveRound(context.Background(), Round{N: 1, Stage: Formed}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveHidden(context.Background(), Main, 1, Means, []int{4}, sevenths(4)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Dir()
}

func TestDamagedDatabase(t *testing.T) {
	for name, harm := range map[string]func(db []byte) []byte{
		"cut in the middle": func(b []byte) []byte { return b[:len(b)/2] },
		"cut to 1000 bytes": func(b []byte) []byte { return b[:1000] },
		"emptied":           func(b []byte) []byte { return nil },
		"cut to 10 bytes":   func(b []byte) []byte { return b[:10] },
		"header overwritten": func(b []byte) []byte {
			copy(b, "this is no database at all")
			return b
		},
		"pages overwritten": func(b []byte) []byte {
			for i := 4096 * 2; i < len(b); i++ {
				b[i] = 0xa5
			}
			return b
		},
		"text instead": func([]byte) []byte { return []byte(strings.Repeat("no database\n", 1000)) },
	} {
		dir := filled(t)
		path := filepath.Join(dir, dbName)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, harm(b), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: Open says %v", name, err)
		}
		if v, err := View(dir); err == nil {
			_, err = v.Programs(context.Background())
			v.Close()
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: Programs says %v", name, err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: View says %v", name, err)
		}
	}
}

func TestLostDatabase(t *testing.T) {
	s := create(t)
	add(t, s, sampleProgram(), sampleEvaluation())
	copied := t.TempDir() // as after a crash: the log is there, run.db is not
	b, err := os.ReadFile(filepath.Join(s.Dir(), dbName+"-wal"))
	if err != nil || os.WriteFile(filepath.Join(copied, dbName+"-wal"), b, 0o644) != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"Open":   func() error { _, err := Open(copied); return err },
		"Create": func() error { _, err := Create(copied, testMeta()); return err },
		"Create beside hidden states": func() error {
			dir := filled(t)
			err := os.Remove(filepath.Join(dir, dbName))
			_, again := Create(dir, testMeta())
			return errors.Join(err, again)
		},
	} {
		if err := open(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDamagedHiddenFile(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"cut":     func(p string) error { return os.Truncate(p, 130) },
		"missing": os.Remove,
		"changed": func(p string) error {
			b, err := os.ReadFile(p)
			b[len(b)-1] ^= 1
			return errors.Join(err, os.WriteFile(p, b, 0o644))
		},
	} {
		dir := filled(t)
		if err := harm(filepath.Join(dir, hiddenName, "r000001.npy")); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Hidden(context.Background(), Main, 1, Means); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

func TestNetworkFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := probe(dir); err != nil {
		t.Errorf("a local folder: %v", err)
	}
	// SQLite's memory file system has no WAL: it stands for those that say so only when they are asked.
	err := probeWAL("skep", "memdb")
	if err == nil {
		t.Fatal("a file system without WAL passes")
	}
	if err = notLocal(dir, err); !errors.Is(err, ErrNetwork) || !strings.Contains(err.Error(), "local disk") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the probe left %v", left)
	}
}

// A copy that nobody may write to is read all the same.
func TestViewOfReadOnlyCopy(t *testing.T) {
	dir := filled(t)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	v, err := View(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if list, err := v.Programs(context.Background()); err != nil || len(list) != 30 {
		t.Errorf("%d programs, %v", len(list), err)
	}
}
