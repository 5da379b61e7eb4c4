// Package problems holds the search problems, one folder each, and the table of them. A problem states itself,
// gives an initial program, and turns the plain numbers that a candidate returned into a verdict and a
// picture. It deliberately knows no language model, no sandbox and no archive.
//
// All and Get are the table. The types stand in package spec, which the problem folders import; they have the same
// names here.
package problems

import "skep/problems/spec"

// What a problem is and what its verifier answers; the comments are in package spec.
type (
	Problem = spec.Problem
	Loader  = spec.Loader
	Info    = spec.Info
	Sense   = spec.Sense
	Limits  = spec.Limits
	Outcome = spec.Outcome
	Verdict = spec.Verdict
	Numbers = spec.Numbers
	Margin  = spec.Margin
)

// Which values are better.
const (
	Maximize = spec.Maximize
	Minimize = spec.Minimize
)

// How a run can end: the closed set of spec.Outcomes.
const (
	OK               = spec.OK
	Infeasible       = spec.Infeasible
	Duplicate        = spec.Duplicate
	Suspicious       = spec.Suspicious
	NoResult         = spec.NoResult
	BadResult        = spec.BadResult
	Exception        = spec.Exception
	SyntaxError      = spec.SyntaxError
	Crash            = spec.Crash
	TimeoutWall      = spec.TimeoutWall
	TimeoutCPU       = spec.TimeoutCPU
	OutOfMemory      = spec.OutOfMemory
	OutputLimit      = spec.OutputLimit
	ResultLimit      = spec.ResultLimit
	ForbiddenSyscall = spec.ForbiddenSyscall
	InfraError       = spec.InfraError
)
