package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"skep/engine/focus"
	"skep/engine/lm"
	"skep/engine/python"
)

// Kind is where a program came from: a kind of swarm, the tuning agent, or the problem itself.
type Kind string

// The kinds. The first four are swarms, in the order in which a round forms them.
const (
	Refine    Kind = "refine"
	Hybridize Kind = "hybridize"
	Explore   Kind = "explore"
	Fresh     Kind = "fresh"
	Tuner     Kind = "tuner"
	Initial   Kind = "initial"
)

// leastNewTokens is what the context limit may cut NewTokens down to.
const leastNewTokens = 256

// refinement is one use of an aspect on a program by a refinement swarm.
type refinement struct {
	program int64
	aspect  string
}

// form draws the swarms of round n from the archive a, as §3 "Form swarms" says. history holds the refinements of
// all earlier rounds of the branch.
func (s *Search) form(ctx context.Context, branch string, n int, a archive, history []refinement) (*Round, error) {
	start := time.Now()
	r := &Round{search: s, branch: branch, n: n, archive: a, history: slices.Clone(history), started: start}
	num := s.opts.Numbers
	for _, k := range []struct {
		kind  Kind
		count int
	}{{Refine, num.Refine}, {Hybridize, num.Hybridize}, {Explore, num.Explore}, {Fresh, num.Fresh}} {
		for i := range k.count {
			if err := r.add(k.kind, i); err != nil {
				return nil, err
			}
		}
	}
	if err := r.fit(); err != nil {
		return nil, err
	}
	r.spent("form", -1, start)
	report(ctx, Event{Round: n, Stage: "form", Swarm: -1, Done: len(r.swarms), Total: len(r.swarms), Unit: "swarms"})
	return r, nil
}

// add forms the i-th swarm of a kind.
func (r *Round) add(kind Kind, i int) error {
	index := len(r.swarms)
	random := r.random(index, "form")
	parents, err := r.draw(kind, i, random)
	if err != nil {
		return err
	}
	about := strings.TrimSpace(r.chooseFocus(kind, parents, random))
	if about == "" {
		return fmt.Errorf("engine: the Focus policy gave no words for a %s swarm; want what its agents should look at", kind)
	}
	sw := &Swarm{round: r, index: index, kind: kind, parents: parents, focus: about, temperature: r.search.opts.temperature(kind)}
	if err := sw.assign(random); err != nil {
		return err
	}
	r.swarms = append(r.swarms, sw)
	return nil
}

// random is the generator of one purpose: keyed, so that a change elsewhere does not shift its numbers.
func (r *Round) random(swarm int, purpose string) *rand.Rand {
	key := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s", r.search.opts.Seed, r.n, swarm, purpose))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])))
}

// draw chooses the parents of the i-th swarm of a kind.
func (r *Round) draw(kind Kind, i int, random *rand.Rand) ([]*Program, error) {
	num, ranked := r.search.opts.Numbers, r.archive.ranked()
	if len(ranked) == 0 {
		return nil, fmt.Errorf("engine: no program of the archive counts, so that no swarm can form; the initial program is %s: %s",
			r.archive[0].Outcome, r.archive[0].Message)
	}
	if r.search.opts.Draw != nil {
		drawn := r.search.opts.Draw(string(kind), ranked, r.n)
		stranger := func(p *Program) bool { return p == nil || r.archive.find(p.ID) != p }
		if len(drawn) == 0 || slices.ContainsFunc(drawn, stranger) {
			return nil, fmt.Errorf("engine: the Draw policy gave %d programs for a %s swarm; want at least one, and only those that it was given", len(drawn), kind)
		}
		return drawn, nil
	}
	switch kind {
	case Refine:
		return []*Program{r.refined(ranked, i%num.RefineBest)}, nil
	case Hybridize:
		return sample(r.archive.pool(num.HybridizePool), num.HybridizeParents, random), nil
	case Explore:
		return sample(ranked, num.ExploreParents, random), nil
	default:
		return []*Program{r.archive[0]}, nil
	}
}

// refinements is the branch's history with this round's refinement swarms, their present focus counted.
func (r *Round) refinements() []refinement {
	all := slices.Clone(r.history)
	for _, sw := range r.swarms {
		if sw.kind == Refine {
			all = append(all, refinement{sw.parents[0].ID, sw.focus})
		}
	}
	return all
}

// refined is the program at a place among the best that have refinement steps left.
func (r *Round) refined(ranked []*Program, place int) *Program {
	steps := map[int64]int{}
	for _, h := range r.refinements() {
		steps[h.program]++
	}
	open := slices.DeleteFunc(slices.Clone(ranked), func(p *Program) bool { return steps[p.ID] >= r.search.opts.MaxRefinements })
	if len(open) == 0 {
		open = ranked
	}
	return open[place%len(open)]
}

// sample draws n of the programs without putting back, in random order; all of them if there are fewer.
func sample(from []*Program, n int, random *rand.Rand) []*Program {
	order := random.Perm(len(from))
	drawn := make([]*Program, 0, n)
	for _, i := range order[:min(n, len(from))] {
		drawn = append(drawn, from[i])
	}
	return drawn
}

func (r *Round) chooseFocus(kind Kind, parents []*Program, random *rand.Rand) string {
	switch {
	case r.search.opts.Focus != nil:
		return r.search.opts.Focus(string(kind), parents, r.n)
	case kind == Refine:
		uses := map[string]int{}
		for _, h := range r.refinements() {
			if h.program == parents[0].ID {
				uses[h.aspect]++
			}
		}
		return focus.Least(focus.Aspects, uses, random)
	case kind == Hybridize:
		return focus.Any(focus.Aspects, random)
	default:
		return focus.Any(focus.Perspectives, random)
	}
}

// assign makes the swarm's agents: parents in turn (exploration adds one share without a parent), phrasing and way by
// the balanced design within each parent, or by the Assign policy.
func (sw *Swarm) assign(random *rand.Rand) error {
	slots := slices.Clone(sw.parents)
	if sw.kind == Explore {
		slots = append(slots, nil)
	}
	agents := sw.round.search.opts.Agents
	prompts := make([][]focus.Prompt, len(slots))
	for slot := range slots {
		var err error
		if prompts[slot], err = sw.promptsOf((agents-slot+len(slots)-1)/len(slots), random); err != nil {
			return err
		}
	}
	sw.agents = make([]*Agent, agents)
	for j := range sw.agents {
		slot := j % len(slots)
		sw.agents[j] = &Agent{swarm: sw, index: j, parent: slots[slot], prompt: prompts[slot][j/len(slots)]}
	}
	return nil
}

// promptsOf are the prompts of the n agents of one parent, by the balanced design or by the Assign policy.
func (sw *Swarm) promptsOf(n int, random *rand.Rand) ([]focus.Prompt, error) {
	policy := sw.round.search.opts.Assign
	if policy == nil {
		return focus.Assign(n, random), nil
	}
	pairs := policy(string(sw.kind), n, sw.round.n)
	if len(pairs) != n {
		return nil, fmt.Errorf("engine: the Assign policy gave %d prompts for the %d agents of one parent of a %s swarm", len(pairs), n, sw.kind)
	}
	prompts := make([]focus.Prompt, n)
	for i, p := range pairs {
		if p[0] < 0 || p[0] >= len(focus.Phrasings) || p[1] < 0 || p[1] >= len(focus.Ways) {
			return nil, fmt.Errorf("engine: the Assign policy gave phrasing %d and way %d; there are %d and %d", p[0], p[1], len(focus.Phrasings), len(focus.Ways))
		}
		prompts[i] = focus.Prompt{Phrasing: p[0], Way: p[1]}
	}
	return prompts, nil
}

// fit computes the longest view that a summarizer of the round can get and makes NewTokens fit behind it.
func (r *Round) fit() error {
	s := r.search
	limit := s.model.Config.Context
	r.newTokens = s.opts.NewTokens
	worst, at := 0, 0
	for i, sw := range r.swarms {
		sw.longest = sw.longestView()
		if sw.longest > worst {
			worst, at = sw.longest, i
		}
	}
	room := limit - worst
	if room >= r.newTokens {
		return nil
	}
	if room < leastNewTokens {
		return fmt.Errorf("engine: the summarizer of swarm %d (%s) would read %d tokens; with %d new ones at least that is over the model's context of %d: keep fewer agents (%d now), fewer parents, or take a model with a longer context",
			at, r.swarms[at].kind, worst, leastNewTokens, limit, s.opts.Keep)
	}
	r.newTokens = room
	return nil
}

// longestView is the length of Eq. 6's concatenation if the filter kept the agents with the longest prompts.
func (sw *Swarm) longestView() int {
	s := sw.round.search
	var agents []int
	for _, a := range sw.agents {
		agents = append(agents, len(a.phraseTokens())+len(a.thinkTokens())+s.opts.Steps)
	}
	slices.Sort(agents)
	n := len(s.prompts.problem)
	for _, a := range agents[len(agents)-min(s.opts.Keep, len(agents)):] {
		n += a
	}
	for _, p := range sw.parents {
		n += len(s.programTokens(p))
	}
	return n + sw.longestInstruction() + len(s.prompts.answer)
}

// prompts are the token runs that a whole search shares.
type prompts struct {
	problem []lm.Token // system turn, opening of the user's turn, statement
	answer  []lm.Token // end of the user's turn, opening of the assistant's
}

func newPrompts(m *lm.Model, statement string) prompts {
	problem := slices.Concat(m.Chat.System(focus.System), m.Chat.UserOpen(), m.Tokenizer.Encode(focus.Problem(statement)))
	return prompts{problem, slices.Concat(m.Chat.UserClose(), m.Chat.AssistantOpen())}
}

func (s *Search) programTokens(p *Program) []lm.Token {
	return s.model.Tokenizer.Encode(focus.Program(p.ID, p.Code, p.feedback()))
}

func (a *Agent) phraseTokens() []lm.Token {
	return a.swarm.round.search.model.Tokenizer.Encode(focus.Phrase(a.swarm.focus, a.prompt.Phrasing))
}

func (a *Agent) thinkTokens() []lm.Token {
	return a.swarm.round.search.model.Tokenizer.Encode(focus.Think(a.prompt.Way))
}

// instruction is the summarizer's task; line is the one to rewrite in the form "line", else nil.
func (sw *Swarm) instruction(line *python.Line) []lm.Token {
	s := sw.round.search
	task := focus.Task{Kind: string(sw.kind), Focus: sw.focus, Entry: s.problem.Info().Entry}
	for _, p := range sw.parents {
		task.Parents = append(task.Parents, p.ID)
	}
	if line != nil {
		task.Line = strings.TrimSpace(line.Text)
	}
	return s.model.Tokenizer.Encode(task.Instruction())
}

// longestInstruction is the number of tokens of the longest instruction that the swarm can get.
func (sw *Swarm) longestInstruction() int {
	longest := len(sw.instruction(nil))
	if sw.round.search.opts.Form == "line" {
		for _, l := range python.Lines(sw.parents[0].Code) {
			longest = max(longest, len(sw.instruction(&l))+len(sw.round.search.model.Tokenizer.Encode(l.Text)))
		}
	}
	return longest
}
