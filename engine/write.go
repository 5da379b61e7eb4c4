package engine

import (
	"context"
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
		r.search.update(func() { sw.view = placed })
		report(ctx, Event{Round: r.n, Stage: "transfer", Swarm: sw.index, Done: i + 1, Total: len(swarms), Unit: "views", Took: time.Since(start)})
	}
	r.spent("transfer", -1, start)
	return nil
}

// recall makes sure that the keys and values of the swarms' agents are in the cache: a reopened or copied round reads the
// prompts and takes the latent steps again. What was decided from them (kept sets, texts) stays as it was.
func (r *Round) recall(ctx context.Context, swarms []*Swarm) error {
	var gone []*Swarm
	var agents []*Agent
	for _, sw := range swarms {
		if !sw.read {
			gone = append(gone, sw)
			agents = append(agents, sw.agents...)
		}
	}
	if err := r.ensureRead(ctx, gone); err != nil {
		return err
	}
	if len(gone) > 0 {
		if _, err := r.think(ctx, agents, nil); err != nil {
			return err
		}
	}
	var parents []*Program // a round of another branch may have pushed them out
	for _, sw := range swarms {
		parents = append(parents, sw.parents...)
	}
	return r.search.readPrograms(ctx, parents)
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

// write lets the summarizers of swarms write samples texts each, all in one batch.
func (r *Round) write(ctx context.Context, swarms []*Swarm, samples int) error {
	if err := r.ready(Written, swarms); err != nil || len(swarms) == 0 {
		return err
	}
	if err := r.transfer(ctx, swarms); err != nil {
		return err
	}
	start := time.Now()
	streams, free, err := r.instruct(ctx, swarms, samples)
	if err != nil {
		return err
	}
	defer free()
	texts := make([]strings.Builder, len(streams))
	onText := func(i int, text string) {
		texts[i].WriteString(text)
		report(ctx, Event{Round: r.n, Stage: "write", Swarm: swarms[i/samples].index, Total: r.newTokens, Unit: "tokens", Text: texts[i].String(), Took: time.Since(start)})
	}
	written, err := lm.Decode(ctx, r.search.backend, r.search.model.Tokenizer, streams, onText)
	if err != nil {
		return err // a text cut short is no text: the swarm stays where it was
	}
	r.search.update(func() {
		for i, sw := range swarms {
			sw.summaries = nil
			for _, g := range written[i*samples : (i+1)*samples] {
				sw.summaries = append(sw.summaries, sw.summary(g))
			}
		}
	})
	r.spent("write", -1, start)
	return r.reached(ctx, Written, swarms)
}

// instruct reads the summarizers' instructions and prepares their streams; free gives the blocks back.
func (r *Round) instruct(ctx context.Context, swarms []*Swarm, samples int) (streams []lm.Stream, free func(), err error) {
	s := r.search
	var pieces []piece
	for _, sw := range swarms {
		v, end := seen(sw.view)
		pieces = append(pieces, piece{tokens: sw.instruction(), pos: end, view: v})
	}
	instructions, _, err := s.read(ctx, pieces)
	if err != nil {
		return nil, nil, err
	}
	var blocks []lm.BlockID
	for i, sw := range swarms {
		blocks = append(blocks, instructions[i].block)
		v := append(append(lm.View{}, pieces[i].view...), instructions[i].at(instructions[i].pos))
		drafter := sw.drafter()
		for k := range samples {
			block := s.backend.New()
			blocks = append(blocks, block)
			streams = append(streams, lm.Stream{
				Prompt:   lm.Span{Tokens: s.prompts.answer, Pos: instructions[i].end(), View: v, Into: block},
				Sampling: lm.Sampling{Temperature: sw.temperature, TopP: s.opts.TopP, TopK: s.opts.TopK, MaxNew: r.newTokens, Stop: closed},
				Key:      lm.Key{Run: s.opts.Seed, Swarm: uint64(r.n)<<16 | uint64(sw.index), Replicate: uint64(k)},
				Draft:    drafter,
			})
		}
	}
	return streams, func() { s.backend.Free(blocks...) }, nil
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

// closed ends a reply behind its first closed block of code.
func closed(text string) bool {
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

// summary takes a written text apart. In the form "function" the reply may hold only some functions: they are put into
// the swarm's first parent.
func (sw *Swarm) summary(g lm.Generation) *Summary {
	parent := sw.parents[0]
	words, code := python.Reply(g.Text)
	if code != "" {
		code = python.Complete(code, parent.Code, sw.round.search.problem.Info().Entry)
	}
	return &Summary{
		Text: g.Text, Description: words, Code: code, Reason: g.Reason, Tokens: len(g.Tokens), Steps: g.Steps, Drafted: g.Drafted,
		Accepted: g.Accepted, Took: g.Took, Temperature: sw.temperature, parent: parent,
	}
}
