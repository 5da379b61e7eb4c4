package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// benchmarks is the table of `skep bench NAME`.
func benchmarks() []command {
	return []command{
		{"lm", "[--model M] [--rounds N] [--llama-bench PATH] [--json]", "tokens per second of a model on this machine, beside llama.cpp's with --llama-bench PATH", benchLM},
		{"writers", "[--model M] [--seeds N] [--rounds N] [--json]", "how often the model writes programs that differ, run and improve, over seeds", benchWriters},
	}
}

// cmdBench runs one benchmark by name.
func cmdBench(ctx context.Context, args []string, io stdio) error {
	all := benchmarks()
	if len(args) > 0 {
		if i := slices.IndexFunc(all, func(b command) bool { return b.name == args[0] }); i >= 0 {
			return all[i].run(ctx, args[1:], io)
		}
	}
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.name
	}
	if _, err := parse(flag.NewFlagSet("bench", flag.ContinueOnError), args, io, 1, -1); errors.Is(err, flag.ErrHelp) {
		for _, b := range all {
			fmt.Fprintf(io.Out, "  skep bench %-8s %s\n", b.name, b.does)
		}
		return err
	}
	if len(args) > 0 {
		return fmt.Errorf("%w: there is no benchmark %q; there are %s", errUsage, args[0], strings.Join(names, ", "))
	}
	return fmt.Errorf("%w: name a benchmark: %s", errUsage, strings.Join(names, ", "))
}

// printJSON writes v indented, as results go to stdout.
func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
