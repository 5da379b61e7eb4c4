package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3/driver"
)

// Reader reads a run, also while it is being written: each call sees one snapshot, everything acknowledged before
// it began. Safe for concurrent use.
type Reader struct {
	dir string
	db  *sql.DB
}

// View opens the run in dir for reading, from any process. The caller closes it.
// Returns ErrNoRun, *VersionError, ErrDamaged.
func View(dir string) (*Reader, error) {
	if err := present(dir); err != nil {
		return nil, err
	}
	mode := "mode=ro"
	if still(dir) {
		mode = "mode=ro&immutable=1"
	}
	db, err := connect(dir, mode, "query_only(1)")
	if err != nil {
		return nil, explain(dir, err)
	}
	r := &Reader{dir, db}
	if err := r.check(context.Background()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

// still reports whether dir cannot change and needs no log: a closed run in a folder that this user may not write to.
// SQLite would want to create its log and its shared memory there; while someone writes, they exist.
func still(dir string) bool {
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(filepath.Join(dir, dbName+suffix)); err == nil {
			return false
		}
	}
	f, err := os.CreateTemp(dir, scratchName)
	if err != nil {
		return true
	}
	f.Close()
	os.Remove(f.Name())
	return false
}

// connect opens a pool on run.db. Its connections are made when they are needed, each with the pragmas given.
func connect(dir, mode string, pragmas ...string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(dir, dbName))
	if err != nil {
		return nil, err
	}
	query := mode + "&_pragma=busy_timeout(10000)"
	for _, p := range pragmas {
		query += "&_pragma=" + p
	}
	db, err := driver.Open((&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	return db, nil
}

// Dir is the run folder.
func (r *Reader) Dir() string { return r.dir }

// Close ends reading.
func (r *Reader) Close() error { return r.db.Close() }

// Meta says what the run is.
func (r *Reader) Meta(ctx context.Context) (m Meta, err error) {
	cols := m.columns()
	err = r.db.QueryRowContext(ctx, "SELECT "+names(cols)+" FROM meta").Scan(fields(cols)...)
	return m, explain(r.dir, err)
}

// Programs returns all programs by id, each with its evaluations (frames left out).
func (r *Reader) Programs(ctx context.Context) ([]Program, error) {
	return r.programs(ctx)
}

// Program returns one program by id with its evaluations (frames left out).
func (r *Reader) Program(ctx context.Context, id int64) (Program, error) {
	list, err := r.programs(ctx, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("store: %s has no program %d", r.dir, id)
	}
	if err != nil {
		return Program{}, err
	}
	return list[0], nil
}

// Best returns the program of a branch with the highest search score among those whose ranking evaluation (repeat
// 0) is ok, the oldest of equals; false when there is none.
func (r *Reader) Best(ctx context.Context, branch string) (Program, bool, error) {
	var best int64
	err := r.db.QueryRowContext(ctx, `SELECT programs.id FROM programs JOIN evaluations ON program = programs.id
		WHERE branch = ? AND repeat = 0 AND outcome = 'ok' AND search_score IS NOT NULL
		ORDER BY search_score DESC, programs.id LIMIT 1`, branch).Scan(&best)
	if errors.Is(err, sql.ErrNoRows) {
		return Program{}, false, nil
	}
	if err != nil {
		return Program{}, false, explain(r.dir, err)
	}
	p, err := r.Program(ctx, best)
	return p, err == nil, err
}

// programs returns all programs, or the one with the id given.
func (r *Reader) programs(ctx context.Context, only ...any) (list []Program, err error) {
	var which, whose string
	if len(only) > 0 {
		which, whose = "WHERE id = ?", "WHERE program = ?"
	}
	err = r.snapshot(ctx, func(q *query) error {
		place := map[int64]int{}
		p, e := &Program{}, &Evaluation{}
		q.each("programs", append(p.columns(), column{"id", &p.ID}), which, only, "id", func() {
			place[p.ID] = len(list)
			list = append(list, *p)
			*p = Program{}
		})
		q.each("evaluations", append(e.columns(), column{"id", &e.ID}), whose, only, "program, repeat", func() {
			p := &list[place[e.Program]]
			p.Evaluations = append(p.Evaluations, *e)
			*e = Evaluation{}
		})
		return q.err
	})
	return list, err
}

// Frame returns what the program of an evaluation returned, as the judge's frame; nil when it returned nothing.
func (r *Reader) Frame(ctx context.Context, evaluation int64) (frame []byte, err error) {
	err = r.db.QueryRowContext(ctx, "SELECT frame FROM evaluations WHERE id = ?", evaluation).Scan(&frame)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("store: %s has no evaluation %d", r.dir, evaluation)
	}
	return frame, explain(r.dir, err)
}

// check tells a run of ours, of this version, from anything else.
func (r *Reader) check(ctx context.Context) error {
	var app, version int
	err := errors.Join(
		r.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app),
		r.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version))
	switch {
	case err != nil:
		return explain(r.dir, err)
	case app != application:
		return fmt.Errorf("store: %s is a database of another program (application id %#x): name the folder of a run", filepath.Join(r.dir, dbName), app)
	case version != Version:
		return &VersionError{r.dir, version, Version}
	}
	return nil
}
