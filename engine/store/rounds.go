package store

import (
	"context"
	"database/sql"
	"fmt"
)

// Rounds returns all rounds of all branches, whole, in the order in which they were first saved: a fork comes after
// the round it was forked from.
func (r *Reader) Rounds(ctx context.Context) ([]Round, error) { return r.rounds(ctx, "") }

// Round returns round n of a branch.
func (r *Reader) Round(ctx context.Context, branch string, n int) (Round, error) {
	list, err := r.rounds(ctx, "WHERE branch = ? AND round = ?", branch, n)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("store: %s has no round %d on branch %s", r.dir, n, branch)
	}
	if err != nil {
		return Round{}, err
	}
	return list[0], nil
}

// rounds reads the rounds that where selects and everything in them, table by table.
func (r *Reader) rounds(ctx context.Context, where string, args ...any) (list []Round, err error) {
	err = r.snapshot(ctx, func(q *query) error {
		row := &Round{}
		place := map[roundKey]int{}
		q.each("rounds", row.columns(), where, args, "rowid", func() {
			place[roundKey{row.Branch, row.N}] = len(list)
			list = append(list, *row)
			*row = Round{}
		})
		at := func(k roundKey) *Round { return &list[place[k]] }
		q.swarms(where, args, at)
		q.agents(where, args, at)
		q.summaries(where, args, at)
		q.timings(where, args, at)
		return q.err
	})
	return list, err
}

// roundKey names a round: a row of any table of rounds begins with it.
type roundKey struct {
	branch string
	n      int
}

func (k *roundKey) columns() []column { return []column{{"branch", &k.branch}, {"round", &k.n}} }

func (q *query) swarms(where string, args []any, at func(roundKey) *Round) {
	var k roundKey
	row := &Swarm{}
	q.each("swarms", append(k.columns(), row.columns()...), where, args, "branch, round, swarm", func() {
		r := at(k)
		r.Swarms = append(r.Swarms, *row)
		*row = Swarm{}
	})
}

func (q *query) agents(where string, args []any, at func(roundKey) *Round) {
	var k roundKey
	var swarm int
	row := &Agent{}
	cols := append(append(k.columns(), column{"swarm", &swarm}), row.columns()...)
	q.each("agents", cols, where, args, "branch, round, swarm, agent", func() {
		s := &at(k).Swarms[swarm]
		s.Agents = append(s.Agents, *row)
	})
}

func (q *query) summaries(where string, args []any, at func(roundKey) *Round) {
	var k roundKey
	var swarm int
	row := &Summary{}
	cols := append(append(k.columns(), column{"swarm", &swarm}), row.columns()...)
	q.each("summaries", cols, where, args, "branch, round, swarm, replicate", func() {
		s := &at(k).Swarms[swarm]
		s.Summaries = append(s.Summaries, *row)
	})
}

func (q *query) timings(where string, args []any, at func(roundKey) *Round) {
	var k roundKey
	row := &Timing{}
	q.each("stages", append(k.columns(), row.columns()...), where, args, "branch, round, run", func() {
		r := at(k)
		r.Timings = append(r.Timings, *row)
	})
}

// query reads in one snapshot. After an error it reads no more, and err holds it.
type query struct {
	ctx context.Context
	tx  *sql.Tx
	err error
}

// snapshot runs do on one state of the database.
func (r *Reader) snapshot(ctx context.Context, do func(*query) error) error {
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return explain(r.dir, err)
	}
	defer tx.Rollback() // nothing was written
	return explain(r.dir, do(&query{ctx: ctx, tx: tx}))
}

// each selects cols of the rows that where takes from a table and calls row after scanning each into their fields.
func (q *query) each(table string, cols []column, where string, args []any, order string, row func()) {
	if q.err != nil {
		return
	}
	rows, err := q.tx.QueryContext(q.ctx, "SELECT "+names(cols)+" FROM "+table+" "+where+" ORDER BY "+order, args...)
	if err != nil {
		q.err = err
		return
	}
	defer rows.Close()
	for rows.Next() {
		if q.err = rows.Scan(fields(cols)...); q.err != nil {
			return
		}
		row()
	}
	q.err = rows.Err()
}
