package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"skep/engine/focus"
)

// Swarm is a group of agents with one focus, and the summarizer that writes their program. Safe for concurrent use as
// Round is.
type Swarm struct {
	round       *Round
	index       int
	kind        Kind
	focus       string
	parents     []*Program
	agents      []*Agent
	temperature float64
	longest     int // tokens of its longest possible view

	stage     Stage // Formed, Reasoned, Filtered, Written or Evaluated
	stale     bool  // something upstream changed since it had come further
	cached    depth // what of its agents is in the cache; used only by the call that holds the search's busy
	kept      []int // ascending; nil: not filtered
	view      []Placed
	summaries []*Summary
}

// depth says how much of a swarm is in the cache.
type depth uint8

const (
	nothing  depth = iota
	readIn         // what the agents read
	thoughts       // and their latent steps
)

// Agent is one member of a swarm.
type Agent struct {
	swarm   *Swarm
	index   int
	parent  *Program // nil: it reads the problem only
	prompt  focus.Prompt
	dropped bool // taken out by hand

	kv         stretch     // way of thinking and latent steps
	first      []float32   // h_0, [Width]
	trajectory [][]float32 // h_1 … h_m, [step][Width]; nil: not reasoned
	mean       []float32   // Eq. 4
	margin     float32     // Eq. 5's distance when it was kept
}

// Placed is one block of a summarizer's view (Eq. 6).
type Placed struct {
	What     string // "problem", "agent", "parent" or "instruction"
	Agent    int    // index, for agents; -1 otherwise
	Program  int64  // id, for parents
	From, To int    // positions at which its first token was computed and is seen
	Tokens   int
	Dropped  bool // its place is a hole

	stretches []stretch
}

// Summary is one text that a summarizer wrote.
type Summary struct {
	Text        string
	Description string
	Code        string // the complete program; "" when the reply holds none
	Reason      string // why it ended: "stop", "length", "stopped"
	Tries       int    // texts drawn until one gave a program other than the parents
	Tokens      int
	Steps       int // passes it took
	Drafted     int
	Accepted    int
	Took        time.Duration
	Temperature float64
	Program     *Program // nil: not judged yet

	parent *Program
}

// became is the summary with another program. The summary itself stays as whoever holds it has seen it.
func (s *Summary) became(p *Program) *Summary {
	now := *s
	now.Program = p
	return &now
}

// Index is the swarm's place in its round.
func (sw *Swarm) Index() int { return sw.index }

// Kind is "refine", "hybridize", "explore" or "fresh".
func (sw *Swarm) Kind() string { return string(sw.kind) }

// Focus is the aspect or perspective of the swarm.
func (sw *Swarm) Focus() string {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return sw.focus
}

// Stage is how far the swarm has come.
func (sw *Swarm) Stage() Stage {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return sw.stage
}

// Stale says whether something upstream changed since the swarm had come further.
func (sw *Swarm) Stale() bool {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return sw.stale
}

// Parents are the programs that the swarm reads.
func (sw *Swarm) Parents() []*Program { return slices.Clone(sw.parents) }

// Agents are the swarm's agents in order.
func (sw *Swarm) Agents() []*Agent { return slices.Clone(sw.agents) }

// Agent returns the i-th agent; it panics with the range when there is none, as an index would.
func (sw *Swarm) Agent(i int) *Agent {
	if i < 0 || i >= len(sw.agents) {
		panic(fmt.Sprintf("engine: swarm %d has agents 0 to %d, not %d", sw.index, len(sw.agents)-1, i))
	}
	return sw.agents[i]
}

// Kept lists the agents that the filter kept, ascending, without dropped ones; nil before Filter.
func (sw *Swarm) Kept() []int {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(sw.kept), func(i int) bool { return sw.agents[i].dropped })
}

// View lists the blocks that the summarizer attends to, in order; nil before Transfer.
func (sw *Swarm) View() []Placed {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return slices.Clone(sw.view)
}

// Summaries are the texts that the summarizer wrote, by replicate.
func (sw *Swarm) Summaries() []*Summary {
	sw.round.search.mu.Lock()
	defer sw.round.search.mu.Unlock()
	return slices.Clone(sw.summaries)
}

// Summary is the first text of the summarizer; nil before Write.
func (sw *Swarm) Summary() *Summary {
	if all := sw.Summaries(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// SetFocus gives the swarm another focus: any words, not only those of Table S4. It marks this swarm stale and nothing
// else.
func (sw *Swarm) SetFocus(words string) error {
	return sw.edit("SetFocus", Formed, func() error {
		if words = strings.TrimSpace(words); words == "" {
			return fmt.Errorf("engine: an empty focus; name what the agents should look at")
		}
		old := sw.focus
		sw.focus = words
		if err := sw.round.fit(); err != nil {
			sw.focus = old
			return err
		}
		for _, a := range sw.agents { // what they thought was about the old focus
			a.trajectory, a.mean, a.margin, a.dropped = nil, nil, 0, false
		}
		sw.kept, sw.view = nil, nil
		return nil
	})
}

// SetKept replaces the filter's choice: the agents that the summarizer reads.
func (sw *Swarm) SetKept(agents ...int) error {
	return sw.edit("SetKept", Filtered, func() error {
		kept := slices.Compact(slices.Sorted(slices.Values(agents)))
		if len(kept) == 0 || kept[0] < 0 || kept[len(kept)-1] >= len(sw.agents) {
			return fmt.Errorf("engine: cannot keep agents %v; swarm %d has agents 0 to %d and at least one is kept", agents, sw.index, len(sw.agents)-1)
		}
		for _, a := range sw.agents {
			a.dropped = false
		}
		sw.kept, sw.view = kept, nil
		return nil
	})
}

// Drop takes agents out of the summarizer's view. Their places become holes: the others keep their positions, so that
// only what was dropped can make a difference.
func (sw *Swarm) Drop(agents ...int) error {
	return sw.edit("Drop", Filtered, func() error {
		for _, i := range agents {
			if !slices.Contains(sw.kept, i) {
				return fmt.Errorf("engine: agent %d of swarm %d is not among the kept ones %v", i, sw.index, sw.kept)
			}
		}
		for _, i := range agents {
			sw.agents[i].dropped = true
		}
		sw.view = nil
		return nil
	})
}

// SetTemperature changes the temperature at which the summarizer writes.
func (sw *Swarm) SetTemperature(t float64) error {
	return sw.edit("SetTemperature", Filtered, func() error {
		if !heat(t) {
			return fmt.Errorf("engine: temperature %v; want 0 (greedy) to 10", t)
		}
		sw.temperature = t
		return nil
	})
}

// edit makes a change that leaves a swarm at stage at most: what came after is stale. A change that needs an earlier
// stage than the swarm has reached is ErrStage, except for the temperature, which waits.
func (sw *Swarm) edit(what string, stage Stage, change func() error) error {
	s := sw.round.search
	return s.exclusive(what, func() error {
		if sw.round.committed {
			return sw.round.ready(Reasoned, nil)
		}
		if stage == Filtered && sw.stage < Filtered && what != "SetTemperature" {
			return fmt.Errorf("engine: %w: swarm %d is %s; %s needs Filter first", ErrStage, sw.index, sw.stage, what)
		}
		var err error
		s.update(func() {
			if err = change(); err == nil && sw.stage > stage {
				sw.stage, sw.stale = stage, true
			}
		})
		if err != nil {
			return err
		}
		if stage == Formed {
			sw.release()
		}
		return sw.round.save(context.Background())
	})
}

// Read lets the agents of this swarm alone read their prompts. Reason does it when it was not done.
func (sw *Swarm) Read(ctx context.Context) error {
	return sw.round.search.exclusive("Read", func() error { return sw.round.readPrompts(ctx, []*Swarm{sw}) })
}

// Reason lets the agents of this swarm alone take their latent steps, again if they had. Filter, Transfer, Write and
// Evaluate do the same for their stages.
func (sw *Swarm) Reason(ctx context.Context) error {
	return sw.round.search.exclusive("Reason", func() error { return sw.round.reason(ctx, []*Swarm{sw}) })
}

// Filter keeps the most novel agents of this swarm (Eq. 4–5).
func (sw *Swarm) Filter(ctx context.Context) error {
	return sw.round.search.exclusive("Filter", func() error { return sw.round.filter(ctx, []*Swarm{sw}) })
}

// Transfer builds the summarizer's view (Eq. 6).
func (sw *Swarm) Transfer(ctx context.Context) error {
	return sw.round.search.exclusive("Transfer", func() error { return sw.round.transfer(ctx, []*Swarm{sw}) })
}

// Write lets the summarizer write, with samples that many texts. The i-th text of a view is always the same.
func (sw *Swarm) Write(ctx context.Context, samples ...int) error {
	return sw.round.search.exclusive("Write", func() error { return sw.round.write(ctx, []*Swarm{sw}, sw.round.samples(samples)) })
}

// Evaluate judges the texts of this swarm.
func (sw *Swarm) Evaluate(ctx context.Context) error {
	return sw.round.search.exclusive("Evaluate", func() error { return sw.round.evaluate(ctx, []*Swarm{sw}, nil) })
}

// release frees the keys and values of the agents.
func (sw *Swarm) release() {
	for _, a := range sw.agents {
		if a.kv.n > 0 {
			sw.round.search.backend.Free(a.kv.block)
			a.kv = stretch{}
		}
	}
	sw.cached = nothing
}
