package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of what one evaluation stores.
const (
	MaxFrame  = 16 << 20 // bytes of a result frame, the judge's own limit
	MaxOutput = 64 << 10 // bytes of stdout and of stderr
)

// evaluation writes one evaluation with its frame.
func (t *tx) evaluation(e Evaluation) (int64, error) {
	if len(e.Frame) > MaxFrame {
		return 0, fmt.Errorf("frame of %d bytes, at most %d are stored", len(e.Frame), MaxFrame)
	}
	if e.Created.IsZero() {
		e.Created = time.Now()
	}
	e.Stdout, e.Stderr = cut(e.Stdout), cut(e.Stderr)
	return t.insert("evaluations", append(e.columns(), column{"frame", &e.Frame}))
}

// cut keeps the head and the tail of output longer than MaxOutput and says how much is missing.
func cut(s string) string {
	if len(s) <= MaxOutput {
		return s
	}
	const room = 64 // for the line between
	half := (MaxOutput - room) / 2
	return s[:half] + fmt.Sprintf("\n… %d bytes left out …\n", len(s)-2*half) + s[len(s)-half:]
}

// round writes r and everything in it. Rows beyond its present sizes go, children first.
func (t *tx) round(r *Round) error {
	if err := t.upsert("rounds", 2, r.columns()); err != nil {
		return err
	}
	for _, table := range []string{"agents", "summaries", "swarms"} {
		if err := t.trim(table, "swarm", len(r.Swarms), at(r)); err != nil {
			return err
		}
	}
	if err := t.trim("stages", "run", len(r.Timings), at(r)); err != nil {
		return err
	}
	for i := range r.Swarms {
		if err := t.swarm(append(at(r), ordinal("swarm", i)), &r.Swarms[i]); err != nil {
			return fmt.Errorf("round %d, swarm %d: %w", r.N, i, err)
		}
	}
	for i := range r.Timings {
		if err := t.upsert("stages", 3, slices.Concat(at(r), []column{ordinal("run", i)}, r.Timings[i].columns())); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) swarm(key []column, s *Swarm) error {
	if err := t.upsert("swarms", len(key), slices.Concat(key, s.columns())); err != nil {
		return err
	}
	if err := t.trim("agents", "agent", len(s.Agents), key); err != nil {
		return err
	}
	if err := t.trim("summaries", "replicate", len(s.Summaries), key); err != nil {
		return err
	}
	for i := range s.Agents {
		if err := t.upsert("agents", 4, slices.Concat(key, []column{ordinal("agent", i)}, s.Agents[i].columns())); err != nil {
			return fmt.Errorf("agent %d: %w", i, err)
		}
	}
	for i := range s.Summaries {
		if err := t.upsert("summaries", 4, slices.Concat(key, []column{ordinal("replicate", i)}, s.Summaries[i].columns())); err != nil {
			return fmt.Errorf("summary %d: %w", i, err)
		}
	}
	return nil
}

// trim deletes the rows of table under key whose last key column is n or more.
func (t *tx) trim(table, last string, n int, key []column) error {
	args, err := values(key)
	if err != nil {
		return err
	}
	var where []string
	for _, c := range key {
		where = append(where, c.name+" = ?")
	}
	_, err = t.exec("DELETE FROM "+table+" WHERE "+strings.Join(where, " AND ")+" AND "+last+" >= ?", append(args, n)...)
	return err
}

// at are the first two key columns of everything in a round.
func at(r *Round) []column { return []column{{"branch", &r.Branch}, {"round", &r.N}} }

func ordinal(name string, i int) column { return column{name, &i} }
