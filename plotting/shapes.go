package plotting

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Scene is plane geometry, as a packing or a point set, drawn with axes of equal scale. What is Bad violates a
// constraint and is drawn red. Coordinates may be any numbers: what isn't finite can't be drawn, and the caption
// counts it.
type Scene struct {
	Title, Caption string
	Polygons       []Polygon // drawn first
	Circles        []Circle
	Segments       []Segment
	Sites          []Site // drawn last
}

// Circle has its centre at X, Y. A negative radius is drawn by its size, as Bad; a radius of zero as a small dot.
type Circle struct {
	X, Y, R float64
	Label   string // written inside when it fits, and on hover
	Bad     bool
}

// Polygon is a closed polygon.
type Polygon struct {
	Points  [][2]float64
	Label   string
	Outline bool // no fill: a container. Containers say what part of the plane is seen
	Dashed  bool
	Bad     bool
}

// Segment is a straight line between two points.
type Segment struct {
	X1, Y1, X2, Y2 float64
	Label          string
	Dashed         bool
	Bad            bool
}

// Site is a point.
type Site struct {
	X, Y  float64
	Label string
	Bad   bool
}

// Shapes draws a scene. The picture spans the containers and what lies near them; without a container, everything.
func Shapes(s Scene) *Figure {
	p := plot.New()
	drawn, left := s.finite()
	p.Add(drawn)
	xmin, xmax, ymin, ymax := drawn.span()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = xmin, xmax, ymin, ymax
	pad(&p.X, 0.03)
	pad(&p.Y, 0.03)
	caption := strings.TrimSpace(s.Caption)
	if drawn.bad() {
		caption += " Red: violates a constraint."
	}
	if out := drawn.outside(p); out > 0 {
		caption += fmt.Sprintf(" %s beyond the picture.", count(out, "shape reaches", "shapes reach"))
	}
	if left > 0 {
		caption += fmt.Sprintf(" %s not drawn: not finite.", count(left, "shape is", "shapes are"))
	}
	return NewEqual(p, 4*vg.Inch, 3.8*vg.Inch, s.Title, strings.TrimSpace(caption))
}

// count is n with the word that agrees with it.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shape is one thing to draw: an outline in the plane and a look.
type shape struct {
	points [][2]float64 // corners; the centre of a circle
	radius float64      // of a circle, else 0
	kind   kind
	label  string // written inside a circle
	title  string // shown on hover
	dashed bool
	bad    bool
}

type kind int

const (
	disc kind = iota
	filled
	container
	line
	site
)

type shapes []shape

// finite turns the scene into shapes in drawing order, and counts those that can't be drawn.
func (s Scene) finite() (all shapes, left int) {
	add := func(sh shape) {
		for _, p := range sh.points {
			if !drawableAt(p[0]) || !drawableAt(p[1]) || !drawableAt(sh.radius) {
				left++
				return
			}
		}
		if len(sh.points) > 0 {
			all = append(all, sh)
		}
	}
	for _, g := range s.Polygons {
		k := filled
		if g.Outline {
			k = container
		}
		add(shape{points: g.Points, kind: k, title: g.Label, dashed: g.Dashed, bad: g.Bad})
	}
	for _, c := range s.Circles {
		title := strings.TrimSpace(fmt.Sprintf("circle %s", c.Label)) + fmt.Sprintf(": centre (%.6g, %.6g), radius %.6g", c.X, c.Y, c.R)
		add(shape{points: [][2]float64{{c.X, c.Y}}, radius: math.Abs(c.R), kind: disc, label: c.Label, title: title,
			bad: c.Bad || c.R < 0})
	}
	for _, g := range s.Segments {
		add(shape{points: [][2]float64{{g.X1, g.Y1}, {g.X2, g.Y2}}, kind: line, title: g.Label, dashed: g.Dashed, bad: g.Bad})
	}
	for _, p := range s.Sites {
		title := strings.TrimSpace(fmt.Sprintf("point %s", p.Label)) + fmt.Sprintf(": (%.6g, %.6g)", p.X, p.Y)
		add(shape{points: [][2]float64{{p.X, p.Y}}, kind: site, title: title, bad: p.Bad})
	}
	return all, left
}

// drawableAt is false for what isn't a number, and for sizes whose squares and sums would not be.
func drawableAt(v float64) bool { return math.Abs(v) < 1e150 }

func (ss shapes) bad() bool {
	for _, s := range ss {
		if s.bad {
			return true
		}
	}
	return false
}

// box is the bounding box of a shape.
func (s shape) box() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range s.points {
		xmin, xmax = math.Min(xmin, p[0]-s.radius), math.Max(xmax, p[0]+s.radius)
		ymin, ymax = math.Min(ymin, p[1]-s.radius), math.Max(ymax, p[1]+s.radius)
	}
	return xmin, xmax, ymin, ymax
}

// bounds is the bounding box of the shapes of which take is true.
func (ss shapes) bounds(take func(shape) bool) (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range ss {
		if take(s) {
			x0, x1, y0, y1 := s.box()
			xmin, xmax, ymin, ymax = math.Min(xmin, x0), math.Max(xmax, x1), math.Min(ymin, y0), math.Max(ymax, y1)
		}
	}
	return xmin, xmax, ymin, ymax
}

// span is the part of the plane that is seen: all shapes, but no more than half a container's size around the
// containers, so that one astray circle doesn't shrink the picture to a speck.
func (ss shapes) span() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = ss.bounds(func(shape) bool { return true })
	x0, x1, y0, y1 := ss.bounds(func(s shape) bool { return s.kind == container })
	if x0 > x1 || x1-x0 == 0 || y1-y0 == 0 {
		return xmin, xmax, ymin, ymax
	}
	dx, dy := (x1-x0)/2, (y1-y0)/2
	return math.Max(xmin, x0-dx), math.Min(xmax, x1+dx), math.Max(ymin, y0-dy), math.Min(ymax, y1+dy)
}

// outside counts the shapes that reach beyond the ranges of p.
func (ss shapes) outside(p *plot.Plot) (n int) {
	for _, s := range ss {
		if x0, x1, y0, y1 := s.box(); x0 < p.X.Min || x1 > p.X.Max || y0 < p.Y.Min || y1 > p.Y.Max {
			n++
		}
	}
	return n
}

// Plot draws the shapes; it is shapes' side of plot.Plotter.
func (ss shapes) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	scale := float64(x(p.X.Max)-x(p.X.Min)) / (p.X.Max - p.X.Min) // points per unit, the same on both axes
	for _, s := range ss {
		corners := make([]vg.Point, len(s.points))
		for i, at := range s.points {
			corners[i] = vg.Point{X: x(at[0]), Y: y(at[1])}
		}
		hover(c, s.title, func() { s.draw(&c, corners, vg.Length(s.radius*scale)) })
	}
}

// look is the colour of a shape's fill and the style of its edge.
func (s shape) look() (fill color.NRGBA, edge draw.LineStyle) {
	base, width := palette[0], vg.Length(0.9)
	if s.kind == container || s.kind == line {
		base = ink
	}
	if s.bad {
		base, width = wrong, 1.4
	}
	edge = draw.LineStyle{Color: base, Width: width}
	if s.dashed {
		edge.Dashes = []vg.Length{4, 2.5}
	}
	return alpha(base, 0.18), edge
}

func (s shape) draw(c *draw.Canvas, corners []vg.Point, radius vg.Length) {
	fill, edge := s.look()
	switch {
	case s.kind == site, s.kind == disc && radius < 0.5:
		d := dot{radius: 3, color: edge.Color.(color.NRGBA)}
		if s.kind == disc {
			d.radius = 1.5
		}
		if c.Contains(corners[0]) {
			d.draw(c, corners[0])
		}
	case s.kind == line:
		c.StrokeLines(edge, c.ClipLinesXY(corners)...)
	case s.kind == disc:
		s.drawDisc(c, corners[0], radius, fill, edge)
	default:
		if s.kind == filled {
			c.FillPolygon(fill, c.ClipPolygonXY(corners))
		}
		c.StrokeLines(edge, c.ClipLinesXY(append(corners, corners[0]))...)
	}
}

// drawDisc draws a whole circle as a circle, and one that reaches over the edge as a clipped polygon.
func (s shape) drawDisc(c *draw.Canvas, at vg.Point, r vg.Length, fill color.Color, edge draw.LineStyle) {
	if at.X-r >= c.Min.X && at.X+r <= c.Max.X && at.Y-r >= c.Min.Y && at.Y+r <= c.Max.Y {
		path := circlePath(at, r)
		c.SetColor(fill)
		c.Fill(path)
		c.SetLineStyle(edge)
		c.Stroke(path)
	} else {
		rim := make([]vg.Point, 721)
		for i := range rim {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / 720)
			rim[i] = at.Add(vg.Point{X: r * vg.Length(cos), Y: r * vg.Length(sin)})
		}
		c.FillPolygon(fill, c.ClipPolygonXY(rim))
		c.StrokeLines(edge, c.ClipLinesXY(rim)...)
	}
	style := tickText
	style.XAlign, style.YAlign, style.Font.Size = draw.XCenter, draw.YCenter, 8
	if s.label != "" && style.Width(s.label) < 1.5*r && r > 6 && c.Contains(at) {
		c.FillText(style, at.Add(vg.Point{Y: keyLift}), s.label)
	}
}
