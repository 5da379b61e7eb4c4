package circles_square_26

import (
	"fmt"
	"image/color"
	"math"
	"math/big"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"skep/plotting"
	"skep/problems/value"
)

// Picture draws the square and the circles with their indices; circles that violate a constraint at tolerance 0 are
// red. What cannot be drawn (not finite, or far from the square) is counted in the caption.
func (q Problem) Picture(returned value.Value) *plotting.Figure {
	d := drawing{bad: map[int]bool{}}
	circles, _, err := parse(returned)
	caption := ""
	if err != nil {
		caption = "Nothing to draw: " + err.Error()
	} else {
		d.circles = circles
		d.bad = violators(circles)
		caption = q.Verify(returned).Message
		if left := len(circles) - d.drawable(); left > 0 {
			caption += fmt.Sprintf("; %d of %d circles are not finite or too far away to be drawn", left, len(circles))
		}
	}
	p := plot.New()
	p.Add(d)
	return plotting.NewEqual(p, pictureSize, pictureSize, q.Info().Title, sentence(caption))
}

const pictureSize = 4.6 * vg.Inch

// sentence starts with a capital letter and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// violators returns the circles that take part in a constraint violated at tolerance 0, non-finite ones included.
func violators(circles []circle) map[int]bool {
	bad := map[int]bool{}
	var good []circle
	var index []int
	for i, c := range circles {
		if finite([]circle{c}) != nil {
			bad[i] = true
			continue
		}
		good, index = append(good, c), append(index, i)
	}
	p, zero := exactly(good), new(big.Rat)
	for i := range good {
		for _, side := range sides {
			if p.r[i].Sign() < 0 || side.slack(p, i).Sign() < 0 {
				bad[index[i]] = true
			}
		}
		for j := i + 1; j < len(good); j++ {
			if !p.apart(i, j, zero) {
				bad[index[i]], bad[index[j]] = true, true
			}
		}
	}
	return bad
}

// drawing plots circles on the square; it is a gonum plot.Plotter.
type drawing struct {
	circles []circle
	bad     map[int]bool
}

// farAway bounds what is drawn, in sides of the square from its middle.
const farAway = 2.0

func (c circle) near() bool {
	reach := math.Max(math.Abs(c.x-0.5), math.Abs(c.y-0.5)) + math.Abs(c.r)
	return reach <= farAway // false for NaN
}

func (d drawing) drawable() int {
	n := 0
	for _, c := range d.circles {
		if c.near() {
			n++
		}
	}
	return n
}

// DataRange covers the square and every drawable circle, with a small rim.
func (d drawing) DataRange() (xmin, xmax, ymin, ymax float64) {
	const rim = 0.02
	xmin, ymin, xmax, ymax = 0, 0, 1, 1
	for _, c := range d.circles {
		if c.near() {
			r := math.Abs(c.r)
			xmin, xmax = min(xmin, c.x-r), max(xmax, c.x+r)
			ymin, ymax = min(ymin, c.y-r), max(ymax, c.y+r)
		}
	}
	return xmin - rim, xmax + rim, ymin - rim, ymax + rim
}

var (
	ink      = color.NRGBA{0x33, 0x33, 0x33, 0xff}
	calm     = color.NRGBA{0x00, 0x72, 0xb2, 0xff} // blue and vermilion tell apart without red-green vision
	alarming = color.NRGBA{0xd5, 0x2b, 0x1e, 0xff}
)

// Plot draws the good circles first, so that red ones lie on top.
func (d drawing) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	frame := []vg.Point{{X: toX(0), Y: toY(0)}, {X: toX(1), Y: toY(0)}, {X: toX(1), Y: toY(1)}, {X: toX(0), Y: toY(1)}, {X: toX(0), Y: toY(0)}}
	c.StrokeLines(draw.LineStyle{Color: ink, Width: vg.Points(1.2)}, frame)
	for _, red := range []bool{false, true} {
		for i, circle := range d.circles {
			if circle.near() && d.bad[i] == red {
				at := vg.Point{X: toX(circle.x), Y: toY(circle.y)}
				disc(c, at, toX(math.Abs(circle.r))-toX(0), shade(red))
				label(c, at, toX(math.Abs(circle.r))-toX(0), strconv.Itoa(i))
			}
		}
	}
}

func shade(red bool) color.NRGBA {
	if red {
		return alarming
	}
	return calm
}

// disc fills a circle lightly and strokes its edge. A radius of 0 leaves a dot.
func disc(c draw.Canvas, at vg.Point, r vg.Length, shade color.NRGBA) {
	r = max(r, vg.Points(0.8))
	var path vg.Path
	path.Move(vg.Point{X: at.X + r, Y: at.Y})
	path.Arc(at, r, 0, 2*math.Pi)
	path.Close()
	light := shade
	light.A = 0x38
	c.SetColor(light)
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: shade, Width: vg.Points(0.9)})
	c.Stroke(path)
}

// label writes the index where it fits into the circle.
func label(c draw.Canvas, at vg.Point, r vg.Length, index string) {
	size := min(vg.Points(9), r)
	if size < vg.Points(4) {
		return
	}
	c.FillText(draw.TextStyle{
		Color: ink, Font: font.From(plot.DefaultFont, size), XAlign: text.XCenter, YAlign: text.YCenter, Handler: plot.DefaultTextHandler,
	}, at, index)
}
