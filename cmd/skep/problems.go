package main

import (
	"context"
	"flag"
	"fmt"

	"skep/problems"
)

// cmdProblems lists the problems.
func cmdProblems(_ context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("problems", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "one JSON document on stdout")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	type row struct {
		Name      string         `json:"name"`
		Paper     string         `json:"paper"`
		Title     string         `json:"title"`
		Sense     problems.Sense `json:"sense"`
		Entry     string         `json:"entry"`
		Tolerance float64        `json:"tolerance"`
		Reference float64        `json:"reference"`
	}
	rows := []row{}
	for _, p := range problems.All() {
		i := p.Info()
		rows = append(rows, row{i.Name, i.Paper, i.Title, i.Sense, i.Entry, i.Tolerance, i.Reference})
	}
	if *asJSON {
		return printJSON(io.Out, rows)
	}
	for _, r := range rows {
		fmt.Fprintf(io.Out, "%-22s %-5s %s (%s, AlphaEvolve %.10g)\n", r.Name, r.Paper, r.Title, r.Sense, r.Reference)
	}
	return nil
}
