package bind

import (
	"context"
	"fmt"
	"html"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skep/engine"
	"skep/kernel/display"
)

// withProgress lets engine work in a cell report to one display that is updated in place.
func withProgress(ctx context.Context) (context.Context, func()) {
	p := &progress{show: display.Show}
	ctx = engine.WithSink(ctx, p)
	running.Store(&ctx)
	cells.Add(1)
	return ctx, func() {
		cells.Add(-1)
		p.flush()
	}
}

var (
	running atomic.Pointer[context.Context] // of the cell that runs, or ran last
	cells   atomic.Int32                    // how many run: one or none
)

// opened holds the searches that cells opened, as keys.
var opened sync.Map

// openHere is engine.Open as a cell sees it: it takes no context, yet shows progress and ends with the stop button.
func openHere(dir string, o engine.Options) (*engine.Search, error) {
	ctx := context.Background()
	if cell := running.Load(); cell != nil {
		ctx = *cell
	}
	s, err := engine.OpenContext(ctx, dir, o)
	if err == nil {
		opened.Store(s, nil)
	}
	return s, err
}

// Close closes the searches that cells opened, so that run.db is whole without its log. While a cell runs it leaves them
// alone, as the cell reads the model that Close unmaps: nothing is lost then either, the next Open takes up the log.
func Close() {
	if cells.Load() > 0 {
		return
	}
	opened.Range(func(s, _ any) bool {
		_ = s.(*engine.Search).Close() // at the end of the session nobody is left to tell
		return true
	})
}

// Pace and size of the display.
const (
	updateEvery = 150 * time.Millisecond
	shownText   = 600 // bytes of a text under way
)

// progress is an engine.Sink for one cell. It outlives the cell when a job goes on in the background.
type progress struct {
	show func(v any) (display.DisplayID, error)

	mu     sync.Mutex
	stages []*stage
	id     display.DisplayID // "": not shown yet
	at     time.Time         // of the last update
	timer  *time.Timer       // an update is due
}

// stage is the last event of each part of one stage of one round.
type stage struct {
	round int
	name  string
	parts map[int]engine.Event // by swarm, -1: the whole
	order []int
}

// Progress takes e and shows it within updateEvery.
func (p *progress) Progress(e engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stage(e)
	if _, known := s.parts[e.Swarm]; !known {
		s.order = append(s.order, e.Swarm)
	}
	s.parts[e.Swarm] = e
	switch wait := updateEvery - time.Since(p.at); {
	case wait <= 0:
		p.update()
	case p.timer == nil:
		p.timer = time.AfterFunc(wait, p.flush)
	}
}

func (p *progress) stage(e engine.Event) *stage {
	for i := len(p.stages) - 1; i >= 0; i-- {
		if s := p.stages[i]; s.round == e.Round && s.name == e.Stage {
			return s
		}
	}
	s := &stage{round: e.Round, name: e.Stage, parts: map[int]engine.Event{}}
	p.stages = append(p.stages, s)
	return s
}

// flush shows the latest state if it is not on the page yet.
func (p *progress) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.update()
	}
}

func (p *progress) update() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.at = time.Now()
	d := display.MakeData3(display.MIMETypeHTML, p.text(), p.html())
	if p.id == "" {
		p.id, _ = p.show(d) // without a notebook there is nobody to tell
		return
	}
	_ = p.id.Update(d)
}

// title names a stage, with its round.
func (s *stage) title() string {
	if s.round == 0 {
		return s.name
	}
	return fmt.Sprintf("round %d · %s", s.round, s.name)
}

func (p *progress) text() string {
	var b strings.Builder
	for _, s := range p.recent() {
		for _, i := range s.order {
			fmt.Fprintf(&b, "%s%s: %s\n", s.title(), swarmName(i), counts(s.parts[i]))
		}
	}
	return b.String()
}

// recent leaves out what is long over: a search of many rounds keeps a short display.
func (p *progress) recent() []*stage { return p.stages[max(0, len(p.stages)-8):] }

func swarmName(i int) string {
	if i < 0 {
		return ""
	}
	return fmt.Sprintf(" · swarm %d", i)
}

func counts(e engine.Event) string {
	text := fmt.Sprintf("%.1f s", e.Took.Seconds())
	switch {
	case e.Total > 0:
		text = fmt.Sprintf("%d of %d %s, %s", e.Done, e.Total, e.Unit, text)
	case e.Unit != "":
		text = fmt.Sprintf("%d %s, %s", e.Done, e.Unit, text)
	}
	if e.Text != "" && !strings.Contains(e.Text, "\n") && len(e.Text) < 80 {
		text += ", " + e.Text
	}
	return text
}

func (p *progress) html() string {
	var b strings.Builder
	b.WriteString(`<div style="font-size:90%;line-height:1.5">`)
	for _, s := range p.recent() {
		for _, i := range s.order {
			e := s.parts[i]
			share := 100.0
			if e.Total > 0 {
				share = 100 * float64(min(e.Done, e.Total)) / float64(e.Total)
			}
			fmt.Fprintf(&b, `<div><span style="display:inline-block;width:18em">%s%s</span>`+
				`<span style="display:inline-block;width:12em;height:.7em;background:#e6e6e6;border-radius:3px;vertical-align:middle">`+
				`<span style="display:block;width:%.1f%%;height:100%%;background:#e8b04a;border-radius:3px"></span></span> %s</div>`,
				html.EscapeString(s.title()), swarmName(i), share, html.EscapeString(counts(e)))
			if strings.Contains(e.Text, "\n") || len(e.Text) >= 80 {
				fmt.Fprintf(&b, `<pre style="margin:0 0 0 2em;font-size:85%%;opacity:.8;white-space:pre-wrap">%s</pre>`, html.EscapeString(ending(e.Text)))
			}
		}
	}
	b.WriteString("</div>")
	return b.String()
}

// ending is the last part of a text that grows, from the beginning of a line.
func ending(s string) string {
	if len(s) <= shownText {
		return s
	}
	s = s[len(s)-shownText:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		s = rest
	}
	return "…\n" + strings.ToValidUTF8(s, "")
}

var _ engine.Sink = (*progress)(nil)
