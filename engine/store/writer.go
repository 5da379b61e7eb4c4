package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
)

// maxBatch is the most jobs in one commit: with synchronous=FULL a commit costs an fsync (0.2 ms on a good disk,
// 10 ms on a slow one), so what is queued meanwhile shares the next one.
const maxBatch = 100

// writer is the one goroutine that writes to run.db. Safe for concurrent use.
type writer struct {
	conn   *sql.Conn // the goroutine's
	stmts  map[string]*sql.Stmt
	jobs   chan job
	mu     sync.RWMutex // held for reading while a job is sent, for writing to close
	closed bool
	done   chan struct{}
}

type job struct {
	do     func(*tx) error
	result chan error
}

func startWriter(conn *sql.Conn) *writer {
	w := &writer{conn: conn, stmts: map[string]*sql.Stmt{}, jobs: make(chan job, maxBatch), done: make(chan struct{})}
	go w.run()
	return w
}

// write queues do and waits until it is durable or has failed. ctx is heard until do is queued: after that the
// answer comes within one commit, so that a caller always knows whether it was written.
func (w *writer) write(ctx context.Context, do func(*tx) error) error {
	j := job{do, make(chan error, 1)}
	if err := w.send(ctx, j); err != nil {
		return err
	}
	return <-j.result
}

func (w *writer) send(ctx context.Context, j job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for what is queued and closes the connection. It is called once.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.jobs)
	w.mu.Unlock()
	<-w.done
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.jobs {
		batch := w.gather(first)
		for i, err := range w.commit(batch) {
			batch[i].result <- err
		}
	}
}

func (w *writer) gather(first job) []job {
	batch := []job{first}
	for len(batch) < maxBatch {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return batch
			}
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction and returns one result a job. A job whose row is refused is undone alone;
// anything else (a full disk, an I/O error) undoes the whole batch, because SQLite may have undone it already.
func (w *writer) commit(batch []job) []error {
	results := make([]error, len(batch))
	err := w.exec("BEGIN IMMEDIATE")
	for i := 0; err == nil && i < len(batch); i++ {
		results[i], err = w.alone(batch[i])
	}
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		_ = w.exec("ROLLBACK") // fails when SQLite has rolled back by itself
		for i := range results {
			results[i] = err
		}
	}
	return results
}

// alone runs one job inside the transaction. refused is its own failure, already undone; fatal is everybody's.
func (w *writer) alone(j job) (refused, fatal error) {
	if err := w.exec("SAVEPOINT job"); err != nil {
		return nil, err
	}
	refused = j.do(&tx{w})
	if refused != nil {
		if !harmless(refused) {
			return nil, refused
		}
		if err := w.exec("ROLLBACK TO job"); err != nil {
			return nil, err
		}
	}
	return refused, w.exec("RELEASE job")
}

// harmless reports whether err leaves the transaction as it was: a refused row, or an error of ours before any SQL.
func harmless(err error) bool {
	var code sqlite3.ErrorCode
	return !errors.As(err, &code) || code == sqlite3.CONSTRAINT || code == sqlite3.TOOBIG
}

func (w *writer) exec(query string) error {
	_, err := (&tx{w}).exec(query)
	return err
}

// tx is what a job writes with. The goroutine's; a job must not keep it.
type tx struct{ w *writer }

func (t *tx) exec(query string, args ...any) (sql.Result, error) {
	stmt, ok := t.w.stmts[query]
	if !ok {
		var err error
		if stmt, err = t.w.conn.PrepareContext(context.Background(), query); err != nil {
			return nil, err
		}
		t.w.stmts[query] = stmt
	}
	return stmt.ExecContext(context.Background(), args...)
}

// insert adds a row and returns its rowid.
func (t *tx) insert(table string, cols []column) (int64, error) {
	args, err := values(cols)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", table, err)
	}
	r, err := t.exec(insertSQL(table, cols), args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// upsert writes a row whose first key columns are its primary key, and touches no page when nothing changed.
func (t *tx) upsert(table string, key int, cols []column) error {
	args, err := values(cols)
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	rest := cols[key:]
	var set, old, excluded []string
	for _, c := range rest {
		set = append(set, c.name+" = excluded."+c.name)
		old = append(old, table+"."+c.name)
		excluded = append(excluded, "excluded."+c.name)
	}
	_, err = t.exec(insertSQL(table, cols)+
		" ON CONFLICT ("+names(cols[:key])+") DO UPDATE SET "+strings.Join(set, ", ")+
		" WHERE ("+strings.Join(old, ", ")+") IS NOT ("+strings.Join(excluded, ", ")+")", args...)
	return err
}

func insertSQL(table string, cols []column) string {
	marks := strings.Repeat(", ?", len(cols))[2:]
	return "INSERT INTO " + table + " (" + names(cols) + ") VALUES (" + marks + ")"
}
