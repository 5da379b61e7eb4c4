package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"skep/engine/focus"
	"skep/engine/judge"
	"skep/engine/novelty"
	"skep/engine/store"
	"skep/problems"
)

// roundExtra is what the engine keeps of a round beside the store's own columns.
type roundExtra struct {
	NewTokens int
	Tuned     bool
	Edits     []editRow
	Programs  []int64 // of the committed round
}

// editRow is an Edit as it is kept.
type editRow struct {
	Text             string
	Target           int64
	Line             int
	Old, New, Reason string
	Code             string
	Replicate        int
	Program          int64
}

// swarmExtra is what the engine keeps of a swarm beside the store's own columns.
type swarmExtra struct {
	Margins []float32 // Eq. 5, per agent
	Replies []replyRow
}

// replyRow is what became of a summary's text.
type replyRow struct {
	Description, Code string
	Tries             int
}

// newMeta describes a new run.
func (s *Search) newMeta() store.Meta {
	s.meta = store.Meta{Problem: s.opts.Problem, Model: s.opts.Model, ModelHash: s.model.Hash, Backend: s.opts.Backend, Profile: s.opts.Profile,
		Seed: int64(s.opts.Seed), Options: s.opts.json(), Assumptions: assumptions.json(), AssumptionsHash: assumptions.Hash(), Branch: store.Main}
	return s.meta
}

// storedOptions are the options of a run, with the ones that are not stored taken from asked.
func storedOptions(st *store.Store, asked Options) (Options, error) {
	meta, err := st.Meta(context.Background())
	if err != nil {
		return Options{}, err
	}
	if hash := assumptions.Hash(); meta.AssumptionsHash != hash {
		return Options{}, fmt.Errorf("engine: the run in %s was made under other assumptions (%.12s…, this skep has %.12s…): read it with skep report, or go on with the skep that made it",
			st.Dir(), meta.AssumptionsHash, hash)
	}
	var kept Options
	if err := json.Unmarshal(meta.Options, &kept); err != nil {
		return Options{}, fmt.Errorf("engine: the options of the run in %s do not read: %w", st.Dir(), err)
	}
	kept.Python, kept.Threads, kept.Evaluators, kept.Policies = asked.Python, asked.Threads, asked.Evaluators, asked.Policies
	return kept, nil
}

// save keeps the round at its present stage.
func (r *Round) save(ctx context.Context) error {
	r.search.mu.Lock()
	row := r.row()
	r.search.mu.Unlock()
	if err := r.search.store.SaveRound(context.WithoutCancel(ctx), row); err != nil {
		return fmt.Errorf("engine: round %d could not be stored: %w", r.n, err)
	}
	return nil
}

func (r *Round) row() store.Round {
	extra := roundExtra{NewTokens: r.newTokens, Tuned: r.tuned}
	for _, e := range r.tunes {
		extra.Edits = append(extra.Edits, editRow{e.Text, e.Target.ID, e.Line, e.Old, e.New, e.Problem, e.Code, e.replicate, e.Program.id()})
	}
	for _, p := range r.programs() {
		extra.Programs = append(extra.Programs, p.ID)
	}
	row := store.Round{Branch: r.branch, N: r.n, Stage: store.Stage(r.stage().String()), Forked: r.search.from(r.branch), Started: r.started, Extra: document(extra)}
	if len(r.archive) > 0 {
		row.Seen = r.archive[len(r.archive)-1].ID
	}
	for _, sw := range r.swarms {
		row.Swarms = append(row.Swarms, sw.row())
	}
	for _, t := range r.timings {
		row.Timings = append(row.Timings, store.Timing{Stage: t.Stage, Swarm: t.Swarm, Started: t.Start, Took: t.Took})
	}
	return row
}

func (s *Search) from(branch string) string {
	if b := s.branches[branch]; b != nil {
		return b.from
	}
	return ""
}

func (p *Program) id() int64 {
	if p == nil {
		return 0
	}
	return p.ID
}

func document(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("engine: a row does not encode: " + err.Error()) // numbers and strings only
	}
	return b
}

func (sw *Swarm) row() store.Swarm {
	row := store.Swarm{Kind: string(sw.kind), Focus: sw.focus, Temperature: sw.temperature, Stage: store.Stage(sw.stage.String()), Stale: sw.stale, Kept: sw.kept}
	for _, p := range sw.parents {
		row.Parents = append(row.Parents, p.ID)
	}
	if sw.view != nil {
		row.View = document(sw.view)
	}
	var extra swarmExtra
	for _, a := range sw.agents {
		extra.Margins = append(extra.Margins, a.margin)
		row.Agents = append(row.Agents, store.Agent{Phrasing: a.prompt.Phrasing, Way: a.prompt.Way, Parent: a.parent.id(), Prompt: a.words(),
			Tokens: len(a.phraseTokens()) + len(a.thinkTokens()), Kept: slices.Contains(sw.kept, a.index), Dropped: a.dropped})
	}
	for _, sum := range sw.summaries {
		extra.Replies = append(extra.Replies, replyRow{sum.Description, sum.Code, sum.Tries})
		row.Summaries = append(row.Summaries, store.Summary{Program: sum.Program.id(), Text: sum.Text, Reason: sum.Reason, Tokens: sum.Tokens, Took: sum.Took,
			Drafted: sum.Drafted, Accepted: sum.Accepted, Temperature: sum.Temperature})
	}
	row.Extra = document(extra)
	return row
}

// load reads a run back: its committed rounds, and the open one at its stage.
func (s *Search) load(ctx context.Context) error {
	rows, err := s.store.Programs(ctx)
	if err != nil {
		return err
	}
	rounds, err := s.store.Rounds(ctx)
	if err != nil {
		return err
	}
	if len(rows) == 0 || rows[0].Kind != string(Initial) {
		return fmt.Errorf("engine: the run in %s holds no initial program; it was stopped while it was made: remove the folder and start again", s.dir)
	}
	all, firsts := map[int64]*Program{}, map[string]*Program{} // by id, and the first of each hash
	for _, row := range rows {
		p := stored(row, s.problem)
		if p.Kind != Initial {
			if err := s.accept(p); err != nil {
				return err
			}
		}
		if err := s.recallReturned(ctx, p, row); err != nil {
			return err
		}
		all[p.ID] = p
		if len(p.Parents) > 0 {
			p.parent = all[p.Parents[0]]
		}
		if first := firsts[p.Hash]; p.Outcome == problems.Duplicate && first != nil {
			p.DuplicateOf = first.ID
		} else if first == nil {
			firsts[p.Hash] = p
		}
	}
	s.worked = rows[0].Evaluations[0].Wall
	s.branches = map[string]*branch{store.Main: {name: store.Main, archive: archive{all[rows[0].ID]}}}
	for _, row := range rounds {
		if err := s.restore(ctx, row, all); err != nil {
			return fmt.Errorf("engine: round %d of branch %s in %s: %w", row.N, row.Branch, s.dir, err)
		}
	}
	return nil
}

// recallReturned decodes what a stored program returned, for its picture.
func (s *Search) recallReturned(ctx context.Context, p *Program, row store.Program) error {
	if len(row.Evaluations) == 0 {
		return fmt.Errorf("engine: program %d in %s has no evaluation", row.ID, s.dir)
	}
	frame, err := s.store.Frame(ctx, row.Evaluations[0].ID)
	if err != nil || frame == nil {
		return err
	}
	p.returned, err = judge.DecodeFrame(frame)
	return err
}

// restore rebuilds one stored round, rounds of a branch in order.
func (s *Search) restore(ctx context.Context, row store.Round, all map[int64]*Program) error {
	b := s.branches[row.Branch]
	if b == nil {
		from := s.branches[row.Forked]
		if from == nil {
			return fmt.Errorf("it was forked from the unknown branch %q", row.Forked)
		}
		source := from.round(row.N)
		if source == nil {
			return fmt.Errorf("branch %q, from which it was forked, has no such round", row.Forked)
		}
		b = &branch{name: row.Branch, from: row.Forked, archive: from.before(row.N, 0), history: slices.Clone(source.history)}
		s.branches[row.Branch] = b
	}
	r, err := s.rebuild(row, b, all)
	if err != nil {
		return err
	}
	if err := r.loadHidden(ctx); err != nil {
		return err
	}
	for _, t := range r.timings {
		if !t.Start.Before(r.started) { // what a fork took over was counted where it was done
			s.worked += t.Took
		}
	}
	for _, p := range r.programs() {
		if p.added == 0 {
			p.added = s.worked.Seconds()
		}
	}
	if row.Stage == store.Committed {
		r.committed = true
		b.archive, b.history, b.rounds = b.archive.with(r.programs()...), r.refinements(), append(b.rounds, r)
	}
	b.open = r
	return nil
}

// round is the branch's round n, committed or open; nil: there is none.
func (b *branch) round(n int) *Round {
	for _, r := range b.rounds {
		if r.n == n {
			return r
		}
	}
	if b.open != nil && b.open.n == n {
		return b.open
	}
	return nil
}

// rebuild makes the Round of a row; what a round has only while it is worked on (keys and values) is missing.
func (s *Search) rebuild(row store.Round, b *branch, all map[int64]*Program) (*Round, error) {
	var extra roundExtra
	if err := json.Unmarshal(row.Extra, &extra); err != nil {
		return nil, err
	}
	r := &Round{search: s, branch: row.Branch, n: row.N, archive: b.before(row.N, s.opts.Lag), history: slices.Clone(b.history), started: row.Started,
		tuned: extra.Tuned, newTokens: extra.NewTokens}
	for i, swRow := range row.Swarms {
		sw, err := r.rebuildSwarm(i, swRow, all)
		if err != nil {
			return nil, err
		}
		r.swarms = append(r.swarms, sw)
	}
	for _, e := range extra.Edits {
		if p := all[e.Program]; p != nil {
			p.Replicate = e.Replicate
		}
		r.tunes = append(r.tunes, &Edit{Text: e.Text, Target: all[e.Target], Line: e.Line, Old: e.Old, New: e.New, Problem: e.Reason, Code: e.Code,
			replicate: e.Replicate, Program: all[e.Program]})
	}
	for _, t := range row.Timings {
		r.timings = append(r.timings, Timing{t.Stage, t.Swarm, t.Started, t.Took})
	}
	if row.Stage != store.Committed {
		r.adopt(all)
	}
	return r, nil
}

func (r *Round) rebuildSwarm(index int, row store.Swarm, all map[int64]*Program) (*Swarm, error) {
	sw := &Swarm{round: r, index: index, kind: Kind(row.Kind), focus: row.Focus, temperature: row.Temperature, stale: row.Stale, kept: row.Kept}
	stage := slices.Index(stageNames[:], string(row.Stage))
	if stage < 0 {
		return nil, fmt.Errorf("swarm %d has the unknown stage %q", index, row.Stage)
	}
	sw.stage = Stage(stage)
	for _, id := range row.Parents {
		sw.parents = append(sw.parents, all[id])
	}
	if len(sw.parents) == 0 || slices.Contains(sw.parents, nil) {
		return nil, fmt.Errorf("swarm %d has the parents %v, of which some are not in the store", index, row.Parents)
	}
	var extra swarmExtra
	if err := errors.Join(json.Unmarshal(row.Extra, &extra), unmarshal(row.View, &sw.view)); err != nil {
		return nil, err
	}
	for j, a := range row.Agents {
		agent := &Agent{swarm: sw, index: j, parent: all[a.Parent], prompt: focus.Prompt{Phrasing: a.Phrasing, Way: a.Way}, dropped: a.Dropped}
		if j < len(extra.Margins) {
			agent.margin = extra.Margins[j]
		}
		sw.agents = append(sw.agents, agent)
	}
	if len(extra.Replies) != len(row.Summaries) {
		return nil, fmt.Errorf("swarm %d has %d texts and %d replies", index, len(row.Summaries), len(extra.Replies))
	}
	for k, sum := range row.Summaries {
		reply := extra.Replies[k]
		if p := all[sum.Program]; p != nil {
			p.Replicate = k
		}
		sw.summaries = append(sw.summaries, &Summary{Text: sum.Text, Description: reply.Description, Code: reply.Code, Tries: reply.Tries, Reason: sum.Reason,
			Tokens: sum.Tokens, Drafted: sum.Drafted, Accepted: sum.Accepted, Took: sum.Took, Temperature: sum.Temperature, Program: all[sum.Program], parent: sw.parents[0]})
	}
	return sw, nil
}

func unmarshal(doc json.RawMessage, v any) error {
	if doc == nil {
		return nil
	}
	return json.Unmarshal(doc, v)
}

// adopt gives texts and edits of an open round the programs that were judged and stored before the process died. Only
// programs of its own branch: a fork with the same texts has verdicts of its own.
func (r *Round) adopt(all map[int64]*Program) {
	taken := map[int64]bool{}
	here := map[int64]bool{} // what a duplicate may be one of
	for _, p := range r.known() {
		taken[p.ID], here[p.ID] = true, true
	}
	ids := slices.Sorted(maps.Keys(all))
	written := slices.DeleteFunc(slices.Clone(r.swarms), func(sw *Swarm) bool { return sw.stage < Written })
	for _, c := range r.candidates(written, r.tunes) {
		fits := func(id int64) bool {
			p := all[id]
			return !taken[id] && p.branch == r.branch && p.Round == r.n && p.Swarm == c.program.Swarm && p.Kind == c.program.Kind &&
				p.Hash == c.program.Hash && (p.Outcome != problems.Duplicate || here[p.DuplicateOf])
		}
		if i := slices.IndexFunc(ids, fits); i >= 0 {
			p := all[ids[i]]
			taken[p.ID], here[p.ID], p.Replicate = true, true, c.program.Replicate
			c.done(p)
		}
	}
}

// saveHidden keeps the agents' trajectories, their means (Eq. 4) and margins (Eq. 5), NaN for an agent that has none yet.
func (r *Round) saveHidden(ctx context.Context) error {
	width, m, agents := r.search.model.Config.Width, r.search.opts.Steps, agentsOf(r.swarms)
	none := slices.Repeat([]float32{float32(math.NaN())}, width)
	var means, margins, steps []float32
	reasoned := false
	for _, a := range agents {
		margins = append(margins, a.margin)
		if a.trajectory == nil {
			means, steps = append(means, none...), append(steps, slices.Repeat(none, m)...)
			continue
		}
		reasoned, means = true, append(means, a.mean...)
		for _, h := range a.trajectory {
			steps = append(steps, h...)
		}
	}
	if !reasoned {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return errors.Join(
		r.search.store.SaveHidden(ctx, r.branch, r.n, store.Means, []int{len(agents), width}, means),
		r.search.store.SaveHidden(ctx, r.branch, r.n, store.Margins, []int{len(agents)}, margins),
		r.search.store.SaveHidden(ctx, r.branch, r.n, store.Trajectories, []int{len(agents), m, width}, steps),
	)
}

// loadHidden reads back what the swarms that have reasoned need: trajectories as they are kept (float16), means as they
// were.
func (r *Round) loadHidden(ctx context.Context) error {
	agents, width, m := agentsOf(r.swarms), r.search.model.Config.Width, r.search.opts.Steps
	if !slices.ContainsFunc(r.swarms, func(sw *Swarm) bool { return sw.stage >= Reasoned }) {
		return nil
	}
	shape, steps, err := r.search.store.Hidden(ctx, r.branch, r.n, store.Trajectories)
	if err != nil {
		return err
	}
	meansShape, means, err := r.search.store.Hidden(ctx, r.branch, r.n, store.Means)
	if err != nil {
		return err
	}
	if !slices.Equal(shape, []int{len(agents), m, width}) || !slices.Equal(meansShape, []int{len(agents), width}) {
		return fmt.Errorf("its hidden states have shapes %v and %v; want those of %d agents, %d steps, width %d", shape, meansShape, len(agents), m, width)
	}
	for i, a := range agents {
		if a.swarm.stage < Reasoned {
			continue
		}
		for t := range m {
			at := (i*m + t) * width
			a.trajectory = append(a.trajectory, steps[at:at+width])
		}
		a.mean = means[i*width : (i+1)*width]
	}
	return nil
}

// means of a swarm's agents, nil before Reason.
func (sw *Swarm) means() [][]float32 {
	means := make([][]float32, len(sw.agents))
	for i, a := range sw.agents {
		if a.mean == nil {
			return nil
		}
		means[i] = a.mean
	}
	return means
}

// Distances is the matrix of cosine distances between the centred mean hidden states of the swarm's agents, [agent][agent];
// ErrStage before Reason.
func (sw *Swarm) Distances() ([][]float64, error) {
	sw.round.search.mu.Lock()
	means, stage := sw.means(), sw.stage
	sw.round.search.mu.Unlock()
	if means == nil {
		return nil, fmt.Errorf("engine: %w: swarm %d is %s; Distances needs Reason first", ErrStage, sw.index, stage)
	}
	return novelty.Distances(means)
}
