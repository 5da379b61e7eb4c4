package store

import (
	"encoding/json"
	"time"

	"skep/problems/spec"
)

// Main is the branch of a run that is no fork.
const Main = "main"

// Meta is what a run is: written once by Create, one row. Options and Assumptions are JSON documents of the engine's.
type Meta struct {
	RunID           string // UUID; Create makes one when empty
	Created         time.Time
	SkepVersion     string
	Problem         string // folder name: "circles_square_26"
	Model           string // manifest name or path
	ModelHash       string // SHA-256, hex, of the model file
	Backend         string // "cpu" or "cuda"
	Profile         string // "cpu" or "paper"
	Seed            int64
	Options         json.RawMessage // nil is stored as null
	Assumptions     json.RawMessage // nil is stored as null
	AssumptionsHash string          // SHA-256, hex
	Branch          string          // the branch that Next continues; empty: Main
}

// Program is one candidate, failed ones too.
type Program struct {
	ID           int64  // given by the store: 1, 2, 3, … in the order of acknowledgement
	Hash         string // SHA-256, hex, of the normalised code
	Branch       string // empty: Main
	Round        int    // 0: before the first round
	Swarm        int    // index in the round; -1: none (tuner, initial)
	Kind         string // "refine", "hybridize", "explore", "fresh", "tuner" or "initial"
	Parents      []int64
	Description  string
	Code         string
	Created      time.Time // zero: now
	LinesAdded   int       // against the first parent
	LinesRemoved int
	Evaluations  []Evaluation // in order of Repeat; filled by reads, ignored by writes
}

// Evaluation is one run of one program. Floats are nil where the judge has no number; a NaN is stored as nil.
type Evaluation struct {
	ID      int64 // given by the store
	Program int64
	Repeat  int // 0: the one that ranks; 1, 2, …: run again
	Outcome spec.Outcome
	Message string
	Value   *float64
	Claim   *float64 // what the program itself said; never used
	Strict  *bool    // feasible at tolerance 0; nil: unknown
	Numbers spec.Numbers
	Margins []spec.Margin
	Frame   []byte // what was returned, at most MaxFrame bytes. Reads of programs leave it nil: see Reader.Frame
	Stdout  string // cut to MaxOutput bytes, head and tail kept
	Stderr  string // the same
	CPU     time.Duration
	Wall    time.Duration
	Tier    string
	Host    string
	Created time.Time // zero: now
}

// Stage is how far a round or a swarm has come.
type Stage string

// The stages in their order.
const (
	Formed    Stage = "formed"
	Reasoned  Stage = "reasoned"
	Filtered  Stage = "filtered"
	Written   Stage = "written"
	Tuned     Stage = "tuned"
	Evaluated Stage = "evaluated"
	Committed Stage = "committed"
)

// Round is a round with everything in it but programs and hidden states.
type Round struct {
	Branch  string // empty: Main
	N       int    // number of the round, from 1
	Stage   Stage
	Forked  string // the branch it was forked from; empty: none
	Seen    int64  // highest program id that its draws could see; 0: none
	Started time.Time
	Extra   json.RawMessage // the engine's own, no contract; nil is stored as null
	Swarms  []Swarm         // by index
	Timings []Timing        // in the order they ran; a stage that ran twice is there twice
}

// Swarm is one swarm of a round. Its index is its place in Round.Swarms.
type Swarm struct {
	Kind        string // "refine", "hybridize", "explore" or "fresh"
	Focus       string
	Parents     []int64
	Temperature float64
	Stage       Stage
	Stale       bool            // something upstream changed since Stage was reached
	Kept        []int           // agents that the filter kept, in its order; nil: not filtered yet
	View        json.RawMessage // blocks of the summarizer's view, old and new positions; nil is stored as null
	Extra       json.RawMessage // the engine's own, no contract; nil is stored as null
	Agents      []Agent         // by index
	Summaries   []Summary       // by replicate
}

// Agent is one agent of a swarm. Its index is its place in Swarm.Agents.
type Agent struct {
	Phrasing int
	Way      int
	Parent   int64 // program id; 0: no parent
	Prompt   string
	Tokens   int
	Kept     bool
	Dropped  bool // taken out by hand
}

// Summary is one text written from a swarm's view. Its replicate is its place in Swarm.Summaries.
type Summary struct {
	Program     int64 // id of the program it became; 0: none
	Text        string
	Reason      string // why it ended: "stop", "length", "stopped"
	Tokens      int
	Took        time.Duration
	Drafted     int // tokens proposed by prompt lookup
	Accepted    int // of them accepted
	Temperature float64
}

// Timing is one run of one stage.
type Timing struct {
	Stage   string // "form", "read", "reason", "filter", "transfer", "write", "tune", "evaluate", "commit"
	Swarm   int    // index; -1: the whole round
	Started time.Time
	Took    time.Duration
}

// What names the hidden states of a round that are kept, one file each.
type What string

// Shapes: A agents of all swarms in order, m latent steps, D model width.
const (
	Means        What = "means"        // [A, D] float32, Eq. 4, arXiv 2611.08483
	Margins      What = "margins"      // [A] float32, Eq. 5: smallest cosine distance to those kept before
	Trajectories What = "trajectories" // [A, m, D] float16
)

// Event is one line of the run's log.
type Event struct {
	ID    int64
	Time  time.Time
	Level string          // "DEBUG", "INFO", "WARN" or "ERROR"
	Line  json.RawMessage // one JSON object as slog writes it: time, level, msg and the attributes
}
