// Package spec says what a search problem is and what its verifier answers. It is the part of package problems that
// the problem folders themselves import; everybody else uses the same names through package problems. It
// deliberately knows no particular problem, no sandbox, no language model and no archive.
package spec

import (
	"time"

	"skep/plotting"
	"skep/problems/value"
)

// Problem is one search problem. Implementations are immutable and safe for concurrent use.
type Problem interface {
	Info() Info
	// Statement is what agents read, in Markdown.
	Statement() string
	// Initial is the initial program, Python source.
	Initial() string
	// Verify recomputes the value of what the entry function returned, from the numbers alone. It never panics,
	// whatever returned is, and caps its own work.
	Verify(returned value.Value) Verdict
	// Picture draws what was returned, violations in red; it works on invalid numbers too.
	Picture(returned value.Value) *plotting.Figure
}

// Loader is the optional ability of a Problem to read a file of published numbers in the problem's own layout, as
// `skep verify` accepts it.
type Loader interface {
	// Load turns the field "data" of such a file, decoded, into what the entry function would have returned.
	Load(data value.Value) (value.Value, error)
}

// Info is what a problem says of itself.
type Info struct {
	Name      string  // folder name: "circles_square_26"
	Paper     string  // "D.1", arXiv 2611.08483
	Title     string  // "Circles in a square, n = 26"
	Sense     Sense   // Maximize or Minimize the value
	Entry     string  // Python entry function, called without arguments: "run_packing"
	Tolerance float64 // of the tolerant verdict
	Reference float64 // v_AE: score = value/Reference, or Reference/value when minimizing
	Limits    Limits
}

// Sense says which values are better.
type Sense string

const (
	Maximize Sense = "max"
	Minimize Sense = "min"
)

// Limits of one candidate run. Zero fields take the judge's defaults.
type Limits struct {
	CPU, Wall   time.Duration
	MemoryBytes int64
}

// Or returns l with its zero fields taken from fallback.
func (l Limits) Or(fallback Limits) Limits {
	if l.CPU == 0 {
		l.CPU = fallback.CPU
	}
	if l.Wall == 0 {
		l.Wall = fallback.Wall
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = fallback.MemoryBytes
	}
	return l
}

// Outcome is how a run ended: a closed set, never a number.
type Outcome string

const (
	OK               Outcome = "ok"                // counts: tolerantly feasible, finite
	Infeasible       Outcome = "infeasible"        // numbers well formed, a constraint violated
	Duplicate        Outcome = "duplicate"         // same program as an earlier one; not run
	Suspicious       Outcome = "suspicious"        // better than a known bound
	NoResult         Outcome = "no_result"         // ended without a result frame
	BadResult        Outcome = "bad_result"        // wrong shape, type or non-finite numbers
	Exception        Outcome = "exception"         // Python raised
	SyntaxError      Outcome = "syntax_error"      // does not parse
	Crash            Outcome = "crash"             // died by a signal
	TimeoutWall      Outcome = "timeout_wall"      // wall clock limit
	TimeoutCPU       Outcome = "timeout_cpu"       // CPU limit
	OutOfMemory      Outcome = "oom"               // memory limit
	OutputLimit      Outcome = "output_limit"      // too much on stdout or stderr, or in the scratch folder
	ResultLimit      Outcome = "result_limit"      // result frame too large
	ForbiddenSyscall Outcome = "forbidden_syscall" // killed by the system call filter
	InfraError       Outcome = "infra_error"       // our fault or the machine's; retried
)

// Outcomes is the whole set, in the order above.
func Outcomes() []Outcome {
	return []Outcome{OK, Infeasible, Duplicate, Suspicious, NoResult, BadResult, Exception, SyntaxError, Crash,
		TimeoutWall, TimeoutCPU, OutOfMemory, OutputLimit, ResultLimit, ForbiddenSyscall, InfraError}
}

// Ranked says whether a program with this outcome has a score that ranks it.
func (o Outcome) Ranked() bool { return o == OK }

// Parent says whether such a program may be drawn as a parent.
func (o Outcome) Parent() bool { return o == OK }

// Verdict is what a verifier says of one returned value.
type Verdict struct {
	Outcome Outcome  // OK, Infeasible, BadResult or Suspicious
	Message string   // first violated constraint by name and index with its numbers, or how the value was reached
	Value   *float64 // recomputed objective; nil when it has none. May be set on Infeasible
	Claim   *float64 // what the program itself said; never used
	Strict  *bool    // feasible at tolerance 0, proved in exact arithmetic; nil when unknown
	Numbers Numbers
	Margins []Margin // worst of each constraint family
}

// Numbers are the four scores, stored apart. nil: not defined for this result.
type Numbers struct {
	SearchScore  *float64 `json:"search_score"`   // ranks; Value/Reference or its inverse
	Table1Score  *float64 `json:"table1_score"`   // the paper's rule
	TableS5Value *float64 `json:"table_s5_value"` // value under exact constraints
	StrictValue  *float64 `json:"strict_value"`   // value when strictly feasible
}

// Margin is the slack of one constraint family; negative means violated.
type Margin struct {
	Family string  `json:"family"` // "walls", "pairs", "radii"
	Slack  float64 `json:"slack"`  // smallest slack, in the problem's units
	At     string  `json:"at"`     // which constraint: "circles 3 and 7"
}
