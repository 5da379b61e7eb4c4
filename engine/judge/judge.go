// Package judge runs candidate programs behind walls.
package judge

import (
	"context"
	"errors"
	"time"

	"skep/problems/spec"
	"skep/problems/value"
)

// Options of Open. The zero value is the strict default.
type Options struct {
	Python     string      // interpreter as Environment returns it; "" makes or finds skep's own
	Tier       string      // "" or "strict": the strongest tier here; "C": that one or an error
	Evaluators int         // candidates run at once; 0: min(8, cores)
	Env        string      // cache folder of skep's own environment; "": see Environment
	Limits     spec.Limits // non-zero fields go before the problem's
}

// Result is what came of one candidate.
type Result struct {
	Outcome                 spec.Outcome
	Verdict                 spec.Verdict // of the problem's verifier; zero when it was not reached
	Returned                value.Value  // nil when nothing was returned
	Frame                   []byte       // as it crossed the boundary, for DecodeFrame; nil when Returned is
	Message, Stdout, Stderr string
	CPU, Wall               time.Duration
	PeakBytes               int64
	Tier                    string
	Host                    string
}

// Judge evaluates candidates. It is safe for concurrent use.
type Judge struct{}

// Open starts a judge.
func Open(ctx context.Context, o Options) (*Judge, error) { return nil, errors.ErrUnsupported }

// Evaluate runs code and verifies what it returned.
func (j *Judge) Evaluate(ctx context.Context, p spec.Problem, code string) (Result, error) {
	return Result{}, errors.ErrUnsupported
}

// Close ends the judge.
func (j *Judge) Close() error { return nil }

// DecodeFrame reads a stored Result.Frame.
func DecodeFrame(frame []byte) (value.Value, error) { return nil, errors.ErrUnsupported }

// Layer is one line of a Report.
type Layer struct {
	Name   string `json:"name"`
	Have   bool   `json:"have"`
	Needed bool   `json:"needed"` // by the active tier
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // the one setting that helps
}

// Report says what this machine can wall off.
type Report struct {
	Tier   string  `json:"tier"` // "" when there is none
	Layers []Layer `json:"layers"`
}

// Probe looks at the machine.
func Probe() Report { return Report{} }

// Main must be the first call of main and TestMain.
func Main() {}

// EnvOptions of Environment.
type EnvOptions struct {
	Python   string            // "" looks for one
	Cache    string            // "" is $SKEP_CACHE, else os.UserCacheDir()/skep
	Progress func(line string) // nil: silent
}

// Environment returns the interpreter of the candidates' Python environment, making it when needed.
func Environment(ctx context.Context, o EnvOptions) (python string, err error) {
	return "", errors.ErrUnsupported
}
