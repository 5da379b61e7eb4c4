package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"skep/engine"
)

// terminal shows progress as one line that is written over, or, when it is no terminal, a line for every stage and
// every ten seconds. It is an engine.Sink, safe for concurrent use.
type terminal struct {
	mu    sync.Mutex
	out   io.Writer
	live  bool // a line may be written over
	last  time.Time
	stage string
	width int // of the line that stands there
}

func newTerminal(out io.Writer) *terminal {
	f, ok := out.(*os.File)
	live := ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
	return &terminal{out: out, live: live}
}

// Progress shows e.
func (t *terminal) Progress(e engine.Event) {
	final := e.Stage == "commit" || e.Unit == "python" || e.Unit == "model"
	t.line(fmt.Sprint(e.Round, e.Stage, e.Unit), describe(e), final)
}

// line shows a line of words; see Progress for when. Lines of one kind are written over each other.
func (t *terminal) line(kind, words string, final bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := 10 * time.Second
	if t.live {
		pause = 100 * time.Millisecond
	}
	if !final && kind == t.stage && time.Since(t.last) < pause {
		return
	}
	t.stage, t.last = kind, time.Now()
	t.print(words, final)
}

// Write passes on what others write to the terminal, on lines of its own.
func (t *terminal) Write(b []byte) (int, error) {
	t.done()
	return t.out.Write(b)
}

// print writes a line; one that is final, or any line when it cannot be written over, stays.
func (t *terminal) print(s string, final bool) {
	if !t.live {
		fmt.Fprintln(t.out, s)
		return
	}
	if f, ok := t.out.(*os.File); ok && !final {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && len([]rune(s)) >= columns {
			s = string([]rune(s)[:max(0, columns-1)]) // a line that wraps cannot be written over
		}
	}
	pad := strings.Repeat(" ", max(0, t.width-len([]rune(s))))
	end := ""
	if t.width = len([]rune(s)); final {
		end, t.width = "\n", 0
	}
	fmt.Fprint(t.out, "\r"+s+pad+end)
}

// coloured is text with its colours, or without them where no terminal shows them.
func (t *terminal) coloured(text string) string {
	if t.live {
		return text
	}
	return colours.ReplaceAllString(text, "")
}

// colours matches the sequences that colour text.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// done ends a line that would be written over.
func (t *terminal) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live && t.width > 0 {
		fmt.Fprintln(t.out)
		t.width = 0
	}
}

// describe is an event in words.
func describe(e engine.Event) string {
	var b strings.Builder
	if e.Round > 0 {
		fmt.Fprintf(&b, "round %d  ", e.Round)
	}
	b.WriteString(e.Stage)
	if e.Swarm >= 0 {
		fmt.Fprintf(&b, "  swarm %d", e.Swarm)
	}
	if e.Total > 0 && e.Stage != "write" {
		fmt.Fprintf(&b, "  %s %d/%d %s", bar(e.Done, e.Total), e.Done, e.Total, e.Unit)
	}
	switch {
	case e.Text == "":
	case slices.Contains([]string{"ask", "write", "tune"}, e.Stage): // a text under way: its end is what is new
		b.WriteString("  " + tail(e.Text, 60))
	default:
		b.WriteString("  " + strings.Join(strings.Fields(e.Text), " "))
	}
	if e.Took > 0 {
		fmt.Fprintf(&b, "  %.0f s", e.Took.Seconds())
	}
	return b.String()
}

func bar(done, total int) string {
	const cells = 12
	n := min(cells, cells*done/max(1, total))
	return strings.Repeat("█", n) + strings.Repeat("░", cells-n)
}

// tail is the end of a text on one line.
func tail(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return "…" + string(r[len(r)-n:])
	}
	return string(r)
}

// jsonLines writes one JSON line per event. It is an engine.Sink.
type jsonLines struct {
	mu  sync.Mutex
	out io.Writer
}

// Progress writes e.
func (j *jsonLines) Progress(e engine.Event) {
	j.write(struct {
		Event   string  `json:"event"`
		Round   int     `json:"round"`
		Stage   string  `json:"stage"`
		Swarm   int     `json:"swarm"`
		Done    int     `json:"done"`
		Total   int     `json:"total"`
		Unit    string  `json:"unit,omitempty"`
		Text    string  `json:"text,omitempty"`
		Seconds float64 `json:"seconds"`
	}{"progress", e.Round, e.Stage, e.Swarm, e.Done, e.Total, e.Unit, tail(e.Text, 200), e.Took.Seconds()})
}

func (j *jsonLines) write(v any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	b, err := json.Marshal(v)
	if err != nil {
		panic("skep: an event does not encode: " + err.Error()) // plain fields only
	}
	fmt.Fprintf(j.out, "%s\n", b)
}

// both sends events to two sinks.
type both struct{ a, b engine.Sink }

// Progress passes e on.
func (s both) Progress(e engine.Event) {
	s.a.Progress(e)
	s.b.Progress(e)
}

// finite is x for JSON, which has no NaN.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
