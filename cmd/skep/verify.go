package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"skep/engine/judge"
	"skep/problems"
	"skep/problems/value"
)

// maxNumbersBytes caps a file of numbers; the largest published construction has 2 MB.
const maxNumbersBytes = 64 << 20

// cmdVerify applies a problem's verifier to numbers alone: nothing is run.
func cmdVerify(_ context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "one JSON document on stdout")
	rest, err := parse(fs, args, io, 2, 2)
	if err != nil {
		return err
	}
	problem, err := problems.Get(rest[0])
	if err != nil {
		return err
	}
	returned, err := readNumbers(problem, rest[1])
	if err != nil {
		return err
	}
	start := time.Now()
	verdict := problem.Verify(returned)
	report := newEvalReport(verdict, time.Since(start).Seconds(), "")
	if *asJSON {
		return printJSON(io.Out, report)
	}
	report.text(io.Out, problem.Info().Name)
	return nil
}

// readNumbers reads {"returns": […]}, the entry function's return values in order, or a published construction with its
// numbers under "data" in the problem's own layout.
func readNumbers(problem problems.Problem, path string) (value.Value, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxNumbersBytes {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), maxNumbersBytes)
	}
	text, err := readInput(path, 256<<20)
	if err != nil {
		return nil, err
	}
	v, err := judge.DecodeJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file, _ := v.(value.Dict)
	name := problem.Info().Name
	if of, ok := file["problem"].(value.String); ok && string(of) != name {
		return nil, fmt.Errorf("%s holds numbers for %q, not for %q", path, string(of), name)
	}
	if returns, ok := file["returns"].(value.List); ok {
		return value.Tuple(returns), nil
	}
	loader, ok := problem.(problems.Loader)
	data, there := file["data"]
	if !ok || !there {
		return nil, fmt.Errorf(`%s has neither "returns", a list of what %s returns, nor "data" in the layout of %s`, path, problem.Info().Entry, name)
	}
	returned, err := loader.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return returned, nil
}
