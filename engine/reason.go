package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skep/engine/lm"
	"skep/engine/novelty"
)

// readPrompts brings the prompts of the swarms' agents into the cache: parents, then the shared phrasings, then the ways
// of thinking, each level in one pass over all swarms that have not read theirs.
func (r *Round) readPrompts(ctx context.Context, swarms []*Swarm) error {
	start := time.Now()
	tell := func(done int) {
		report(ctx, Event{Round: r.n, Stage: "read", Swarm: -1, Done: done, Total: 3, Unit: "levels", Took: time.Since(start)})
	}
	unread := slices.DeleteFunc(slices.Clone(swarms), func(sw *Swarm) bool { return sw.cached >= readIn })
	if len(unread) > 0 {
		tell(0)
	}
	// Parents first, also of swarms that have read: a round of another branch may have pushed a program out.
	if err := r.search.readPrograms(ctx, parentsOf(swarms)); err != nil {
		return err
	}
	if len(unread) == 0 {
		return nil
	}
	agents := agentsOf(unread)
	tell(1)
	if err := r.readPhrases(ctx, agents); err != nil {
		return err
	}
	tell(2)
	if err := r.readWays(ctx, agents); err != nil {
		return err
	}
	tell(3)
	for _, sw := range unread {
		sw.cached = readIn
	}
	r.spent("read", -1, start)
	return nil
}

func agentsOf(swarms []*Swarm) (all []*Agent) {
	for _, sw := range swarms {
		all = append(all, sw.agents...)
	}
	return all
}

func parentsOf(swarms []*Swarm) (all []*Program) {
	for _, sw := range swarms {
		all = append(all, sw.parents...)
	}
	return all
}

func (a *Agent) phraseKey() phraseKey {
	k := phraseKey{focus: a.swarm.focus, phrasing: a.prompt.Phrasing}
	if a.parent != nil {
		k.parent = a.parent.ID
	}
	return k
}

// before lists what the agent reads before its phrasing: the problem and its parent.
func (a *Agent) before() []stretch {
	s := a.swarm.round.search
	if a.parent == nil {
		return []stretch{s.problemKV}
	}
	return []stretch{s.problemKV, s.programKV[a.parent.ID]}
}

func (r *Round) readPhrases(ctx context.Context, agents []*Agent) error {
	var keys []phraseKey
	var pieces []piece
	for _, a := range agents {
		k := a.phraseKey()
		if _, cached := r.phraseKV[k]; cached || slices.Contains(keys, k) {
			continue
		}
		before := a.before()
		keys = append(keys, k)
		pieces = append(pieces, piece{tokens: a.phraseTokens(), pos: before[len(before)-1].end(), view: view(before...)})
	}
	got, _, err := r.search.read(ctx, pieces)
	if err != nil {
		return err
	}
	if r.phraseKV == nil {
		r.phraseKV = map[phraseKey]stretch{}
	}
	for i, k := range keys {
		r.phraseKV[k] = got[i]
	}
	return nil
}

func (r *Round) readWays(ctx context.Context, agents []*Agent) error {
	pieces := make([]piece, len(agents))
	for i, a := range agents {
		phrase := r.phraseKV[a.phraseKey()]
		pieces[i] = piece{tokens: a.thinkTokens(), pos: phrase.end(), view: view(append(a.before(), phrase)...), hidden: true}
	}
	got, out, err := r.search.read(ctx, pieces)
	if err != nil {
		return err
	}
	for i, a := range agents {
		a.kv, a.first = got[i], out[i].Hidden[0]
	}
	return nil
}

// think takes the latent steps of agents whose prompts are in the cache (Eq. 2) and returns their trajectories.
func (r *Round) think(ctx context.Context, swarms []*Swarm) ([][][]float32, error) {
	start, agents, steps := time.Now(), agentsOf(swarms), r.search.opts.Steps
	told := func(step int) {
		for _, sw := range swarms {
			report(ctx, Event{Round: r.n, Stage: "reason", Swarm: sw.index, Done: step, Total: steps, Unit: "steps", Took: time.Since(start)})
		}
	}
	pending := make([]lm.Thought, len(agents))
	for i, a := range agents {
		seen := view(append(a.before(), r.phraseKV[a.phraseKey()])...)
		pending[i] = lm.Thought{Hidden: a.first, Pos: a.kv.end(), View: seen, Into: a.kv.block, At: a.kv.n}
	}
	trajectories, err := r.search.backend.Latent(ctx, pending, steps, told)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		a.kv.n += steps
	}
	for _, sw := range swarms {
		sw.cached = thoughts
	}
	return trajectories, nil
}

func (r *Round) reason(ctx context.Context, swarms []*Swarm) error {
	if err := r.ready(Reasoned, swarms); err != nil || len(swarms) == 0 {
		return err
	}
	for _, sw := range swarms {
		if sw.cached == thoughts {
			sw.release()
		}
	}
	if err := r.readPrompts(ctx, swarms); err != nil {
		return err
	}
	start := time.Now()
	trajectories, err := r.think(ctx, swarms)
	if err != nil {
		return err
	}
	r.search.update(func() {
		for i, a := range agentsOf(swarms) {
			a.trajectory, a.mean, a.margin, a.dropped = trajectories[i], novelty.Mean(trajectories[i]), 0, false
		}
		for _, sw := range swarms {
			sw.kept, sw.view = nil, nil
		}
	})
	r.spent("reason", -1, start)
	if err := r.saveHidden(ctx); err != nil {
		return err
	}
	return r.reached(ctx, Reasoned, swarms)
}

func (r *Round) filter(ctx context.Context, swarms []*Swarm) error {
	if err := r.ready(Filtered, swarms); err != nil || len(swarms) == 0 {
		return err
	}
	start := time.Now()
	for i, sw := range swarms {
		if err := sw.choose(); err != nil {
			return fmt.Errorf("engine: swarm %d of round %d: %w", sw.index, r.n, err)
		}
		report(ctx, Event{Round: r.n, Stage: "filter", Swarm: sw.index, Done: i + 1, Total: len(swarms), Unit: "swarms", Took: time.Since(start)})
	}
	r.spent("filter", -1, start)
	if err := r.saveHidden(ctx); err != nil {
		return err
	}
	return r.reached(ctx, Filtered, swarms)
}

// choose keeps the most novel agents, by Eq. 5 or by the Filter policy.
func (sw *Swarm) choose() error {
	opts := sw.round.search.opts
	means := make([][]float32, len(sw.agents))
	for i, a := range sw.agents {
		means[i] = slices.Clone(a.mean) // a policy may do with it what it likes
	}
	sel, err := novelty.Filter(means, opts.Keep)
	if err != nil {
		return err
	}
	if opts.Filter != nil {
		sel = novelty.Selection{Kept: opts.Filter(means, opts.Keep)}
		sel.Margins = make([]float32, len(sel.Kept))
		if index := sel.Index(); len(index) == 0 || index[0] < 0 || index[len(index)-1] >= len(means) || len(slices.Compact(index)) != len(sel.Kept) {
			return fmt.Errorf("the Filter policy kept %v; want distinct indices from 0 to %d, at least one", sel.Kept, len(means)-1)
		}
	}
	sw.round.search.update(func() {
		for _, a := range sw.agents {
			a.margin, a.dropped = 0, false
		}
		for i, j := range sel.Kept {
			sw.agents[j].margin = sel.Margins[i]
		}
		sw.kept, sw.view = sel.Index(), nil
	})
	return nil
}
