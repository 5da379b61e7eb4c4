package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/engine/lm"
	"skep/engine/python"
)

// transfer builds the views of the summarizers (Eq. 6). Nothing is copied: a view is a list of blocks with the positions
// at which they are seen.
func (r *Round) transfer(ctx context.Context, swarms []*Swarm) error {
	if err := r.ready(Written, swarms); err != nil || len(swarms) == 0 {
		return err
	}
	if err := r.recall(ctx, swarms); err != nil {
		return err
	}
	start := time.Now()
	for i, sw := range swarms {
		placed := sw.place()
		if err := sw.fits(placed); err != nil {
			return err
		}
		r.search.update(func() { sw.view = placed })
		report(ctx, Event{Round: r.n, Stage: "transfer", Swarm: sw.index, Done: i + 1, Total: len(swarms), Unit: "views", Took: time.Since(start)})
	}
	r.spent("transfer", -1, start)
	return nil
}

// recall makes sure that the keys and values of the swarms' agents are in the cache: a reopened or copied round reads the
// prompts and takes the latent steps again. What was decided from them (kept sets, texts) stays as it was.
func (r *Round) recall(ctx context.Context, swarms []*Swarm) error {
	if err := r.readPrompts(ctx, swarms); err != nil {
		return err
	}
	gone := slices.DeleteFunc(slices.Clone(swarms), func(sw *Swarm) bool { return sw.cached == thoughts })
	if len(gone) == 0 {
		return nil
	}
	_, err := r.think(ctx, gone)
	return err
}

// place puts problem, kept agents and parents one behind the other; a dropped agent leaves its place empty.
func (sw *Swarm) place() []Placed {
	s := sw.round.search
	view := []Placed{{What: "problem", Agent: -1, stretches: []stretch{s.problemKV}}}
	for _, i := range sw.kept {
		a := sw.agents[i]
		view = append(view, Placed{What: "agent", Agent: i, Dropped: a.dropped, stretches: []stretch{sw.round.phraseKV[a.phraseKey()], a.kv}})
	}
	for _, p := range sw.parents {
		view = append(view, Placed{What: "parent", Agent: -1, Program: p.ID, stretches: []stretch{s.programKV[p.ID]}})
	}
	at := 0
	for i := range view {
		p := &view[i]
		p.From, p.To = p.stretches[0].pos, at
		for _, st := range p.stretches {
			p.Tokens += st.n
		}
		at += p.Tokens
	}
	return view
}

// fits checks that a reply has room behind a view: more agents may be kept by hand or by a policy than Form reckoned with.
func (sw *Swarm) fits(placed []Placed) error {
	r := sw.round
	_, end := seen(placed)
	least, limit := min(leastNewTokens, r.newTokens), r.search.model.Config.Context
	if need := end + sw.longestInstruction() + len(r.search.prompts.answer); need+least > limit {
		return fmt.Errorf("engine: the summarizer of swarm %d (%s) would read %d tokens; with %d new ones at least that is over the model's context of %d: keep fewer than its %d agents",
			sw.index, sw.kind, need, least, limit, len(sw.kept))
	}
	return nil
}

// seen is the view as the backend takes it, and the position behind it.
func seen(placed []Placed) (lm.View, int) {
	var v lm.View
	end := 0
	for _, p := range placed {
		at := p.To
		for _, st := range p.stretches {
			if !p.Dropped {
				v = append(v, st.at(at))
			}
			at += st.n
		}
		end = p.To + p.Tokens
	}
	return v, end
}

// order is one reply that is wanted: a sample of a swarm, what it is to rewrite, and how the reply begins.
type order struct {
	swarm *Swarm
	line  *python.Line // in the form "line"; nil: a whole program
	lead  string       // beginning of the reply, which the summarizer continues
}

// orders lists the replies of the swarms, samples each. In the form "line" each is about another line of the first parent,
// drawn at random, and begins with the old line up to one of its numbers.
func (r *Round) orders(swarms []*Swarm, samples int) []order {
	var list []order
	for _, sw := range swarms {
		lines := python.Lines(sw.parents[0].Code)
		random := r.random(sw.index, "lines")
		places := random.Perm(len(lines))
		for k := range samples {
			o := order{swarm: sw}
			if r.search.opts.Form == "line" && len(lines) > 0 {
				o.line = &lines[places[k%len(places)]]
				literals := o.line.Literals
				o.lead = "```python\n" + strings.TrimRight(o.line.Text[:literals[random.IntN(len(literals))]], " ")
			}
			list = append(list, o)
		}
	}
	return list
}

// write lets the summarizers of swarms write samples texts each, all in one batch.
func (r *Round) write(ctx context.Context, swarms []*Swarm, samples int) error {
	if samples < 1 {
		return fmt.Errorf("engine: Write of %d samples; want at least 1", samples)
	}
	if err := r.ready(Written, swarms); err != nil || len(swarms) == 0 {
		return err
	}
	if err := r.transfer(ctx, swarms); err != nil {
		return err
	}
	start := time.Now()
	orders, tries := r.orders(swarms, samples), r.search.opts.Tries
	streams, free, err := r.instruct(ctx, orders, tries)
	if err != nil {
		return err
	}
	defer free()
	written, err := lm.Decode(ctx, r.search.backend, r.search.model.Tokenizer, streams, r.shower(ctx, orders, tries, start))
	if err != nil {
		return err // a text cut short is no text: the swarm stays where it was
	}
	r.search.update(func() {
		for _, sw := range swarms {
			sw.summaries = nil
		}
		for i, o := range orders {
			o.swarm.summaries = append(o.swarm.summaries, o.choose(written[i*tries:(i+1)*tries]))
		}
		r.unduplicate()
	})
	r.spent("write", -1, start)
	return r.reached(ctx, Written, swarms)
}

// shower reports the texts as they come: of each order the first try, and the characters of all of them.
func (r *Round) shower(ctx context.Context, orders []order, tries int, start time.Time) func(i int, text string) {
	first, done := make([]strings.Builder, len(orders)), make([]int, len(orders))
	return func(i int, text string) {
		k := i / tries
		if done[k] += len(text); i%tries == 0 {
			first[k].WriteString(text)
		}
		report(ctx, Event{Round: r.n, Stage: "write", Swarm: orders[k].swarm.index, Done: done[k], Unit: "characters",
			Text: orders[k].lead + first[k].String(), Took: time.Since(start)})
	}
}

// instruct reads the summarizers' instructions and prepares their streams, tries for each order; free gives the blocks back.
func (r *Round) instruct(ctx context.Context, orders []order, tries int) (streams []lm.Stream, free func(), err error) {
	s := r.search
	var pieces []piece
	for _, o := range orders {
		v, end := seen(o.swarm.view)
		pieces = append(pieces, piece{tokens: o.swarm.instruction(o.line), pos: end, view: v})
	}
	instructions, _, err := s.read(ctx, pieces)
	if err != nil {
		return nil, nil, err
	}
	var blocks []lm.BlockID
	var begins []piece
	for i, o := range orders {
		blocks = append(blocks, instructions[i].block)
		begins = append(begins, piece{tokens: slices.Concat(s.prompts.answer, s.model.Tokenizer.Encode(o.lead)), pos: instructions[i].end(),
			view: append(slices.Clone(pieces[i].view), instructions[i].at(instructions[i].pos))})
	}
	prompts, more, err := s.fan(ctx, begins, tries)
	free = func() { s.backend.Free(append(blocks, more...)...) }
	if err != nil {
		free()
		return nil, nil, err
	}
	replicate, drafters := map[*Swarm]uint64{}, map[*Swarm]*lm.Drafter{}
	for i, p := range prompts {
		o := orders[i/tries]
		if drafters[o.swarm] == nil {
			drafters[o.swarm] = o.swarm.drafter()
		}
		streams = append(streams, lm.Stream{
			Prompt:   p,
			Sampling: lm.Sampling{Temperature: o.swarm.temperature, TopP: s.opts.TopP, TopK: s.opts.TopK, MaxNew: o.longest(), Stop: o.ended},
			Key:      lm.Key{Run: s.opts.Seed, Swarm: uint64(r.n)<<16 | uint64(o.swarm.index), Replicate: replicate[o.swarm]},
			Draft:    drafters[o.swarm],
		})
		replicate[o.swarm]++
	}
	return streams, free, nil
}

// drafter drafts from what the summarizer may copy: the problem and the parents.
func (sw *Swarm) drafter() *lm.Drafter {
	s := sw.round.search
	sources := [][]lm.Token{s.prompts.problem}
	for _, p := range sw.parents {
		sources = append(sources, s.programTokens(p))
	}
	return lm.NewDrafter(sources...)
}

// longest is the most tokens of a reply; a new line may be twice as long as the old one.
func (o order) longest() int {
	r := o.swarm.round
	if o.line == nil {
		return r.newTokens
	}
	return min(r.newTokens, 16+2*len(r.search.model.Tokenizer.Encode(o.line.Text)))
}

// ended says whether a reply is whole: behind its first closed block of code, or at the end of its line.
func (o order) ended(text string) bool {
	if o.line != nil {
		return strings.Contains(text, "\n")
	}
	if !strings.HasSuffix(text, "```\n") && !strings.HasSuffix(text, "```") {
		return false
	}
	fences := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fences++
		}
	}
	return fences >= 2 && fences%2 == 0
}

// choose takes the first of several tries that gives a program other than the parents, else the first.
func (o order) choose(tries []lm.Generation) *Summary {
	var first *Summary
	for i, g := range tries {
		sum := o.summary(g)
		sum.Tries = i + 1
		if first == nil {
			first = sum
		}
		copied := slices.ContainsFunc(o.swarm.parents, func(p *Program) bool { return p.Hash == python.Hash(sum.Code) })
		if sum.Code != "" && !copied && (o.line == nil || python.Balanced(sum.Code)) {
			return sum
		}
	}
	return first
}

// summary takes a written text apart. A reply that holds only some functions is put into the swarm's first parent.
func (o order) summary(g lm.Generation) *Summary {
	parent := o.swarm.parents[0]
	sum := &Summary{Text: o.lead + g.Text, Reason: g.Reason, Tokens: len(g.Tokens), Steps: g.Steps, Drafted: g.Drafted, Accepted: g.Accepted, Took: g.Took,
		Temperature: o.swarm.temperature, parent: parent}
	if o.line != nil {
		line, _, _ := strings.Cut(strings.TrimPrefix(sum.Text, "```python\n"), "\n")
		sum.Code = python.Rewrite(parent.Code, *o.line, line)
		sum.Description = fmt.Sprintf("line %d: `%s` becomes `%s`", o.line.Number, strings.TrimSpace(o.line.Text), strings.TrimSpace(line))
		return sum
	}
	if sum.Description, sum.Code = python.Reply(sum.Text); sum.Code != "" {
		sum.Code = python.Complete(sum.Code, parent.Code, o.swarm.round.search.problem.Info().Entry)
	}
	return sum
}
