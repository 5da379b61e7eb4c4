package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"skep/cmd/skep/page"
	"skep/engine"
	"skep/engine/store"
	"skep/problems"
)

//go:embed report.gohtml
var reportSource string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"number": number, "verdict": verdict, "short": short,
}).Parse(reportSource))

// reportBody is the page's content.
func reportBody(run storedRun, pictures []picture) (template.HTML, error) {
	figures := map[string]template.HTML{}
	for _, p := range pictures {
		figures[p.name] = template.HTML(p.figure.Inline())
	}
	gains := gainOf(run.Trace())
	data := map[string]any{
		"Programs": len(run.programs), "Rounds": len(run.rounds), "Title": run.title(), "Meta": run.meta, "Figures": figures, "Rows": run.rows(), "Outcomes": run.outcomes(),
		"Gain": gains, "Before": gains.before, "After": gains.after, "Best": run.best, "Facts": run.bestFacts(), "Others": run.others,
		"Seconds": run.seconds(), "Options": indented(run.meta.Options), "Assumptions": indented(run.meta.Assumptions), "Created": run.meta.Created.UTC().Format("2006-01-02 15:04 UTC"),
	}
	if run.best != nil {
		data["Code"] = page.Highlight(run.best.Code, "python")
	}
	if run.parent != nil {
		data["Parent"], data["Diff"] = run.parent.ID, diffHTML(engine.Diff(run.parent.Code, run.best.Code))
	}
	var out strings.Builder
	if err := reportTemplate.Execute(&out, data); err != nil {
		return "", fmt.Errorf("render the report: %w", err)
	}
	return template.HTML(out.String()), nil
}

// indented is a JSON document, readable.
func indented(doc json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, doc, "", "  ") != nil {
		return string(doc)
	}
	return out.String()
}

// diffHTML colours the lines of a diff by their first character.
func diffHTML(diff string) template.HTML {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		class := "same"
		switch line[0] {
		case '+':
			class = "add"
		case '-':
			class = "del"
		}
		fmt.Fprintf(&out, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(strings.TrimSuffix(line, "\n")))
	}
	return template.HTML(out.String())
}

// reportRow is one swarm, or the tuner's edits, of one round.
type reportRow struct {
	Round                                 int
	Stage, Source, Focus, Parents, Agents string
	Text, Program, Outcome                string
	Score                                 float64 // NaN: none
}

// rows tells each round swarm by swarm, the tuner's edits last.
func (run storedRun) rows() (rows []reportRow) {
	for _, r := range run.rounds {
		for i, s := range r.Swarms {
			row := reportRow{Round: r.N, Stage: string(s.Stage), Source: s.Kind, Focus: s.Focus, Parents: ids(s.Parents), Score: math.NaN()}
			row.Agents = fmt.Sprint(len(s.Agents))
			if s.Kept != nil {
				row.Agents = fmt.Sprintf("%d of %d", len(s.Kept), len(s.Agents))
			}
			for _, text := range s.Summaries {
				row.Text = fmt.Sprintf("%d tokens, %s", text.Tokens, text.Reason)
			}
			written := run.where(r, func(p store.Program) bool { return p.Swarm == i })
			rows = append(rows, row.with(written))
		}
		if edits := run.where(r, func(p store.Program) bool { return p.Kind == "tuner" }); len(edits) > 0 {
			row := reportRow{Round: r.N, Stage: string(r.Stage), Source: "tuner", Parents: ids(edits[0].Parents), Score: math.NaN(),
				Focus: fmt.Sprintf("one-number edits: %d", len(edits))}
			rows = append(rows, row.with(edits))
		}
	}
	return rows
}

// where lists the programs of a round that pass.
func (run storedRun) where(r store.Round, pass func(store.Program) bool) (found []store.Program) {
	for _, p := range run.programs {
		if p.Round == r.N && p.Branch == r.Branch && pass(p) {
			found = append(found, p)
		}
	}
	return found
}

// with adds what became of the programs of a row: the outcomes, and the best score.
func (row reportRow) with(written []store.Program) reportRow {
	var id []int64
	count := map[string]int{}
	for _, p := range written {
		id = append(id, p.ID)
		count[string(outcomeOf(p))]++
		if score := scoreOf(p); !math.IsNaN(score) && !(score <= row.Score) {
			row.Score = score
		}
	}
	row.Program = ids(id)
	row.Outcome = counts(count)
	return row
}

// counts writes a tally, ok first: "ok" for one program, "ok 3, exception 2" for more.
func counts(count map[string]int) string {
	names := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(names, func(a, b string) int {
		switch string(problems.OK) {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	var parts []string
	for _, outcome := range names {
		name := cmp.Or(outcome, "not evaluated")
		if len(count) > 1 || count[outcome] > 1 {
			name += fmt.Sprintf(" %d", count[outcome])
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, ", ")
}

// outcomes tallies all programs.
func (run storedRun) outcomes() string {
	count := map[string]int{}
	for _, p := range run.programs {
		count[string(outcomeOf(p))]++
	}
	return counts(count)
}

func ids(list []int64) string {
	var parts []string
	for _, id := range list {
		parts = append(parts, fmt.Sprintf("#%d", id))
	}
	return strings.Join(parts, " ")
}

// fact is a line of a table of two columns.
type fact struct{ Name, Value string }

// bestFacts are the judge's numbers of the best program, each with its rule.
func (run storedRun) bestFacts() []fact {
	if run.best == nil {
		return nil
	}
	b, e := run.best, run.best.Evaluations[0]
	facts := []fact{
		{"program", fmt.Sprintf("#%d, %s, round %d, parents %s", b.ID, b.Kind, b.Round, orDash(ids(b.Parents)))},
		{"value", number(e.Value)},
		{"search score (ranks)", number(e.Numbers.SearchScore)},
		{"Table 1 score (the paper's rule)", number(e.Numbers.Table1Score)},
		{"Table S5 value (exact constraints)", number(e.Numbers.TableS5Value)},
		{"strict value (proved at tolerance 0)", number(e.Numbers.StrictValue)},
		{"strictly feasible", verdict(e.Strict)},
		{"reproduced", run.reproduced()},
		{"judged", fmt.Sprintf("in %.3g s, sandbox tier %s", e.Wall.Seconds(), orDash(e.Tier))},
	}
	for _, m := range e.Margins {
		facts = append(facts, fact{"margin of " + m.Family, fmt.Sprintf("%.3g at %s", m.Slack, m.At)})
	}
	return facts
}

// reproduced counts the later evaluations of the best program that gave the same value.
func (run storedRun) reproduced() string {
	again := run.best.Evaluations[1:]
	if len(again) == 0 {
		return "not run again"
	}
	same := 0
	for _, e := range again {
		if first := run.best.Evaluations[0].Value; e.Value != nil && first != nil && *e.Value == *first {
			same++
		}
	}
	return fmt.Sprintf("%d of %d", same, len(again))
}

// seconds is the time between the start of the run and its last program.
func (run storedRun) seconds() string {
	if len(run.programs) == 0 {
		return "0 s"
	}
	last := slices.MaxFunc(run.programs, func(a, b store.Program) int { return a.Created.Compare(b.Created) })
	return last.Created.Sub(run.meta.Created).Round(time.Second).String()
}

func number(v any) string {
	switch v := v.(type) {
	case *float64:
		if v != nil {
			return fmt.Sprintf("%.10g", *v)
		}
	case float64:
		if !math.IsNaN(v) {
			return fmt.Sprintf("%.6g", v)
		}
	}
	return "–"
}

func verdict(strict *bool) string {
	switch {
	case strict == nil:
		return "unknown"
	case *strict:
		return "yes"
	}
	return "no"
}

func short(hash string) string { return hash[:min(12, len(hash))] }

func orDash(s string) string { return cmp.Or(s, "–") }
