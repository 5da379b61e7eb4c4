package plotting

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/recorder"
)

func TestTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		low := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(14)-7))
		high := low + math.Pow(10, 10*r.Float64()-6)
		if high-low < 1e-7*math.Abs(low) { // fewer digits than a float has
			continue
		}
		ticks := Ticks{}.Ticks(low, high)
		if len(ticks) < 3 || len(ticks) > 7 {
			t.Fatalf("[%g, %g]: %d ticks", low, high, len(ticks))
		}
		step := ticks[1].Value - ticks[0].Value
		for i, tick := range ticks {
			written, err := strconv.ParseFloat(strings.ReplaceAll(tick.Label, "−", "-"), 64)
			if err != nil || math.Abs(written-tick.Value) > 1e-6*step {
				t.Fatalf("[%g, %g]: tick %g is written %q: %v", low, high, tick.Value, tick.Label, err)
			}
			if slack := 1e-6 * step; tick.Value < low-slack || tick.Value > high+slack {
				t.Fatalf("[%g, %g]: tick %g is outside", low, high, tick.Value)
			}
			if i > 0 && math.Abs(tick.Value-ticks[i-1].Value-step) > 1e-6*step {
				t.Fatalf("[%g, %g]: ticks %v are uneven", low, high, ticks)
			}
		}
		mantissa := step / math.Pow(10, math.Floor(math.Log10(step)+1e-6))
		if !near(mantissa, 1) && !near(mantissa, 2) && !near(mantissa, 2.5) && !near(mantissa, 5) {
			t.Fatalf("[%g, %g]: step %g is not round", low, high, step)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-5 }

func TestTicksLabels(t *testing.T) {
	for _, row := range []struct {
		low, high float64
		whole     bool
		want      string
	}{
		{0, 1, false, "0 0.2 0.4 0.6 0.8 1.0"},
		{0.88, 1.01, false, "0.88 0.90 0.92 0.94 0.96 0.98 1.00"},
		{-50, 100, false, "−50 −25 0 25 50 75 100"},
		{0, 2.2, true, "0 1 2"},
		{0, 3e7, false, "0 5e6 1e7 1.5e7 2e7 2.5e7 3e7"},
		{math.NaN(), 1, false, ""}, {1, 1, false, ""}, {2, 1, false, ""}, {0, math.Inf(1), false, ""},
	} {
		var labels []string
		for _, tick := range (Ticks{Whole: row.whole}).Ticks(row.low, row.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != row.want {
			t.Errorf("[%g, %g]: %q, want %q", row.low, row.high, got, row.want)
		}
	}
}

type trace []Point

func (t trace) Trace() []Point { return t }

// TestBestLine compares the drawn line with the best score of a naive loop: on the paper, a height of the line is the
// same linear function of the score everywhere.
func TestBestLine(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var points trace
	best := math.NaN()
	for i := range 60 {
		score := r.Float64() * float64(i)
		if i%7 == 0 {
			score = math.NaN()
		}
		if !math.IsNaN(score) && !(score <= best) {
			best = score
		}
		points = append(points, Point{Program: i + 1, Seconds: float64(i), Source: "tuner", Score: score, Best: best})
	}
	figure := Trajectory(points)
	line := strokes(figure, bestLine.Width)[0]
	// The naive best after each program, from the scores alone.
	naive := make([]float64, len(points))
	for i := range points {
		naive[i] = math.NaN()
		for _, p := range points[:i+1] {
			if !math.IsNaN(p.Score) && !(p.Score <= naive[i]) {
				naive[i] = p.Score
			}
		}
	}
	first, last := line[0].Pos, line[len(line)-1].Pos // program 2 (the first has no score) and program 60
	perProgram := (last.X - first.X) / vg.Length(len(points)-2)
	perScore := (last.Y - first.Y) / vg.Length(naive[len(naive)-1]-naive[1])
	for i := 1; i < len(points); i++ {
		x := first.X + perProgram*vg.Length(i-1)
		want := first.Y + perScore*vg.Length(naive[i]-naive[1])
		if got := heightAt(line, x+1e-6); math.Abs(float64(got-want)) > 1e-6 {
			t.Errorf("after program %d the line is at %v, the best score %g belongs at %v", i+1, got, naive[i], want)
		}
	}
}

// heightAt is the height of a line of steps just right of x, or its end.
func heightAt(line vg.Path, x vg.Length) vg.Length {
	height := line[0].Pos.Y
	for _, c := range line {
		if c.Pos.X <= x {
			height = c.Pos.Y
		}
	}
	return height
}

// strokes are the paths that the figure strokes with a pen of this width, in order.
func strokes(f *Figure, width vg.Length) (paths []vg.Path) {
	var canvas recorder.Canvas
	f.draw(&canvas)
	var pen vg.Length
	for _, action := range canvas.Actions {
		switch a := action.(type) {
		case *recorder.SetLineWidth:
			pen = a.Width
		case *recorder.Stroke:
			if pen == width {
				paths = append(paths, a.Path)
			}
		}
	}
	return paths
}

// TestEqualScale: circles are where they belong with one scale for both axes, whatever the shape of the scene.
func TestEqualScale(t *testing.T) {
	for _, height := range []float64{0.01, 1, 40} {
		circles := []Circle{{X: 0, Y: 0, R: 0.2}, {X: 3, Y: 0, R: 0.1}, {X: 0, Y: height, R: 0.3}, {X: 1, Y: height / 2, R: 0.2}}
		var at []vg.PathComp
		for _, path := range strokes(Shapes(Scene{Circles: circles}), 0.9) {
			for _, c := range path {
				if c.Type == vg.ArcComp {
					at = append(at, c)
				}
			}
		}
		if len(at) != len(circles) {
			t.Fatalf("height %g: %d circles drawn, want %d", height, len(at), len(circles))
		}
		scale := float64(at[0].Radius) / circles[0].R
		for i, c := range circles {
			dx, dy := float64(at[i].Pos.X-at[0].Pos.X)-scale*c.X, float64(at[i].Pos.Y-at[0].Pos.Y)-scale*c.Y
			if dr := float64(at[i].Radius) - scale*c.R; math.Abs(dx)+math.Abs(dy)+math.Abs(dr) > 0.02 {
				t.Errorf("height %g: circle %d is off by %.3f, %.3f points, its radius by %.3f", height, i, dx, dy, dr)
			}
		}
	}
}

// TestKeyCoversNothing: whatever corner is taken, no dot lies under the key.
func TestKeyCoversNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	inside := 0
	for range 60 {
		var points trace
		for i := range 1 + r.IntN(40) {
			score := r.Float64()
			points = append(points, Point{Program: i + 1, Source: sources[r.IntN(len(sources))].name, Score: score, Best: score})
		}
		f := Trajectory(points)
		var canvas recorder.Canvas
		f.draw(&canvas)
		var box *vg.Rectangle
		for _, action := range canvas.Actions {
			fill, ok := action.(*recorder.Fill)
			if !ok {
				continue
			}
			if r, ok := rectangle(fill.Path); ok {
				box = &r
			}
		}
		if box == nil {
			continue // the key stands beside the plot
		}
		inside++
		keyBegan := false
		for _, action := range canvas.Actions {
			fill, ok := action.(*recorder.Fill)
			if !ok {
				continue
			}
			if r, isBox := rectangle(fill.Path); isBox && r == *box {
				keyBegan = true
			}
			if at := fill.Path[0].Pos; !keyBegan && len(fill.Path) < 8 && at.X > box.Min.X && at.X < box.Max.X && at.Y > box.Min.Y && at.Y < box.Max.Y {
				t.Fatalf("a dot at %v lies under the key %v", at, *box)
			}
		}
	}
	if inside < 10 {
		t.Errorf("the key stood inside the plot %d times of 60: the test saw too little", inside)
	}
}

// rectangle is the box of a path that is one: four corners, then closed.
func rectangle(p vg.Path) (vg.Rectangle, bool) {
	if len(p) != 5 || p[0].Pos.X == p[2].Pos.X || p[0].Pos.Y == p[2].Pos.Y || p[1].Pos.X != p[0].Pos.X && p[1].Pos.Y != p[0].Pos.Y {
		return vg.Rectangle{}, false
	}
	a, b := p[0].Pos, p[2].Pos
	r := vg.Rectangle{Min: vg.Point{X: min(a.X, b.X), Y: min(a.Y, b.Y)}, Max: vg.Point{X: max(a.X, b.X), Y: max(a.Y, b.Y)}}
	return r, r.Size().X > 30 // a square mark is smaller
}

func TestWrap(t *testing.T) {
	for _, s := range []string{"", "one", "the quick brown fox jumps over the lazy dog", "a\nb\n\nc", strings.Repeat("x", 300), "日本語の文章が長い場合"} {
		lines := wrap(captionText, s, 80)
		for _, line := range lines {
			if captionText.Width(line) > 80 {
				t.Errorf("%q: line %q is %v wide", s, line, captionText.Width(line))
			}
		}
		strip := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := strip(strings.Join(lines, "")); got != strip(s) {
			t.Errorf("%q became %q", s, got)
		}
	}
	if lines := wrap(captionText, "wide", 0); len(lines) != 4 {
		t.Errorf("no room at all: %q, want one letter a line", lines)
	}
}
