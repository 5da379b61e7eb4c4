package engine

import (
	"context"
	"fmt"
	"math"
	"strings"

	"skep/engine/focus"
	"skep/engine/lm"
	"skep/plotting"
)

// Index is the agent's place in its swarm.
func (a *Agent) Index() int { return a.index }

// Parent is the program that the agent reads, nil when it reads the problem only.
func (a *Agent) Parent() *Program { return a.parent }

// Phrasing and Way are the agent's places in focus.Phrasings and focus.Ways.
func (a *Agent) Phrasing() int { return a.prompt.Phrasing }

// Way is the agent's place in focus.Ways.
func (a *Agent) Way() int { return a.prompt.Way }

// Prompt is what the agent reads behind the problem and its parent.
func (a *Agent) Prompt() string {
	a.swarm.round.search.mu.Lock()
	defer a.swarm.round.search.mu.Unlock()
	return a.words()
}

func (a *Agent) words() string {
	return focus.Phrase(a.swarm.focus, a.prompt.Phrasing) + focus.Think(a.prompt.Way)
}

// Trajectory is the agent's hidden states h_1 … h_m, [step][Width], read-only; nil before Reason.
func (a *Agent) Trajectory() [][]float32 {
	a.swarm.round.search.mu.Lock()
	defer a.swarm.round.search.mu.Unlock()
	return a.trajectory
}

// Mean is Eq. 4's mean hidden state, [Width], read-only; nil before Reason.
func (a *Agent) Mean() []float32 {
	a.swarm.round.search.mu.Lock()
	defer a.swarm.round.search.mu.Unlock()
	return a.mean
}

// Thoughts is the logit lens over an agent's latent steps.
type Thoughts struct {
	Agent string // "agent 3 of swarm 2 (explore)"
	Steps []Thought
}

// Thought is what one latent state would say if it were decoded.
type Thought struct {
	Step  int       // from 1
	Words []string  // the top tokens as text
	Probs []float64 // their probabilities at temperature 1
	Norm  float64   // length of the hidden state
	Moved float64   // cosine distance to the state before; NaN at the first step
}

// Thoughts decodes the agent's latent steps through the output head: the likeliest tokens of each, how sure the model would
// be, how far the state moved. ErrStage before Reason. It may be called while a job runs.
func (a *Agent) Thoughts() (*Thoughts, error) {
	const top = 5
	s := a.swarm.round.search
	trajectory := a.Trajectory()
	if trajectory == nil {
		return nil, fmt.Errorf("engine: %w: swarm %d is %s; Thoughts needs Reason first", ErrStage, a.swarm.index, a.swarm.Stage())
	}
	rows, err := s.backend.Lens(context.Background(), trajectory, top)
	if err != nil {
		return nil, err
	}
	t := &Thoughts{Agent: fmt.Sprintf("agent %d of swarm %d (%s)", a.index, a.swarm.index, a.swarm.kind)}
	for i, row := range rows {
		th := Thought{Step: i + 1, Norm: norm(trajectory[i]), Moved: math.NaN()}
		for k, token := range row.Tokens[:min(top, len(row.Tokens))] {
			th.Words = append(th.Words, s.model.Tokenizer.Decode([]lm.Token{token}))
			th.Probs = append(th.Probs, math.Exp(float64(row.Logits[k])-row.LogSum))
		}
		if i > 0 {
			th.Moved = 1 - cosine(trajectory[i-1], trajectory[i])
		}
		t.Steps = append(t.Steps, th)
	}
	return t, nil
}

func norm(x []float32) float64 { return math.Sqrt(dot(x, x)) }

func cosine(a, b []float32) float64 { return dot(a, b) / (norm(a) * norm(b)) }

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// Answer is what an agent said when it was asked.
type Answer struct{ Question, Text string }

// askTokens is the most that an agent answers.
const askTokens = 120

// Ask decodes an answer from the agent's own keys and values, greedily. It leaves no trace in the round: the question and the
// answer go into a block of their own behind a view of the agent's. ErrStage before Reason.
func (a *Agent) Ask(ctx context.Context, question string) (answer *Answer, err error) {
	err = a.swarm.round.search.exclusive("Ask", func() error {
		answer, err = a.ask(ctx, question)
		return err
	})
	return answer, err
}

func (a *Agent) ask(ctx context.Context, question string) (*Answer, error) {
	r := a.swarm.round
	s := r.search
	if a.swarm.stage < Reasoned {
		return nil, fmt.Errorf("engine: %w: swarm %d is %s; Ask needs Reason first", ErrStage, a.swarm.index, a.swarm.stage)
	}
	if s.branches[r.branch].open != r { // an old round holds no keys and values for longer than the look
		defer r.release()
	}
	if err := r.recall(ctx, []*Swarm{a.swarm}); err != nil {
		return nil, err
	}
	tokens := append(s.model.Tokenizer.Encode("\n# Question\n"+question), s.prompts.answer...)
	block := s.backend.New()
	defer s.backend.Free(block)
	seen := view(append(a.before(), r.phraseKV[a.phraseKey()], a.kv)...)
	said, err := lm.Decode(ctx, s.backend, s.model.Tokenizer, []lm.Stream{{
		Prompt:   lm.Span{Tokens: tokens, Pos: a.kv.end(), View: seen, Into: block},
		Sampling: lm.Sampling{MaxNew: askTokens},
	}}, func(_ int, text string) {
		report(ctx, Event{Round: r.n, Stage: "ask", Swarm: a.swarm.index, Text: text})
	})
	if err != nil {
		return nil, err
	}
	return &Answer{question, strings.TrimSpace(said[0].Text)}, nil
}

// Clusters draws the mean hidden states of the swarm's agents, centred on the swarm's mean (Figure 5, right): kept agents
// filled, grouped by parent, or by "phrasing" or "way".
func (sw *Swarm) Clusters(by ...string) *plotting.Figure {
	group := "parent"
	if len(by) > 0 {
		group = by[0]
	}
	s := sw.round.search
	s.mu.Lock()
	defer s.mu.Unlock()
	data := plotting.ClusterData{By: group, Title: fmt.Sprintf("Swarm %d (%s) of round %d: %s", sw.index, sw.kind, sw.round.n, sw.focus),
		Caption: "centred on the swarm's mean; filled: kept by the novelty filter"}
	for _, a := range sw.agents {
		data.Points = append(data.Points, a.point(a.group(group)))
	}
	return plotting.Clusters(data)
}

// Clusters draws the mean hidden states of all agents of the round, centred on the round's mean (Figure 5, left).
func (r *Round) Clusters() *plotting.Figure {
	r.search.mu.Lock()
	defer r.search.mu.Unlock()
	data := plotting.ClusterData{By: "swarm", Title: fmt.Sprintf("Agents of round %d", r.n), Caption: "centred on the round's mean; filled: kept by the novelty filter"}
	for _, sw := range r.swarms {
		for _, a := range sw.agents {
			data.Points = append(data.Points, a.point(fmt.Sprintf("%d %s", sw.index, sw.kind)))
		}
	}
	return plotting.Clusters(data)
}

func (a *Agent) group(by string) string {
	switch by {
	case "phrasing":
		return fmt.Sprintf("phrasing %d", a.prompt.Phrasing+1)
	case "way":
		return fmt.Sprintf("way %d", a.prompt.Way+1)
	}
	if a.parent == nil {
		return "no parent"
	}
	return fmt.Sprintf("program %d", a.parent.ID)
}

func (a *Agent) point(group string) plotting.ClusterPoint {
	p := plotting.ClusterPoint{Group: group, Kept: a.isKept(), Label: fmt.Sprintf("agent %d: %s", a.index, strings.TrimSpace(a.words()))}
	for _, x := range a.mean {
		p.X = append(p.X, float64(x))
	}
	return p
}

// isKept says whether the summarizer reads the agent. The caller holds the search's mu.
func (a *Agent) isKept() bool {
	for _, i := range a.swarm.kept {
		if i == a.index {
			return !a.dropped
		}
	}
	return false
}
