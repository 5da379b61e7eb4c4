package engine

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// Objects show themselves as a MIME bundle with text/plain and text/html. The HTML takes its colours from the page
// (currentColor, translucent fills), so that it reads on light, dark and paper.

// bundle is what SimpleRender returns.
func bundle(text, html string) map[string]any {
	return map[string]any{"text/plain": strings.TrimRight(text, "\n"), "text/html": html}
}

// table collects rows for both forms.
type table struct {
	caption string
	head    []string
	rows    [][]string
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

func (t *table) text() string {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	if t.caption != "" {
		b.WriteString(t.caption + "\n")
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			b.WriteString(c + strings.Repeat(" ", width[i]-len([]rune(c))+2))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (t *table) html() string {
	var b strings.Builder
	if t.caption != "" {
		b.WriteString("<p><b>" + html.EscapeString(t.caption) + "</b></p>")
	}
	b.WriteString("<table><thead><tr>")
	for _, c := range t.head {
		b.WriteString("<th style='text-align:left'>" + html.EscapeString(c) + "</th>")
	}
	b.WriteString("</tr></thead><tbody>")
	for _, row := range t.rows {
		b.WriteString("<tr>")
		for _, c := range row {
			b.WriteString("<td style='text-align:left;white-space:pre-wrap'>" + html.EscapeString(c) + "</td>")
		}
		b.WriteString("</tr>")
	}
	b.WriteString("</tbody></table>")
	return b.String()
}

// folded is a part that opens on a click.
func folded(title, body string) string {
	return "<details><summary>" + html.EscapeString(title) + "</summary>" + body + "</details>"
}

func pre(text string) string {
	return "<pre style='white-space:pre-wrap'>" + html.EscapeString(text) + "</pre>"
}

// Standing says in one line how the search stands.
func (s *Search) Standing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing()
}

func (s *Search) standing() string {
	b := s.branches["main"]
	if b == nil || b.archive.best() == nil {
		return "no program counts yet"
	}
	best := b.archive.best()
	return fmt.Sprintf("%d rounds, %d programs, best value %.7g (score %.5f, %s)", len(b.rounds), len(b.archive), best.Value, best.Score, best.Kind)
}

// SimpleRender shows a summary card.
func (s *Search) SimpleRender() map[string]any {
	info := s.problem.Info()
	t := table{caption: fmt.Sprintf("%s (%s, %s)", info.Title, info.Name, info.Paper), head: []string{"", ""}}
	t.add("best so far", s.Standing())
	t.add("model", fmt.Sprintf("%s on %s, profile %s", s.opts.Model, s.opts.Backend, s.opts.Profile))
	if s.opts.Profile != "paper" {
		t.add("", "this small profile is no evidence about the paper")
	}
	if s.model.Config.Tied {
		t.add("alignment", "embeddings are tied: W_a of Eq. 2 is the identity up to ρ and is skipped")
	}
	t.add("seed", s.opts.Seed)
	t.add("folder", s.dir)
	s.mu.Lock()
	if s.busy != "" {
		t.add("at work", s.busy)
	}
	s.mu.Unlock()
	return bundle(t.text(), t.html())
}

// SimpleRender shows the swarms with kind, focus, parents, stage and the size of their views.
func (r *Round) SimpleRender() map[string]any {
	r.search.mu.Lock()
	defer r.search.mu.Unlock()
	t := table{head: []string{"swarm", "kind", "focus", "parents", "agents", "longest view", "stage", "result"}}
	t.caption = fmt.Sprintf("Round %d of branch %s: %s", r.n, r.branch, r.stage())
	for _, sw := range r.swarms {
		t.add(sw.index, sw.kind, sw.focus, sw.parentNames(), fmt.Sprintf("%d, keep %d", len(sw.agents), min(r.search.opts.Keep, len(sw.agents))),
			fmt.Sprintf("%d of %d", sw.longest+r.newTokens, r.search.model.Config.Context), sw.status(), sw.result())
	}
	for _, e := range r.tunes {
		if e.Program != nil {
			t.add("", Tuner, e.describe(), fmt.Sprint(e.Target.ID), "", "", "", e.Program.verdict())
		}
	}
	return bundle(t.text(), t.html()+folded("time per stage", timingTable(r.timings).html()))
}

func timingTable(timings []Timing) *table {
	t := &table{head: []string{"stage", "swarm", "seconds"}}
	for _, x := range timings {
		swarm := "all"
		if x.Swarm >= 0 {
			swarm = fmt.Sprint(x.Swarm)
		}
		t.add(x.Stage, swarm, fmt.Sprintf("%.2f", x.Took.Seconds()))
	}
	return t
}

func (sw *Swarm) parentNames() string {
	var ids []string
	for _, p := range sw.parents {
		ids = append(ids, fmt.Sprint(p.ID))
	}
	if sw.kind == Explore {
		ids = append(ids, "none")
	}
	return strings.Join(ids, ", ")
}

func (sw *Swarm) status() string {
	if sw.stale {
		return sw.stage.String() + " (stale)"
	}
	return sw.stage.String()
}

func (sw *Swarm) result() string {
	var list []string
	for _, sum := range sw.summaries {
		switch {
		case sum.Program != nil:
			list = append(list, sum.Program.verdict())
		case sum.Code == "":
			list = append(list, "no program in the reply")
		default:
			list = append(list, "not judged")
		}
	}
	return strings.Join(list, "; ")
}

// verdict is a program in a few words.
func (p *Program) verdict() string {
	if p.Ranked() {
		return fmt.Sprintf("program %d: %.7g", p.ID, p.Value)
	}
	return fmt.Sprintf("program %d: %s", p.ID, p.Outcome)
}

// SimpleRender shows the agents with the parent × phrasing × way design.
func (sw *Swarm) SimpleRender() map[string]any {
	s := sw.round.search
	s.mu.Lock()
	defer s.mu.Unlock()
	t := table{head: []string{"agent", "parent", "prompt", "kept", "Eq. 5 margin"}}
	t.caption = fmt.Sprintf("Swarm %d of round %d: %s, %q, parents %s, %s", sw.index, sw.round.n, sw.kind, sw.focus, sw.parentNames(), sw.status())
	for _, a := range sw.agents {
		kept, margin := "", ""
		if a.isKept() {
			kept, margin = "kept", fmt.Sprintf("%.4f", a.margin)
		} else if a.dropped {
			kept = "dropped by hand"
		}
		t.add(a.index, a.group("parent"), strings.TrimSpace(strings.TrimPrefix(a.words(), "# Note\n")), kept, margin)
	}
	if sw.kept == nil {
		return bundle(t.text(), t.html())
	}
	return bundle(t.text(), t.html()+sw.viewHTML())
}

// viewHTML lists Eq. 6's blocks.
func (sw *Swarm) viewHTML() string {
	if sw.view == nil {
		return ""
	}
	t := table{head: []string{"block", "tokens", "computed at", "seen at", "shift"}}
	for _, p := range sw.view {
		what := p.What
		switch {
		case p.What == "agent":
			what = fmt.Sprintf("agent %d", p.Agent)
		case p.What == "parent":
			what = fmt.Sprintf("program %d", p.Program)
		}
		if p.Dropped {
			what += " (dropped: a hole)"
		}
		t.add(what, p.Tokens, p.From, p.To, p.To-p.From)
	}
	return folded("the summarizer's view (Eq. 6)", t.html())
}

// SimpleRender shows who the agent is and what it reads.
func (a *Agent) SimpleRender() map[string]any {
	s := a.swarm.round.search
	s.mu.Lock()
	defer s.mu.Unlock()
	t := table{caption: fmt.Sprintf("Agent %d of swarm %d (%s)", a.index, a.swarm.index, a.swarm.kind), head: []string{"", ""}}
	t.add("reads", a.group("parent"))
	t.add("prompt", strings.TrimSpace(a.words()))
	t.add("latent steps", len(a.trajectory))
	if a.trajectory != nil {
		t.add("kept", a.isKept())
	}
	return bundle(t.text(), t.html())
}

// SimpleRender shows the likeliest tokens at each latent step.
func (t *Thoughts) SimpleRender() map[string]any {
	tab := table{caption: "Logit lens: " + t.Agent, head: []string{"step", "would say", "‖h‖", "moved"}}
	for _, s := range t.Steps {
		var words []string
		for i, w := range s.Words {
			words = append(words, fmt.Sprintf("%q %.2f", w, s.Probs[i]))
		}
		moved := ""
		if !math.IsNaN(s.Moved) {
			moved = fmt.Sprintf("%.4f", s.Moved)
		}
		tab.add(s.Step, strings.Join(words, "  "), fmt.Sprintf("%.1f", s.Norm), moved)
	}
	return bundle(tab.text(), tab.html())
}

// String is the answer.
func (a *Answer) String() string { return a.Text }

// SimpleRender shows question and answer.
func (a *Answer) SimpleRender() map[string]any {
	return bundle(a.Text, "<p><i>"+html.EscapeString(a.Question)+"</i></p><blockquote>"+html.EscapeString(a.Text)+"</blockquote>")
}

// SimpleRender shows the text and what it became.
func (s *Summary) SimpleRender() map[string]any {
	speed := fmt.Sprintf("%d tokens in %s (%.1f tokens/s, %d of %d drafts accepted), ended by %s", s.Tokens, s.Took.Round(10*time.Millisecond),
		float64(s.Tokens)/max(s.Took.Seconds(), 1e-9), s.Accepted, s.Drafted, s.Reason)
	change := "the reply holds no program"
	if s.Code != "" {
		if change = diffText(diffLines(s.parent.Code, s.Code)); change == "" {
			change = fmt.Sprintf("the same as program %d", s.parent.ID)
		}
	}
	text := s.Description + "\n\n" + change + "\n" + speed
	body := "<p>" + html.EscapeString(s.Description) + "</p>" + diffHTML(change) + "<p>" + html.EscapeString(speed) + "</p>" + folded("the reply", pre(s.Text))
	return bundle(text, body)
}

// diffHTML colours a diff made by diffText.
func diffHTML(diff string) string {
	var b strings.Builder
	b.WriteString("<pre style='line-height:1.3'>")
	for line := range strings.Lines(diff) {
		style := ""
		switch line[0] {
		case '+':
			style = "background:rgba(46,160,67,.18)"
		case '-':
			style = "background:rgba(248,81,73,.18)"
		}
		b.WriteString("<span style='display:block;" + style + "'>" + html.EscapeString(strings.TrimRight(line, "\n")) + "</span>")
	}
	b.WriteString("</pre>")
	return b.String()
}

// facts lists what is known of a program.
func (p *Program) facts() *table {
	t := &table{caption: fmt.Sprintf("Program %d (%s, round %d)", p.ID, p.Kind, p.Round), head: []string{"", ""}}
	t.add("outcome", p.Outcome)
	if !math.IsNaN(p.Value) {
		t.add("value", fmt.Sprintf("%.16g", p.Value))
	}
	if p.Ranked() {
		t.add("score", fmt.Sprintf("%.10g = search score, which ranks", p.Score))
	}
	t.add("strict", strictly(p.Strict))
	if p.Repeats > 0 {
		t.add("reproduced", fmt.Sprintf("%d of %d", p.Reproduced, p.Repeats))
	}
	if p.Message != "" {
		t.add("message", p.Message)
	}
	t.add("parents", fmt.Sprint(p.Parents))
	t.add("description", p.Description)
	t.add("judged", fmt.Sprintf("%.2f s in tier %s", p.Seconds, p.Tier))
	return t
}

func strictly(strict *bool) string {
	switch {
	case strict == nil:
		return "unknown"
	case *strict:
		return "feasible at tolerance 0, proved in exact arithmetic"
	default:
		return "not feasible at tolerance 0"
	}
}

// Diff is the change against the first parent, "" when there is none.
func (p *Program) Diff() string {
	if p.parent == nil {
		return ""
	}
	return diffText(diffLines(p.parent.Code, p.Code))
}

// SimpleRender shows code, diff to the parent, picture, value and verdicts.
func (p *Program) SimpleRender() map[string]any {
	t := p.facts()
	body := t.html()
	if p.returned != nil {
		body += p.problem.Picture(p.returned).Embed()
	}
	if diff := p.Diff(); diff != "" {
		body += folded(fmt.Sprintf("change against program %d", p.parent.ID), diffHTML(diff))
	}
	body += folded("code", pre(p.Code))
	if p.Logs != "" {
		body += folded("output", pre(p.Logs))
	}
	return bundle(t.text()+"\n"+p.Diff()+"\n"+p.Code, body)
}
