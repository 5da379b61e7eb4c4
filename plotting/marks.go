package plotting

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mark is the outline of a dot.
type mark int

const (
	circle mark = iota
	square
	triangle
	diamond
)

// path is the outline around at; every mark has about the area of the circle with radius r.
func (m mark) path(at vg.Point, r vg.Length) vg.Path {
	if m == circle {
		return circlePath(at, r)
	}
	corners, turn, size := 4, math.Pi/4, 1.25
	switch m {
	case triangle:
		corners, turn, size = 3, math.Pi/2, 1.45
	case diamond:
		turn = 0
	}
	points := make([]vg.Point, corners)
	for i := range points {
		sin, cos := math.Sincos(turn + 2*math.Pi*float64(i)/float64(corners))
		points[i] = at.Add(vg.Point{X: r * vg.Length(size*cos), Y: r * vg.Length(size*sin)})
	}
	return polygonPath(points)
}

func circlePath(at vg.Point, r vg.Length) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: at.X + r, Y: at.Y})
	p.Arc(at, r, 0, 2*math.Pi)
	p.Close()
	return p
}

func polygonPath(points []vg.Point) vg.Path {
	var p vg.Path
	for i, pt := range points {
		if i == 0 {
			p.Move(pt)
		} else {
			p.Line(pt)
		}
	}
	p.Close()
	return p
}

// fillRounded fills c with rounded corners.
func fillRounded(c draw.Canvas, r vg.Length, clr color.Color) {
	var p vg.Path
	p.Move(vg.Point{X: c.Min.X + r, Y: c.Min.Y})
	p.Line(vg.Point{X: c.Max.X - r, Y: c.Min.Y})
	p.Arc(vg.Point{X: c.Max.X - r, Y: c.Min.Y + r}, r, -math.Pi/2, math.Pi/2)
	p.Arc(vg.Point{X: c.Max.X - r, Y: c.Max.Y - r}, r, 0, math.Pi/2)
	p.Arc(vg.Point{X: c.Min.X + r, Y: c.Max.Y - r}, r, math.Pi/2, math.Pi/2)
	p.Arc(vg.Point{X: c.Min.X + r, Y: c.Min.Y + r}, r, math.Pi, math.Pi/2)
	p.Close()
	c.SetColor(clr)
	c.Fill(p)
}

// dot is one point of data.
type dot struct {
	x, y   float64
	radius vg.Length
	color  color.NRGBA
	mark   mark
	hollow bool
	strong bool   // with an edge of ink: for centres
	title  string // shown on hover
}

// draw paints the dot at a place of the canvas: a filled mark with a thin edge of paper, so that neighbours stay
// apart, or a ring.
func (d dot) draw(c *draw.Canvas, at vg.Point) {
	path := d.mark.path(at, d.radius)
	fill, edge, width := d.color, paper, vg.Length(0.5)
	switch {
	case d.hollow:
		fill, edge, width = paper, d.color, 0.9
	case d.strong:
		edge, width = ink, 0.9
	}
	c.SetColor(fill)
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: edge, Width: width})
	c.Stroke(path)
}

// dots is the plotter of points, in drawing order.
type dots []dot

func (ds dots) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, d := range ds {
		hover(c, d.title, func() { d.draw(&c, vg.Point{X: x(d.x), Y: y(d.y)}) })
	}
}

func (ds dots) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, d := range ds {
		xmin, xmax = math.Min(xmin, d.x), math.Max(xmax, d.x)
		ymin, ymax = math.Min(ymin, d.y), math.Max(ymax, d.y)
	}
	return xmin, xmax, ymin, ymax
}

// message is the plotter of a sentence in the middle of an empty plot.
type message string

func (m message) Plot(c draw.Canvas, _ *plot.Plot) {
	style := labelText
	style.XAlign, style.YAlign, style.Color = draw.XCenter, draw.YCenter, inkSoft
	c.FillText(style, c.Center(), string(m))
}
