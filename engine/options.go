package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"
)

// Options say what a search is. The zero value of every field takes the default that its comment names; all but Python,
// Threads and the policies are stored with the run, and opening a run again with other ones is an error that
// prints the difference.
type Options struct {
	Problem string // folder under problems/; required to create a run
	Seed    uint64 // everything random follows from it
	Model   string // name in the manifest, path, or Hugging Face repository; "": $SKEP_MODEL, else qwen2.5-coder-0.5b
	Backend string // "cpu"; "": $SKEP_BACKEND, else "cpu"
	Profile string // "paper" or "cpu"; "": "paper" with a GPU, else "cpu"
	Numbers        // what differs from the profile

	Python     string `json:"-"` // interpreter for candidates; "": $SKEP_PYTHON, else the environment that skep makes
	Threads    int    `json:"-"` // of the CPU backend; 0: all cores
	Evaluators int    `json:"-"` // programs judged at a time; 0: the judge's default
	Policies   `json:"-"`
}

// Numbers are the numbers of a round (Table S3). 0 takes the profile's; a negative count means none, a negative temperature
// greedy choice.
type Numbers struct {
	Refine, Hybridize, Explore, Fresh int // swarms of each kind

	Agents int // agents of a swarm
	Steps  int // latent reasoning steps of an agent
	Keep   int // agents that the novelty filter keeps

	RefineBest       int // refinement takes the best this many programs in turn
	MaxRefinements   int // refinement steps of one program, then the next best takes its place
	HybridizePool    int // hybridization draws from the best this many programs, one per lineage
	HybridizeParents int // programs of a hybridization swarm
	ExploreParents   int // programs of an exploration swarm, beside the agents without one
	Lag              int // rounds that the archive a round sees may be behind; 0: it sees the round before

	NewTokens   int     // most tokens of a written reply
	Samples     int     // replies written by a swarm
	Tries       int     // texts drawn for a reply or an edit: the first that is no copy counts
	TopP        float64 // of writing and tuning
	TopK        int     // of writing and tuning
	Tunes       int     // one-number edits a round
	TuneTokens  int     // most tokens of an edit
	RefineTemp  float64 // temperature of refinement summarizers
	HybridTemp  float64 // … of hybridization
	ExploreTemp float64 // … of exploration and fresh start
	TuneTemp    float64 // … of the tuning agent

	CPU, Wall time.Duration // limits of a candidate; 0 takes the smaller of the profile's and the problem's
	Form      string        // what a summarizer is asked for: "program", or "line" for models too small for one (see Assumptions)
}

// profiles are the named sets of numbers. "paper" is Table S3; "cpu" is a round of the same form that two cores finish
// in a few minutes, and no evidence about the paper.
var profiles = map[string]Numbers{
	"paper": {
		Refine: 4, Hybridize: 3, Explore: 2, Fresh: 1, Agents: 45, Steps: 40, Keep: 30,
		RefineBest: 2, MaxRefinements: 20, HybridizePool: 10, HybridizeParents: 5, ExploreParents: 4,
		NewTokens: 4096, Samples: 1, Tries: 1, TopP: 0.95, TopK: 20, Tunes: 8, TuneTokens: 24,
		RefineTemp: 0.3, HybridTemp: 0.5, ExploreTemp: 0.8, TuneTemp: 1.0,
		CPU: 360 * time.Second, Wall: 400 * time.Second, Form: "program",
	},
	"cpu": {
		Refine: 1, Hybridize: 1, Explore: 1, Fresh: 1, Agents: 6, Steps: 8, Keep: 4,
		RefineBest: 2, MaxRefinements: 20, HybridizePool: 10, HybridizeParents: 2, ExploreParents: 2,
		NewTokens: 1024, Samples: 1, Tries: 10, TopP: 0.95, TopK: 20, Tunes: 8, TuneTokens: 24,
		RefineTemp: 0.7, HybridTemp: 0.8, ExploreTemp: 0.9, TuneTemp: 1.0,
		CPU: 10 * time.Second, Wall: 15 * time.Second, Form: "line",
	},
}

// Policies replace single choices of a round. nil takes the method's own. They get and return plain slices and must be
// deterministic, as a stored round is only repeated by the same policy.
type Policies struct {
	// Draw chooses the parents of a swarm of the given kind among the ranked programs (best first) for round n.
	Draw func(kind string, ranked []*Program, round int) []*Program
	// Focus chooses the focus of a swarm.
	Focus func(kind string, parents []*Program, round int) string
	// Assign gives the agents of one parent of a swarm their prompts: for each of n agents the indices into
	// focus.Phrasings and focus.Ways.
	Assign func(kind string, n, round int) [][2]int
	// Filter returns the indices of the agents to keep, given their mean hidden states [agent][D].
	Filter func(means [][]float32, keep int) []int
	// Accept says whether a judged program may rank; it only narrows what the outcome allows.
	Accept func(p *Program) bool
}

// resolved fills every open field of o: from the environment, from the profile, and checks the numbers.
func (o Options) resolved() (Options, error) {
	o.Model = cmp.Or(o.Model, os.Getenv("SKEP_MODEL"), "qwen2.5-coder-0.5b")
	o.Backend = cmp.Or(o.Backend, os.Getenv("SKEP_BACKEND"), "cpu")
	o.Profile = cmp.Or(o.Profile, "cpu")
	if o.Backend != "cpu" {
		return o, fmt.Errorf("engine: this skep has no backend %q; it has \"cpu\"", o.Backend)
	}
	base, ok := profiles[o.Profile]
	if !ok {
		return o, fmt.Errorf("engine: there is no profile %q; there are \"paper\" and \"cpu\"", o.Profile)
	}
	fill(reflect.ValueOf(&o.Numbers).Elem(), reflect.ValueOf(base))
	return o, o.Numbers.check()
}

// fill sets the zero fields of dst from src and turns negative counts and temperatures into 0.
func fill(dst, src reflect.Value) {
	for i := range dst.NumField() {
		f := dst.Field(i)
		switch {
		case f.IsZero():
			f.Set(src.Field(i))
		case f.Kind() == reflect.Int && f.Int() < 0:
			f.SetInt(0)
		case f.Kind() == reflect.Float64 && f.Float() < 0:
			f.SetFloat(0)
		}
	}
}

func (n Numbers) check() error {
	switch {
	case n.Refine+n.Hybridize+n.Explore+n.Fresh < 1:
		return fmt.Errorf("engine: a round needs at least one swarm; Refine, Hybridize, Explore and Fresh are all 0")
	case n.Agents < 1 || n.Steps < 1:
		return fmt.Errorf("engine: %d agents with %d latent steps; both must be at least 1", n.Agents, n.Steps)
	case n.Keep < 1 || n.Keep > n.Agents:
		return fmt.Errorf("engine: the filter keeps %d of %d agents; want 1 to %d", n.Keep, n.Agents, n.Agents)
	case n.NewTokens < 1 || n.Samples < 1 || n.Tries < 1:
		return fmt.Errorf("engine: NewTokens %d, Samples %d and Tries %d must be at least 1", n.NewTokens, n.Samples, n.Tries)
	case n.RefineBest < 1 || n.HybridizePool < 1 || n.HybridizeParents < 1:
		return fmt.Errorf("engine: RefineBest %d, HybridizePool %d, HybridizeParents %d must be at least 1", n.RefineBest, n.HybridizePool, n.HybridizeParents)
	case n.Explore > 0 && n.ExploreParents < 1:
		return fmt.Errorf("engine: ExploreParents %d; an exploration swarm needs at least 1, whose lines and functions its program may take", n.ExploreParents)
	case n.Tunes > 0 && n.TuneTokens < 1:
		return fmt.Errorf("engine: TuneTokens %d; must be at least 1, or Tunes -1 for no tuning agent", n.TuneTokens)
	case !(n.TopP > 0 && n.TopP <= 1):
		return fmt.Errorf("engine: TopP %v; must lie in (0, 1]", n.TopP)
	case !heat(n.RefineTemp) || !heat(n.HybridTemp) || !heat(n.ExploreTemp) || !heat(n.TuneTemp):
		return fmt.Errorf("engine: temperatures %v, %v, %v, %v; each must lie in 0 (greedy; asked for by a negative number) to 10", n.RefineTemp, n.HybridTemp, n.ExploreTemp, n.TuneTemp)
	case n.CPU < 0 || n.Wall < 0:
		return fmt.Errorf("engine: limits of %v CPU and %v wall time; neither may be negative", n.CPU, n.Wall)
	case n.Form != "program" && n.Form != "line":
		return fmt.Errorf("engine: Form %q; want \"program\" or \"line\"", n.Form)
	}
	return nil
}

// heat says whether t is a temperature.
func heat(t float64) bool { return t >= 0 && t <= 10 }

// temperature of the summarizer of a kind of swarm (Table S3).
func (n Numbers) temperature(k Kind) float64 {
	switch k {
	case Refine:
		return n.RefineTemp
	case Hybridize:
		return n.HybridTemp
	default:
		return n.ExploreTemp
	}
}

// difference lists the stored fields in which two options differ, one "Name: stored …, asked …" each.
func difference(stored, asked Options) string {
	var lines []string
	var walk func(a, b reflect.Value)
	walk = func(a, b reflect.Value) {
		for i := range a.NumField() {
			f := a.Type().Field(i)
			switch {
			case f.Tag.Get("json") == "-":
			case f.Anonymous:
				walk(a.Field(i), b.Field(i))
			case !a.Field(i).Equal(b.Field(i)):
				lines = append(lines, fmt.Sprintf("%s: the run has %v, you ask for %v", f.Name, a.Field(i), b.Field(i)))
			}
		}
	}
	walk(reflect.ValueOf(stored), reflect.ValueOf(asked))
	return strings.Join(lines, "; ")
}

func (o Options) json() json.RawMessage {
	b, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("engine: options do not encode: %v", err)) // plain numbers and strings only
	}
	return b
}
