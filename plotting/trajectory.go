package plotting

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Traced is a search that can tell its history: an engine's Search, or a run read from disk.
type Traced interface {
	// Trace returns one point for each program, in any order.
	Trace() []Point
}

// Point is one program of a search.
type Point struct {
	Program int     // its number, the first is 1
	Seconds float64 // since the search began
	Round   int
	Source  string  // where it came from: initial, refine, hybridize, explore, fresh or tuner
	Outcome string  // "ok" when it counts
	Score   float64 // NaN when it has none: then it's drawn as a failure
	Best    float64 // best score so far, this program's included; NaN before the first
}

// TrajectoryOptions says how a trajectory is drawn. The zero value is the default.
type TrajectoryOptions struct {
	Axis string // "programs" (also "") or "minutes"
}

type source struct {
	name  string
	color color.NRGBA
	mark  mark
}

// sources are the sources of programs in the order of the key, each with its colour and mark.
var sources = []source{
	{"initial", ink, diamond},
	{"refine", palette[0], circle},
	{"hybridize", palette[1], square},
	{"explore", palette[2], triangle},
	{"fresh", palette[3], diamond},
	{"tuner", palette[4], circle},
}

// Trajectory draws the score of every program of t by its source over the number of programs, the best score so far
// as a line of steps, and programs without a score as ticks at the lower edge.
func Trajectory(t Traced) *Figure { return TrajectoryBy(t, TrajectoryOptions{}) }

// TrajectoryBy is Trajectory with options. An axis that it doesn't know is drawn as "programs", and the caption says so.
func TrajectoryBy(t Traced, o TrajectoryOptions) *Figure {
	points := slices.Clone(t.Trace())
	along := func(p Point) float64 { return float64(p.Program) }
	axis, note := "programs", ""
	switch o.Axis {
	case "", "programs":
	case "minutes":
		axis, along = o.Axis, func(p Point) float64 { return p.Seconds / 60 }
	default:
		note = fmt.Sprintf(" There is no axis %q; the axes are programs and minutes.", o.Axis)
	}
	points = slices.DeleteFunc(points, func(p Point) bool { return !isFinite(along(p)) })
	slices.SortStableFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(along(a), along(b)), cmp.Compare(a.Program, b.Program))
	})

	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = axis, "score"
	p.X.Tick.Marker = Ticks{Whole: axis == "programs"}
	const title, width, height = "Best score so far", 6 * vg.Inch, 3.4 * vg.Inch
	if len(points) == 0 {
		p.Add(message("no programs yet"))
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
		return New(p, width, height, title, strings.TrimSpace("The search has evaluated no programs yet."+note))
	}
	scored, failed := splitScored(points, along)
	steps := bestSteps(points, along)
	p.Add(steps, scored)
	p.X.Min = math.Min(p.X.Min, along(points[0]))
	p.X.Max = math.Max(p.X.Max, along(points[len(points)-1]))
	pad(&p.X, 0.03)
	pad(&p.Y, 0.06)
	p.Add(failed)
	f := New(p, width, height, title, trajectoryCaption(points)+note)
	f.key = trajectoryKey(points, steps, scored)
	return f
}

// splitScored makes a dot of every program with a score, and a tick of every other.
func splitScored(points []Point, along func(Point) float64) (scored dots, failed failures) {
	radius := vg.Length(2.8)
	if len(points) > 150 {
		radius = 2
	}
	for _, p := range points {
		s := sourceOf(p.Source)
		d := dot{x: along(p), y: p.Score, radius: radius, color: s.color, mark: s.mark}
		d.title = fmt.Sprintf("program %d: %s, round %d, ", p.Program, p.Source, p.Round)
		if isFinite(p.Score) {
			d.title += fmt.Sprintf("score %.6g", p.Score)
			if p.Outcome != "" && p.Outcome != "ok" {
				d.title, d.hollow = d.title+", "+p.Outcome, true
			}
			scored = append(scored, d)
			continue
		}
		d.title += p.Outcome
		failed = append(failed, d)
	}
	return scored, failed
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// sourceOf is the look of a source; an unknown one is grey.
func sourceOf(name string) source {
	for _, s := range sources {
		if s.name == name {
			return s
		}
	}
	return source{name, palette[len(palette)-1], square}
}

// steps is the plotter of a line that keeps each value until the next.
type steps []struct{ x, y float64 }

// bestSteps are the places where the best score so far begins and rises, and the end of the search.
func bestSteps(points []Point, along func(Point) float64) steps {
	var line steps
	for _, p := range points {
		if isFinite(p.Best) && (len(line) == 0 || p.Best > line[len(line)-1].y) {
			line = append(line, struct{ x, y float64 }{along(p), p.Best})
		}
	}
	if len(line) > 0 {
		end := line[len(line)-1]
		end.x = along(points[len(points)-1])
		line = append(line, end)
	}
	return line
}

var bestLine = draw.LineStyle{Color: inkSoft, Width: 1.4}

func (s steps) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var line []vg.Point
	for i, at := range s {
		if i > 0 {
			line = append(line, vg.Point{X: x(at.x), Y: line[len(line)-1].Y})
		}
		line = append(line, vg.Point{X: x(at.x), Y: y(at.y)})
	}
	c.StrokeLines(bestLine, line)
}

func (s steps) DataRange() (xmin, xmax, ymin, ymax float64) { return s.dots().DataRange() }

// dots samples the line, for its range and for the key to keep clear of it.
func (s steps) dots() dots {
	var ds dots
	for i, at := range s {
		if i > 0 {
			for t := range 12 {
				between := s[i-1].x + (at.x-s[i-1].x)*float64(t+1)/12
				ds = append(ds, dot{x: between, y: s[i-1].y})
			}
			for t := range 6 {
				ds = append(ds, dot{x: at.x, y: s[i-1].y + (at.y-s[i-1].y)*float64(t+1)/6})
			}
		}
		ds = append(ds, dot{x: at.x, y: at.y})
	}
	return ds
}

// failures is the plotter of programs without a score: ticks that stand on the lower edge.
type failures dots

const failureTick = vg.Length(7)

func (fs failures) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, f := range fs {
		at := x(f.x)
		hover(c, f.title, func() {
			c.StrokeLine2(draw.LineStyle{Color: f.color, Width: 1.4}, at, c.Min.Y, at, c.Min.Y+failureTick)
		})
	}
}

func trajectoryKey(points []Point, line steps, scored dots) *key {
	k := &key{avoid: append(line.dots(), scored...)}
	if len(line) > 0 {
		k.entries = append(k.entries, entry{"best so far", func(c *draw.Canvas, at vg.Point) {
			c.StrokeLine2(bestLine, at.X-6, at.Y, at.X+6, at.Y)
		}})
	}
	count, failed := map[string]int{}, 0
	for _, p := range points {
		count[p.Source]++
		if !isFinite(p.Score) {
			failed++
		}
	}
	for _, name := range inKeyOrder(count) {
		s := sourceOf(name)
		label := fmt.Sprintf("%s (%d)", name, count[name])
		k.entries = append(k.entries, dotEntry(label, dot{radius: 2.8, color: s.color, mark: s.mark}))
	}
	if failed > 0 {
		k.entries = append(k.entries, entry{fmt.Sprintf("no score (%d)", failed), func(c *draw.Canvas, at vg.Point) {
			c.StrokeLine2(draw.LineStyle{Color: inkSoft, Width: 1.4}, at.X, at.Y-failureTick/2, at.X, at.Y+failureTick/2)
		}})
	}
	return k
}

// inKeyOrder lists the sources that occur: the known ones in their order, then others by name.
func inKeyOrder(count map[string]int) []string {
	rank := func(name string) int {
		if i := slices.IndexFunc(sources, func(s source) bool { return s.name == name }); i >= 0 {
			return i
		}
		return len(sources)
	}
	return slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

func trajectoryCaption(points []Point) string {
	best, at, scored := math.NaN(), Point{}, 0
	for _, p := range points {
		if isFinite(p.Score) {
			scored++
		}
		if isFinite(p.Best) && (math.IsNaN(best) || p.Best > best) {
			best, at = p.Best, p
		}
	}
	if math.IsNaN(best) {
		return fmt.Sprintf("%d programs, none with a score. Ticks at the lower edge are programs without a score.", len(points))
	}
	return fmt.Sprintf("Best score %.6g, reached by program %d (%s, round %d). %d of %d programs have a score; "+
		"ticks at the lower edge are the others.", best, at.Program, at.Source, at.Round, scored, len(points))
}
