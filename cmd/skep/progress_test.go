package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"skep/engine"
)

// TestTerminalLive: lines of one kind are written over each other, and what is left of a longer one is wiped out.
func TestTerminalLive(t *testing.T) {
	var out bytes.Buffer
	shown := &terminal{out: &out, live: true}
	shown.line("a", "a long line", false)
	shown.line("a", "too soon", false) // within 100 ms
	shown.last = time.Now().Add(-time.Second)
	shown.line("a", "short", false)
	shown.line("b", "final", true)
	shown.line("c", "open", false)
	shown.done()
	shown.done()
	if want := "\ra long line\rshort      \rfinal\n\ropen\n"; out.String() != want {
		t.Errorf("written %q, want %q", out.String(), want)
	}
}

// TestTerminalLog: where lines cannot be written over there is one for each kind at first, then every ten seconds, no
// carriage return and no colour.
func TestTerminalLog(t *testing.T) {
	var out bytes.Buffer
	shown := newTerminal(&out)
	for range 3 {
		shown.line("a", "one", false)
	}
	shown.last = time.Now().Add(-11 * time.Second)
	shown.line("a", "two", false)
	shown.line("a", "three", true)
	shown.done()
	if want := "one\ntwo\nthree\n"; out.String() != want {
		t.Errorf("written %q, want %q", out.String(), want)
	}
	if got := shown.coloured("\x1b[1;31merror\x1b[0m: [0m]"); got != "error: [0m]" {
		t.Errorf("without colours: %q", got)
	}
}

func TestDescribe(t *testing.T) {
	for want, e := range map[string]engine.Event{
		"round 2  reason  swarm 1  ██████░░░░░░ 4/8 steps  3 s": {Round: 2, Stage: "reason", Swarm: 1, Done: 4, Total: 8, Unit: "steps", Took: 3 * time.Second},
		"open  a text": {Stage: "open", Swarm: -1, Text: "a\n text"},
		"commit  ░░░░░░░░░░░░ 0/1 rounds": {Stage: "commit", Swarm: -1, Total: 1, Unit: "rounds"},
	} {
		if got := describe(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
	long := strings.Repeat("word ", 30)
	if got := describe(engine.Event{Stage: "open", Swarm: -1, Unit: "python", Text: long}); got != "open  "+strings.TrimSpace(long) {
		t.Errorf("a message is cut: %q", got)
	}
	if got := describe(engine.Event{Stage: "write", Unit: "characters", Text: long + "end"}); !strings.HasSuffix(got, "word end") || len(got) > 100 {
		t.Errorf("a text under way shows %q", got)
	}
	if got := tail(strings.Repeat("ä", 50), 10); utf8.RuneCountInString(got) != 11 || !strings.HasSuffix(got, "ää") {
		t.Errorf("tail: %q", got)
	}
	if got := bar(30, 20); strings.Contains(got, "░") {
		t.Errorf("more than all: %q", got)
	}
}
