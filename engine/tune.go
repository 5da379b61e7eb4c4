package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/engine/focus"
	"skep/engine/lm"
	"skep/engine/python"
)

// tunerSwarm stands for the tuning agent in the keys of the random generator.
const tunerSwarm = 0xffff

// Edit is one proposal of the tuning agent.
type Edit struct {
	Text    string // what it answered
	Target  *Program
	Line    int    // of the literal, from 1; 0: none was named
	Old     string // literal
	New     string
	Code    string   // the edited program; "" when the answer is of no use, Problem says why
	Problem string   // "answer names no number", "2: 0.30 is the number that stands there", …
	Program *Program // nil: not judged

	replicate int
}

// tune lets one agent read the best program of the archive that the round sees, its evaluation and its numbers, and
// propose one-number edits (§3 "Tune parameters").
func (r *Round) tune(ctx context.Context) error {
	if err := r.ready(Reasoned, nil); err != nil || r.tuned {
		return err
	}
	s, start := r.search, time.Now()
	best := r.archive.best()
	literals := python.Literals(best.Code)
	var edits []*Edit
	if len(literals) > 0 && s.opts.Tunes > 0 {
		replies, err := r.askTuner(ctx, best, literals)
		if err != nil {
			return err
		}
		edits = propose(best, literals, replies, s.opts.Tries)
	}
	s.update(func() { r.tunes, r.tuned = edits, true })
	report(ctx, Event{Round: r.n, Stage: "tune", Swarm: -1, Done: len(edits), Total: s.opts.Tunes, Unit: "edits", Took: time.Since(start)})
	r.spent("tune", -1, start)
	return r.save(ctx)
}

// askTuner samples the tuning agent's answers in one batch that shares its prompt, Tries for each edit. In the form "line"
// an answer begins with the number it is about.
func (r *Round) askTuner(ctx context.Context, best *Program, literals []python.Literal) ([]reply, error) {
	s := r.search
	if err := s.readPrograms(ctx, []*Program{best}); err != nil {
		return nil, err
	}
	numbers := make([]focus.Number, len(literals))
	for i, l := range literals {
		numbers[i] = focus.Number{Text: l.Text, Line: l.Code}
	}
	task := s.model.Tokenizer.Encode(focus.Tune(best.ID, numbers, r.tried(best)))
	before := view(s.problemKV, s.programKV[best.ID])
	got, _, err := s.read(ctx, []piece{{tokens: task, pos: s.programKV[best.ID].end(), view: before}})
	if err != nil {
		return nil, err
	}
	before = append(before, got[0].at(got[0].pos))
	leads, tries := r.leads(literals), s.opts.Tries
	begins := make([]piece, len(leads))
	for i, lead := range leads {
		begins[i] = piece{tokens: slices.Concat(s.prompts.answer, s.model.Tokenizer.Encode(lead)), pos: got[0].end(), view: before}
	}
	prompts, blocks, err := s.fan(ctx, begins, tries)
	defer func() { s.backend.Free(append(blocks, got[0].block)...) }()
	if err != nil {
		return nil, err
	}
	streams := make([]lm.Stream, len(prompts))
	for i, p := range prompts {
		streams[i] = lm.Stream{
			Prompt:   p,
			Sampling: lm.Sampling{Temperature: s.opts.TuneTemp, TopP: s.opts.TopP, TopK: s.opts.TopK, MaxNew: s.opts.TuneTokens, Stop: answered(leads[i/tries])},
			Key:      lm.Key{Run: s.opts.Seed, Swarm: uint64(r.n)<<16 | tunerSwarm, Replicate: uint64(i)},
		}
	}
	replies, err := lm.Decode(ctx, s.backend, s.model.Tokenizer, streams, r.told(ctx, leads, tries))
	if err != nil {
		return nil, err
	}
	answers := make([]reply, len(replies))
	for i, g := range replies {
		answers[i] = reply{leads[i/tries], g.Text}
	}
	return answers, nil
}

// told reports the answers as they come: of each edit the first try.
func (r *Round) told(ctx context.Context, leads []string, tries int) func(i int, text string) {
	start, said := time.Now(), slices.Clone(leads)
	return func(i int, text string) {
		if k := i / tries; i%tries == 0 {
			said[k] += text
			report(ctx, Event{Round: r.n, Stage: "tune", Swarm: -1, Total: len(leads), Unit: "edits", Text: said[k], Took: time.Since(start)})
		}
	}
}

// leads are the beginnings of the answers, one for each edit.
func (r *Round) leads(literals []python.Literal) []string {
	var leads []string
	places := r.random(tunerSwarm, "numbers").Perm(len(literals))
	for i := range r.search.opts.Tunes {
		lead := ""
		if r.search.opts.Form == "line" {
			place := places[i%len(literals)]
			lead = fmt.Sprintf("%d: %s ->", place+1, literals[place].Text)
		}
		leads = append(leads, lead)
	}
	return leads
}

// tried lists the last edits of a program with what came of them, newest last.
func (r *Round) tried(best *Program) []string {
	const most = 12
	var lines []string
	for _, p := range r.archive {
		if p.Kind != Tuner || len(p.Parents) == 0 || p.Parents[0] != best.ID {
			continue
		}
		came := fmt.Sprintf("value %.6f", p.Value)
		if !p.Ranked() {
			came = string(p.Outcome)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", p.Description, came))
	}
	return lines[max(0, len(lines)-most):]
}

// number is a Python number; an answer names a place in the list and the new value of the number there.
const number = `([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)`

var (
	answer   = regexp.MustCompile(`(\d+)\s*:(?:[^\n]*->)?\s*` + number)
	newValue = regexp.MustCompile(`^[^\n]*?` + number)
)

// reply is an answer of the tuning agent: what it began with (the place and the old number, or nothing) and what it said.
type reply struct{ lead, text string }

// read finds the place of a number in the list, from 1, and its new value; end is where the value ends in the text.
func (a reply) read() (place, to string, end int, ok bool) {
	if a.lead != "" {
		m := newValue.FindStringSubmatchIndex(a.text)
		if m == nil {
			return "", "", 0, false
		}
		place, _, _ = strings.Cut(a.lead, ":")
		return place, a.text[m[2]:m[3]], m[3], true
	}
	m := answer.FindStringSubmatchIndex(a.text)
	if m == nil {
		return "", "", 0, false
	}
	return a.text[m[2]:m[3]], a.text[m[4]:m[5]], m[5], true
}

// answered ends an answer behind its value, once something follows that cannot belong to it.
func answered(lead string) func(text string) bool {
	return func(text string) bool {
		_, _, end, ok := reply{lead, text}.read()
		return ok && end < len(text)
	}
}

// propose reads the answers, tries for each edit: the first of them that is of use counts. Equal proposals count once.
func propose(best *Program, literals []python.Literal, answers []reply, tries int) []*Edit {
	var edits []*Edit
	seen := map[string]bool{}
	for i := 0; i < len(answers); i += tries {
		var chosen *Edit
		for _, a := range answers[i:min(i+tries, len(answers))] {
			e := readEdit(a, best, literals)
			if e.Code != "" && seen[e.Code] {
				e.Code, e.Problem = "", "the same edit was proposed before"
			}
			if chosen == nil || e.Code != "" {
				chosen = e
			}
			if e.Code != "" {
				break
			}
		}
		seen[chosen.Code] = true
		chosen.replicate = len(edits)
		edits = append(edits, chosen)
	}
	return edits
}

func readEdit(a reply, best *Program, literals []python.Literal) *Edit {
	e := &Edit{Text: a.lead + a.text, Target: best}
	at, to, _, ok := a.read()
	if !ok {
		e.Problem = "the answer names no place and value"
		return e
	}
	place, err := strconv.Atoi(at)
	if err != nil || place < 1 || place > len(literals) {
		e.Problem = fmt.Sprintf("there is no number %s among the %d", at, len(literals))
		return e
	}
	lit := literals[place-1]
	e.Line, e.Old, e.New = lit.Line, lit.Text, to
	if python.IsInteger(lit.Text) && !python.IsInteger(to) {
		e.Problem = fmt.Sprintf("%s is an integer and %s is not", lit.Text, to)
		return e
	}
	code, err := python.Replace(best.Code, lit, to)
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	e.Code = code
	return e
}

// describe is the edit as a program's description.
func (e *Edit) describe() string { return fmt.Sprintf("line %d: %s becomes %s", e.Line, e.Old, e.New) }
