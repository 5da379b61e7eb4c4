package engine

import (
	"fmt"
	"html"
	"math/rand/v2"
	"strings"
	"testing"

	"skep/problems"
)

// applied is what a diff makes of its first text, which checks it without a second algorithm for the shortest one.
func applied(edits []edit) (from, to []string) {
	for _, e := range edits {
		if e.op != '+' {
			from = append(from, e.line)
		}
		if e.op != '-' {
			to = append(to, e.line)
		}
	}
	return from, to
}

func TestDiffHoldsBothTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			fmt.Fprintf(&b, "%d\n", r.IntN(4))
		}
		return strings.TrimSpace(b.String())
	}
	for range 300 {
		a, b := text(), text()
		from, to := applied(diffLines(a, b))
		if strings.Join(from, "\n") != a || strings.Join(to, "\n") != b {
			t.Fatalf("%q to %q: the diff holds %q and %q", a, b, from, to)
		}
	}
}

// TestDiffOfLongTexts: the table is bounded, whatever the texts.
func TestDiffOfLongTexts(t *testing.T) {
	var a, b strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&a, "a%d\n", i)
		fmt.Fprintf(&b, "b%d\n", i)
	}
	if added, removed := diffStat(diffLines(a.String(), b.String())); added != 30_000 || removed != 30_000 {
		t.Errorf("%d lines added, %d removed", added, removed)
	}
	same := strings.Repeat("x\n", 30_000)
	if added, removed := diffStat(diffLines(same+"y\n"+same, same+"z\n"+same)); added != 1 || removed != 1 {
		t.Errorf("one changed line of many: %d added, %d removed", added, removed)
	}
}

// TestHTMLIsEscaped puts marked-up text everywhere a model, a program or a user can, and finds none of it in the HTML.
func TestHTMLIsEscaped(t *testing.T) {
	const evil = `<script>alert("x")</script>&`
	num := small
	num.NewTokens = 200
	f := begin(t, t.TempDir(), Options{Numbers: num}, func(n int) string {
		if n < 4 {
			return evil + "\n```python\nVALUE = " + fmt.Sprint(n+2) + "\n# " + evil + "\ndef run():\n    return VALUE\n```\n"
		}
		return "1: 4.5 " + evil + "\n"
	})
	r := must[*Round](t)(f.Next(t.Context()))
	for _, sw := range r.swarms {
		noError(t, sw.SetFocus(evil))
	}
	noError(t, r.Run(t.Context()))
	p := *f.Best()
	p.Logs, p.Message, p.Outcome = evil, evil, problems.Exception
	sw := r.swarms[2]
	for _, v := range []interface{ SimpleRender() map[string]any }{f, r, sw, sw.agents[0], sw.Summary(), &p, &Answer{evil, evil}, &Thoughts{Agent: evil, Steps: []Thought{{Words: []string{evil}, Probs: []float64{1}}}}, f.Assumptions()} {
		shown := v.SimpleRender()
		page, _ := shown["text/html"].(string)
		if strings.Contains(page, "<script") || page == "" {
			t.Errorf("%T: %s", v, page)
		}
		if _, isSwarm := v.(*Swarm); isSwarm && !strings.Contains(page, html.EscapeString(evil[:8])) {
			t.Errorf("%T does not show its focus", v)
		}
	}
}
