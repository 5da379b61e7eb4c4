package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"

	"skep/engine/judge"
)

// doctorReport is what skep doctor --json prints.
type doctorReport struct {
	Version  string       `json:"version"`
	Platform string       `json:"platform"`
	Cores    int          `json:"cores"`
	Python   string       `json:"python"`  // the candidates' interpreter, "" when there is none yet
	About    string       `json:"about"`   // its version, or why there is none
	Sandbox  judge.Report `json:"sandbox"` // tier "" when no tier works
	Trial    string       `json:"trial"`   // how a trial program ran behind the walls
	OK       bool         `json:"ok"`      // programs can be judged now, or as soon as the environment is made
}

// cmdDoctor says which walls this machine has and which Python candidates get. It makes and changes nothing.
func cmdDoctor(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("doctor", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "one JSON document on stdout")
	python := fs.String("python", "", "look at this Python instead of skep's own")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	report := examine(ctx, *python)
	if err := ctx.Err(); err != nil {
		return err
	}
	if *asJSON {
		return printJSON(io.Out, report)
	}
	report.text(io.Out)
	return nil
}

// examine gathers the report; what does not work is part of it.
func examine(ctx context.Context, python string) doctorReport {
	r := doctorReport{Version: version, Platform: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Sandbox: judge.Probe()}
	if err := r.Sandbox.Missing(); err != nil {
		r.Trial = err.Error()
	}
	path, err := judge.Environment(ctx, judge.EnvOptions{Python: python, Existing: true})
	if err != nil {
		r.About = err.Error()
		r.OK = errors.Is(err, judge.ErrNoEnvironment) && r.Sandbox.Tier != ""
		return r
	}
	r.Python = path
	if r.About, err = judge.About(ctx, path); err != nil {
		r.About = err.Error()
	}
	if r.Sandbox.Tier == "" {
		return r
	}
	j, err := judge.Open(ctx, judge.Options{Python: path})
	if err != nil {
		r.Trial = err.Error()
		return r
	}
	defer j.Close()
	r.Trial, r.OK = "a trial program found every wall closed; "+j.String(), true
	return r
}

func (r doctorReport) text(w io.Writer) {
	fmt.Fprintf(w, "skep %s on %s, %d cores\n", r.Version, r.Platform, r.Cores)
	fmt.Fprintf(w, "python   %s\n", r.Python)
	fmt.Fprintf(w, "         %s\n", r.About)
	fmt.Fprintf(w, "sandbox  tier %s\n", orNone(r.Sandbox.Tier))
	for _, l := range r.Sandbox.Layers {
		fmt.Fprintf(w, "         %s %-16s %s\n", mark(l), l.Name, l.Detail)
		if l.Fix != "" {
			fmt.Fprintf(w, "           %s\n", l.Fix)
		}
	}
	if r.Trial != "" {
		fmt.Fprintf(w, "trial    %s\n", r.Trial)
	}
}

func orNone(tier string) string {
	if tier == "" {
		return "none"
	}
	return tier
}

// mark: there, missing and needed, or missing and not used.
func mark(l judge.Layer) string {
	switch {
	case l.Have:
		return "+"
	case l.Needed:
		return "!"
	default:
		return "-"
	}
}
