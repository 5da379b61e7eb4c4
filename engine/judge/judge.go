// Package judge runs candidate programs behind walls and turns what they return into plain numbers for a verifier.
//
// The main path: Open finds a Python and the strongest tier of walls; Judge.Evaluate checks the source, lets the tier's
// launcher start one process for it, reads one frame from it, decides the outcome, and hands the decoded value
// to the problem's verifier. Environment makes the Python; Probe says which walls the machine has; Main is the hook
// through which the program starts again as a candidate's supervisor.
//
// It deliberately knows no archive, no score of its own, and no file of a candidate: nothing that a candidate says
// is used but the value in its frame, which the verifier recomputes everything from. Finding duplicates and adding
// missing imports is the engine's.
package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"skep/problems/spec"
	"skep/problems/value"
)

// Options of Open. The zero value is the strict default.
type Options struct {
	Python     string            // an interpreter, used as it is; "": skep's own environment, made if need be
	Tier       string            // "" or "strict": the strongest tier that works here; "C": that one or an error
	Evaluators int               // candidates run at once; 0: min(8, cores)
	Env        string            // folder for skep's own environment; "": see EnvOptions.Cache
	Limits     spec.Limits       // fields that are not zero go before the problem's own
	Progress   func(line string) // of making the environment; nil: silent
}

// defaultLimits hold where neither Options nor the problem say otherwise. The paper gives no limit for D.1 to D.16; the
// evaluators it uses allow 360 s.
var defaultLimits = spec.Limits{CPU: 360 * time.Second, Wall: 400 * time.Second, MemoryBytes: 2 << 30}

// Result is what came of one candidate.
type Result struct {
	Outcome   spec.Outcome
	Verdict   spec.Verdict  // the verifier's; zero when nothing was returned
	Returned  value.Value   // nil when nothing was returned
	Frame     []byte        // Returned as it crossed the boundary, for DecodeFrame; nil with Returned
	Message   string        // what happened, for people and for the next prompt
	Stdout    string        // head and tail, a few KiB
	Stderr    string        // the same; a traceback stands in Message
	CPU, Wall time.Duration // measured outside the candidate, start of Python included
	PeakBytes int64         // resident memory, polled every 20 ms: 0 for a very short run
	Lingering bool          // the frame was complete, but the process had to be killed
	Tier      string        // of the walls it ran behind; "" when it was not run
	Host      string        // name of the machine
}

// Judge evaluates candidates. It is safe for concurrent use.
type Judge struct {
	launcher launcher
	limits   spec.Limits
	slots    chan struct{} // one token for each candidate that runs
	host     string
}

// Open finds or makes the Python environment, chooses the tier, and tries the walls with a program of its own. The error
// names what is missing and the one setting that helps; a weaker tier is never taken instead.
func Open(ctx context.Context, o Options) (*Judge, error) {
	if !hooked {
		return nil, errors.New("judge: judge.Main must be the first call in main (in tests: in TestMain)")
	}
	if _, err := chooseTier(o.Tier); err != nil {
		return nil, err
	}
	python, err := Environment(ctx, EnvOptions{Python: o.Python, Cache: o.Env, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	about, err := describe(ctx, python)
	if err != nil {
		return nil, err
	}
	walls, err := newTierC(about)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	evaluators := o.Evaluators
	if evaluators <= 0 {
		evaluators = min(8, runtime.NumCPU())
	}
	j := &Judge{launcher: walls, limits: o.Limits, slots: make(chan struct{}, evaluators), host: host}
	return j, j.selfTest(ctx)
}

// Close ends the judge. Evaluations that run end by their own context.
func (j *Judge) Close() error { return nil }

// Tier is the name of the tier that candidates run behind.
func (j *Judge) Tier() string { return j.launcher.tier() }

// String says how candidates run, for doctor: "tier C; candidates run as user 65534 (nobody)".
func (j *Judge) String() string { return fmt.Sprintf("tier %s; %v", j.Tier(), j.launcher) }

// Evaluate runs code as a candidate for p, at most Options.Evaluators at once, and verifies what it returned. Whatever
// the candidate did is an Outcome. The error is ours: ctx ended, or the outcome is InfraError twice in a row.
func (j *Judge) Evaluate(ctx context.Context, p spec.Problem, code string) (Result, error) {
	if fault := checkSource(code); fault != "" {
		return Result{Outcome: spec.SyntaxError, Message: fault, Host: j.host}, nil
	}
	info := p.Info()
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	work := job{entry: info.Entry, source: code, limits: j.limits.Or(info.Limits).Or(defaultLimits)}
	result, err := j.run(ctx, work)
	if err == nil && result.Outcome == spec.InfraError {
		result, err = j.run(ctx, work)
	}
	if err != nil {
		return Result{}, err
	}
	if result.Outcome == spec.InfraError {
		return result, fmt.Errorf("judge: %s", result.Message)
	}
	if result.Outcome == spec.OK {
		result.Verdict = p.Verify(result.Returned)
		result.Outcome, result.Message = result.Verdict.Outcome, result.Verdict.Message
	}
	return result, nil
}
