package judge

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"skep/problems/spec"
)

// A tier is a set of walls around a candidate, named as in the design: A has namespaces and cgroups, B namespaces, C neither
// but Landlock, a system call filter, resource limits and a supervisor. Only C is built so far. Every tier is strict:
// no network, no other program, no file outside, no process left. There is no weaker one to fall back to.

// launcher starts candidates behind one tier's walls. It is safe for concurrent use.
type launcher interface {
	// tier is the name that every result is stamped with.
	tier() string
	// launch starts one candidate. An error is ours or the machine's, never the candidate's.
	launch(j job) (*process, error)
}

// job is one candidate to run.
type job struct {
	entry  string
	source string
	limits spec.Limits // no field zero
}

// process is a running candidate. The reader of a pipe owns it; all of them end soon after the report has come.
type process struct {
	stdout, stderr, frame io.ReadCloser
	kill                  func()        // ends it and all that descends from it; may be called at any time, and again
	report                <-chan report // one value, when nothing of it lives any more
}

// report is how a candidate ended.
type report struct {
	Error  string        // it could not be started, or not be killed: our fault
	Cause  cause         // what ended it
	Status int           // wait status, as of wait4(2)
	CPU    time.Duration // user and system
	Wall   time.Duration // since it was started
	Peak   int64         // resident bytes, as polled
}

// cause is what ended a candidate.
type cause string

const (
	ended       cause = "exit"    // by itself; see Status
	leashPulled cause = "leash"   // process.kill
	overWall    cause = "wall"    // wall clock
	overCPU     cause = "cpu"     // processor time
	overMemory  cause = "memory"  // resident memory
	overScratch cause = "scratch" // bytes or files in the scratch folder
	overThreads cause = "threads" // of one candidate
)

// Layer is one wall, as Probe found it.
type Layer struct {
	Name   string `json:"name"`
	Have   bool   `json:"have"`
	Needed bool   `json:"needed"` // by the active tier, or by the one that is missing it
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // the one setting that helps; "" when nothing is wrong
}

// Report says which walls this machine has.
type Report struct {
	Tier     string  `json:"tier"` // the strongest tier that works here; "" when none does
	Platform string  `json:"platform"`
	Layers   []Layer `json:"layers"`
}

// Missing returns an error that names the needed layers that are not there, each with the setting that helps; nil
// when a tier works.
func (r Report) Missing() error {
	var lines []string
	for _, l := range r.Layers {
		if l.Needed && !l.Have {
			lines = append(lines, fmt.Sprintf("%s is missing (%s): %s", l.Name, l.Detail, l.Fix))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("judge: candidates cannot be walled off on this machine: %s. `skep doctor` shows every layer", strings.Join(lines, "; "))
}

// chooseTier resolves Options.Tier on this machine.
func chooseTier(name string) (Report, error) {
	r := Probe()
	switch strings.ToLower(name) {
	case "", "strict", "c":
		return r, r.Missing()
	case "a", "b":
		return r, fmt.Errorf("judge: sandbox tier %s is not built yet; tier C is (Landlock, system call filter, limits, supervisor)", strings.ToUpper(name))
	default:
		return r, fmt.Errorf("judge: there is no sandbox tier %q; use strict or C", name)
	}
}

// stageVariable in the environment makes Main become the process it names.
const stageVariable = "SKEP_JUDGE_STAGE"

// hooked says that Main has run in this process.
var hooked bool

// Main must be called first in main, and first in TestMain of every test that opens a judge: the judge starts this program
// again as the supervisor of each candidate, and Main is where such a process turns off the road. In any other
// process it returns at once.
func Main() {
	if os.Getenv(stageVariable) == "supervise" {
		os.Exit(superviseMain())
	}
	hooked = true
}
