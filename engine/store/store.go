package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// Version is the version of the tables, PRAGMA user_version of run.db. It rises when SCHEMA.md changes.
const Version = 1

// application is PRAGMA application_id of run.db, "skep" in ASCII: another program's database is told from ours.
const application = 0x736b6570

// The files of a run folder.
const (
	dbName     = "run.db"
	lockName   = "run.lock"
	hiddenName = "hidden"

	scratchName = ".scratch-*" // made and removed by probe and birth; sweep removes what a crash left
)

//go:embed schema.sql
var schema string

// Store is a run opened for writing, by this process alone. Safe for concurrent use; the caller closes it.
type Store struct {
	*Reader
	lock    *os.File
	db      *sql.DB
	writer  *writer
	files   sync.Mutex // held while a hidden file is written
	once    sync.Once
	closing error
}

// Create makes dir and a new run in it. Empty RunID, Created and Branch of meta are filled in.
// Returns ErrExists when dir holds a run, *InUseError when a process has it open, ErrNetwork when dir is on a
// network file system, ErrFull when there is no space.
func Create(dir string, meta Meta) (*Store, error) {
	if err := complete(&meta); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, hiddenName), 0o777); err != nil {
		return nil, explain(dir, err)
	}
	return open(dir, func() error {
		if err := present(dir); err == nil {
			return fmt.Errorf("store: %w in %s: open it, or choose another folder", ErrExists, dir)
		} else if !errors.Is(err, ErrNoRun) {
			return err
		}
		return explain(dir, birth(dir, meta))
	})
}

// Open opens the run in dir, checks it, and sweeps away hidden files that a crash left without a row.
// Returns ErrNoRun when there is none, *InUseError, *VersionError, ErrDamaged.
func Open(dir string) (*Store, error) {
	if err := present(dir); err != nil {
		return nil, err
	}
	return open(dir, func() error { return nil })
}

// Close waits for queued writes, folds the log back into run.db and frees the folder. Closing twice is allowed.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closing = errors.Join(s.writer.close(), s.Reader.Close(), s.db.Close(), s.lock.Close())
	})
	return s.closing
}

// AddProgram writes a program with its first evaluation in one transaction and returns its id once both are
// durable. p.ID, e.ID, e.Program, p.Evaluations are ignored; zero times mean now, an empty branch means Main.
func (s *Store) AddProgram(ctx context.Context, p Program, e Evaluation) (int64, error) {
	if p.Branch == "" {
		p.Branch = Main
	}
	if p.Created.IsZero() {
		p.Created = time.Now()
	}
	err := s.write(ctx, func(t *tx) (err error) {
		if p.ID, err = t.insert("programs", p.columns()); err != nil {
			return err
		}
		e.Program = p.ID
		_, err = t.evaluation(e)
		return err
	})
	return p.ID, err
}

// AddEvaluation writes one more evaluation of a stored program (e.Program, e.Repeat) and returns its id.
func (s *Store) AddEvaluation(ctx context.Context, e Evaluation) (id int64, err error) {
	err = s.write(ctx, func(t *tx) (err error) {
		id, err = t.evaluation(e)
		return err
	})
	return id, err
}

// SaveRound writes the round as it stands, over what was stored of it before: call it after every stage. Unchanged
// rows are not written again. Programs that it names must have been added before.
func (s *Store) SaveRound(ctx context.Context, r Round) error {
	if r.Branch == "" {
		r.Branch = Main
	}
	if err := checkBranch(r.Branch); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error { return t.round(&r) })
}

// SetBranch stores which branch the run continues.
func (s *Store) SetBranch(ctx context.Context, branch string) error {
	if err := checkBranch(branch); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec("UPDATE meta SET branch = ?", branch)
		return err
	})
}

func (s *Store) write(ctx context.Context, do func(*tx) error) error {
	return explain(s.dir, s.writer.write(ctx, do))
}

// open takes the lock of dir, lets prepare see to it that there is a run, and opens, checks and sweeps it.
func open(dir string, prepare func() error) (*Store, error) {
	if kind := network(dir); kind != "" {
		return nil, notLocal(dir, fmt.Errorf("it is on %s", kind))
	}
	held, err := lock(dir)
	if err != nil {
		return nil, err
	}
	err = probe(dir)
	if err == nil {
		err = prepare()
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return openLocked(dir, held)
}

// openLocked takes the lock held, also when it fails.
func openLocked(dir string, held *os.File) (*Store, error) {
	db, conn, err := connectWriter(dir)
	if err != nil {
		return nil, errors.Join(explain(dir, err), held.Close())
	}
	reader, err := connect(dir, "mode=ro", "query_only(1)")
	if err != nil {
		return nil, errors.Join(explain(dir, err), conn.Close(), db.Close(), held.Close())
	}
	s := &Store{Reader: &Reader{dir: dir, db: reader}, lock: held, db: db, writer: startWriter(conn)}
	err = s.check()
	if err == nil {
		err = s.sweep()
	}
	if err == nil {
		err = s.Event(context.Background(), slog.LevelInfo, "opened", "pid", os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func connectWriter(dir string) (*sql.DB, *sql.Conn, error) {
	db, err := connect(dir, "mode=rw", "journal_mode(wal)", "synchronous(full)", "foreign_keys(1)", "journal_size_limit(67108864)")
	if err != nil {
		return nil, nil, err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return db, conn, nil
}

// birth makes run.db aside and moves it into dir when it is whole and durable: a run exists whole or not at all.
func birth(dir string, meta Meta) error {
	scratch, err := os.MkdirTemp(dir, scratchName)
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	db, err := connect(scratch, "mode=rwc", "journal_mode(wal)", "synchronous(full)")
	if err != nil {
		return err
	}
	if err := errors.Join(fill(db, meta), db.Close()); err != nil { // closing folds the log into the file
		return err
	}
	if err := os.Rename(filepath.Join(scratch, dbName), filepath.Join(dir, dbName)); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// fill makes the tables and writes meta.
func fill(db *sql.DB, meta Meta) error {
	one := 1
	cols := append(meta.columns(), column{"one", &one})
	args, err := values(cols)
	if err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	marks := fmt.Sprintf("; PRAGMA application_id = %d; PRAGMA user_version = %d", application, Version)
	if _, err := db.Exec(schema + marks); err != nil {
		return err
	}
	_, err = db.Exec(insertSQL("meta", cols), args...)
	return err
}

// check tells a run of ours, whole and of this version, from anything else.
func (s *Store) check() error {
	ctx := context.Background()
	if err := s.Reader.check(ctx); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(s.dir, dbName)); err != nil || info.Size() > checkBytes {
		return err
	}
	var said string
	if err := s.Reader.db.QueryRow("PRAGMA quick_check(1)").Scan(&said); err != nil {
		return explain(s.dir, err)
	}
	if said != "ok" {
		return damaged(s.dir, said)
	}
	return nil
}

// checkBytes is the size of run.db up to which Open reads it all to find damage: about a second's work.
const checkBytes = 256 << 20

// present returns ErrNoRun when dir has no run.db. An empty one, or a log without it, is damage: Create makes
// run.db whole.
func present(dir string) error {
	info, err := os.Stat(filepath.Join(dir, dbName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !lost(dir):
		return fmt.Errorf("store: %w in %s: create one there, or name the folder of a run", ErrNoRun, dir)
	case errors.Is(err, fs.ErrNotExist):
		return damaged(dir, dbName+" is missing, though its log or its hidden states are there")
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("store: %s is a file or lies below one; a run is a folder: name another one (%w)", dir, err)
	case err != nil:
		return explain(dir, err)
	case info.Size() == 0:
		return damaged(filepath.Join(dir, dbName), "it is empty")
	}
	return nil
}

func complete(m *Meta) error {
	if m.RunID == "" {
		m.RunID = uuid.NewString()
	}
	if m.Created.IsZero() {
		m.Created = time.Now()
	}
	if m.Branch == "" {
		m.Branch = Main
	}
	return checkBranch(m.Branch)
}

var branchName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// checkBranch: a branch is part of file names, so it is short and plain.
func checkBranch(name string) error {
	if !branchName.MatchString(name) {
		return fmt.Errorf("store: branch %q: use 1 to 40 of a-z, 0-9, _ and -, first a letter or digit", name)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
