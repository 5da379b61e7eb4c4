package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// Errors that a caller can test for with errors.Is.
var (
	ErrNoRun   = errors.New("no run")           // the folder is missing, empty, or its creation was interrupted
	ErrExists  = errors.New("run exists")       // Create found one
	ErrDamaged = errors.New("damaged run")      // run.db or a hidden file is truncated or overwritten
	ErrFull    = errors.New("no space left")    // disk, quota or file size limit; what was acknowledged is safe
	ErrNetwork = errors.New("not a local disk") // SQLite's WAL does not work there
	ErrClosed  = errors.New("store is closed")
)

// InUseError says that another process, or this one, has the run open for writing.
type InUseError struct {
	Dir  string
	PID  int // 0: not known
	Host string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("store: %s is in use by process %d on %s: wait for it or stop it, or only read the run (skep report, store.View)",
		e.Dir, e.PID, e.Host)
}

// VersionError says that the run was written by another version of the store.
type VersionError struct {
	Dir         string
	Found, Want int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("store: %s has store version %d, this skep reads version %d: open it with the skep that wrote it, or choose another folder",
		e.Dir, e.Found, e.Want)
}

// explain says what an error of SQLite or the file system means for the run in dir and what to do next.
func explain(dir string, err error) error {
	db := filepath.Join(dir, dbName)
	switch {
	case err == nil:
		return nil
	case full(dir, err):
		return fmt.Errorf("store: %w to write to %s: free some and repeat the step; every acknowledged program is safe (%w)",
			ErrFull, dir, err)
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("store: %w: %s is truncated or overwritten: restore a copy, or save what is readable with `sqlite3 %s .recover` (%w)",
			ErrDamaged, db, db, err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("store: another program holds a write lock on %s: readers must open it with mode=ro (%w)", db, err)
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: %s may not be written by this user; a run that was not closed needs that even to be read: copy the folder (%w)", dir, err)
	}
	return fmt.Errorf("store: %s: %w", dir, err)
}

// full reports whether err is for want of space. SQLite's layer keeps the system's word for a failed write only by
// chance (it is overwritten by the next call), so after one of those full tries for itself.
func full(dir string, err error) bool {
	if noSpace(err) {
		return true
	}
	for _, code := range []error{sqlite3.IOERR_WRITE, sqlite3.IOERR_TRUNCATE, sqlite3.IOERR_FSYNC, sqlite3.IOERR_SHMSIZE, sqlite3.IOERR_SHMMAP} {
		if errors.Is(err, code) {
			return noSpace(tryWrite(dir))
		}
	}
	return false
}

// noSpace knows a full disk, a quota and a limit on the size of a file.
func noSpace(err error) bool {
	for _, e := range []error{sqlite3.FULL, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// tryWrite writes a scratch file as far out as the largest file of run.db, and as much as the largest row.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, scratchName)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var end int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(filepath.Join(dir, dbName+suffix)); err == nil {
			end = max(end, info.Size())
		}
	}
	chunk := make([]byte, 1<<20)
	for n := int64(0); n <= MaxFrame; n += int64(len(chunk)) {
		if _, err := f.WriteAt(chunk, end+n); err != nil {
			return err
		}
	}
	return f.Sync()
}

func damaged(path, how string) error {
	return fmt.Errorf("store: %w: %s: %s: restore a copy, or save what is readable with `sqlite3 run.db .recover`", ErrDamaged, path, how)
}

// lost reports whether dir has a log or hidden states without their run.db.
func lost(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, dbName+"-wal"))
	if err == nil && info.Size() > 0 {
		return true
	}
	files, _ := os.ReadDir(filepath.Join(dir, hiddenName))
	return slices.ContainsFunc(files, func(f fs.DirEntry) bool { return ourHidden.MatchString(f.Name()) })
}
