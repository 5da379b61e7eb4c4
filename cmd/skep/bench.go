package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// benchmark is one thing that skep measures of itself. Its run parses its own flags.
type benchmark struct {
	name  string
	usage string
	run   func(ctx context.Context, args []string, io stdio) error
}

// benchmarks is the table of `skep bench NAME`.
func benchmarks() []benchmark {
	return []benchmark{
		{"lm", "tokens per second of a model on this machine, beside llama.cpp's with --llama-bench PATH", benchLM},
		{"writers", "how often the model writes programs that differ, run and improve, over seeds", benchWriters},
	}
}

// cmdBench runs one benchmark by name.
func cmdBench(ctx context.Context, args []string, io stdio) error {
	all := benchmarks()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(b benchmark) bool { return b.name == args[0] }); i >= 0 {
			return all[i].run(ctx, args[1:], io)
		}
	}
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
		fmt.Fprintf(io.Err, "  skep bench %-8s %s\n", b.name, b.usage)
	}
	return fmt.Errorf("%w: name a benchmark first: %s", errUsage, strings.Join(names, ", "))
}

// printJSON writes v indented, as results go to stdout.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
