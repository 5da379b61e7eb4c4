package judge

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"skep/problems/spec"
	"skep/problems/value"
)

//go:embed selftest.py
var selfTestProgram string

// selfTest runs a program of ours behind the walls: numpy must import there, and what the walls forbid must fail.
func (j *Judge) selfTest(ctx context.Context) error {
	limits := spec.Limits{CPU: time.Minute, Wall: 2 * time.Minute, MemoryBytes: defaultLimits.MemoryBytes}
	result, err := j.run(ctx, job{entry: "probe", source: selfTestProgram, limits: limits})
	if err != nil {
		return err
	}
	open, ok := result.Returned.(value.List)
	if !ok {
		return fmt.Errorf("judge: a trial program does not run behind the walls of tier %s: %s: %s", j.Tier(), result.Outcome, result.Message)
	}
	if len(open) > 0 {
		return fmt.Errorf("judge: the walls of tier %s leak on this machine: %v; no candidate is run", j.Tier(), open)
	}
	return nil
}
