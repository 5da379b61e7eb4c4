package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"skep/engine/lm"
)

// Fork copies the round at its present stage onto a branch of its own, with the archive that the round sees. The copy shares
// keys and values (copy-on-write), texts and verdicts, and keeps the keys of the random generator: what is not changed
// gives the same again. Nothing of a fork enters the main branch. An empty name takes the next free "fork-N".
func (r *Round) Fork(ctx context.Context, name string) (fork *Round, err error) {
	s := r.search
	err = s.exclusive("Fork", func() error {
		if name == "" {
			for i := 1; name == "" || s.branches[name] != nil; i++ {
				name = fmt.Sprintf("fork-%d", i)
			}
		}
		if s.branches[name] != nil {
			return fmt.Errorf("engine: there is a branch %q already; branches: %v", name, s.branchNames())
		}
		c, err := r.copy(name)
		if err != nil {
			return err
		}
		// The new branch knows what was committed before the round, also what Lag hid from the round's draws.
		b := &branch{name: name, from: r.branch, archive: s.branches[r.branch].before(r.n, 0), history: slices.Clone(r.history), open: c}
		s.update(func() { s.branches[name] = b })
		if err := cmp.Or(c.save(ctx), c.saveHidden(ctx)); err != nil {
			s.update(func() { delete(s.branches, name) })
			c.release()
			return err
		}
		fork = c
		return nil
	})
	return fork, err
}

// copy is the round with swarms, agents and texts of its own. A committed round is open again in its copy.
func (r *Round) copy(branch string) (*Round, error) {
	c := &Round{search: r.search, branch: branch, n: r.n, archive: r.archive, history: slices.Clone(r.history), started: time.Now(),
		tuned: r.tuned, newTokens: r.newTokens, timings: slices.Clone(r.timings)}
	shared := &sharing{backend: r.search.backend}
	if r.phraseKV != nil {
		c.phraseKV = maps.Clone(r.phraseKV)
		for k, st := range c.phraseKV {
			c.phraseKV[k] = shared.stretch(st)
		}
	}
	for _, sw := range r.swarms {
		c.swarms = append(c.swarms, sw.copy(c, shared))
	}
	for _, e := range r.tunes {
		edit := *e
		c.tunes = append(c.tunes, &edit)
	}
	if shared.err != nil {
		c.release()
		return nil, fmt.Errorf("engine: round %d cannot be forked: %w", r.n, shared.err)
	}
	return c, nil
}

func (sw *Swarm) copy(r *Round, shared *sharing) *Swarm {
	c := *sw
	c.round, c.agents, c.summaries = r, nil, nil
	c.kept, c.view = slices.Clone(sw.kept), slices.Clone(sw.view)
	for _, a := range sw.agents {
		agent := *a
		agent.swarm, agent.kv = &c, shared.stretch(a.kv)
		c.agents = append(c.agents, &agent)
	}
	for _, sum := range sw.summaries {
		text := *sum
		c.summaries = append(c.summaries, &text)
	}
	return &c
}

// sharing forks blocks and remembers the first error.
type sharing struct {
	backend lm.Backend
	err     error
}

func (f *sharing) stretch(st stretch) stretch {
	if st.n == 0 || f.err != nil {
		return stretch{}
	}
	block, err := f.backend.Fork(st.block, st.n)
	if err != nil {
		f.err = err
		return stretch{}
	}
	return stretch{block, st.pos, st.n}
}
