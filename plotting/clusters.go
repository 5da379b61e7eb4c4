package plotting

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// ClusterPoint is one agent: its mean hidden state and where it belongs.
type ClusterPoint struct {
	X     []float64 // [D]: the vector, of any dimension
	Group string    // points of one group share a colour, a hull and a centre
	Label string    // shown on hover
	Kept  bool      // kept by the novelty filter: filled; else hollow
}

// ClusterData is what Clusters draws.
type ClusterData struct {
	Title, Caption string // "" for a default; Caption should name the mean that Centre is
	Points         []ClusterPoint
	Centre         []float64 // [D]: the mean that the picture is centred on; nil: the mean of the points drawn
	By             string    // what a group is: "swarm", "parent", "phrasing", "way"
}

// Clusters draws vectors on their first two principal components, like Figure 5 of arXiv 2611.08483: all agents by
// swarm with the centres of the swarms (left), or one swarm by parent, phrasing or way (right). The components are
// those of the points; the origin, marked by a cross, is Centre. Points that are not finite, or whose length is not
// Centre's (without Centre, the first point's), are left out, and the caption counts them.
func Clusters(data ClusterData) *Figure {
	points, centre := drawable(data)
	p := plot.New()
	title := data.Title
	if title == "" {
		title = "Mean hidden states"
	}
	const width, height = 5.6 * vg.Inch, 4 * vg.Inch
	if len(points) == 0 {
		p.Add(message("no hidden states yet"))
		return New(p, width, height, title, clusterCaption(data, points, projection{}))
	}
	vectors := make([][]float64, len(points))
	for i, point := range points {
		vectors[i] = point.X
	}
	if centre == nil {
		centre = mean(vectors)
	}
	image := project(vectors, centre)
	p.X.Label.Text = fmt.Sprintf("PC 1 (%.3g %% of variance)", 100*image.variance[0])
	p.Y.Label.Text = fmt.Sprintf("PC 2 (%.3g %% of variance)", 100*image.variance[1])
	groups := groupPoints(points, image)
	drawn := drawGroups(p, groups)
	pad(&p.X, 0.05)
	pad(&p.Y, 0.05)
	figure := NewEqual(p, width, height, title, clusterCaption(data, points, image))
	figure.key = clusterKey(data.By, groups, drawn)
	return figure
}

// drawable is the points that can be drawn together, and the centre if it can be used.
func drawable(data ClusterData) (points []ClusterPoint, centre []float64) {
	size := 0
	if allFinite(data.Centre) && len(data.Centre) > 0 {
		centre, size = data.Centre, len(data.Centre)
	}
	for _, p := range data.Points {
		if len(p.X) == 0 || !allFinite(p.X) || size > 0 && len(p.X) != size {
			continue
		}
		size = len(p.X)
		points = append(points, p)
	}
	return points, centre
}

func allFinite(v []float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return !isFinite(x) })
}

const fewPoints = 100

// group is the points of one group on the plane.
type group struct {
	name   string
	color  color.NRGBA
	mark   mark
	points [][2]float64
	dots   dots
}

func (g group) centre() [2]float64 {
	var c [2]float64
	for _, p := range g.points {
		c[0] += p[0] / float64(len(g.points))
		c[1] += p[1] / float64(len(g.points))
	}
	return c
}

// groupPoints sorts the points into their groups, in the order in which the groups first occur.
func groupPoints(points []ClusterPoint, image projection) []*group {
	var groups []*group
	byName := map[string]*group{}
	radius := vg.Length(3)
	if len(points) > fewPoints {
		radius = 2.2
	}
	for i, p := range points {
		g := byName[p.Group]
		if g == nil {
			g = &group{name: p.Group}
			g.color, g.mark = tone(len(groups))
			byName[p.Group], groups = g, append(groups, g)
		}
		at := image.xy[i]
		g.points = append(g.points, at)
		g.dots = append(g.dots, dot{x: at[0], y: at[1], radius: radius, color: g.color, mark: g.mark, hollow: !p.Kept, title: p.title()})
	}
	return groups
}

// title is the agent's label, group and fate.
func (p ClusterPoint) title() string {
	parts := slices.DeleteFunc([]string{p.Label, p.Group}, func(s string) bool { return s == "" })
	if p.Kept {
		return strings.Join(append(parts, "kept"), ", ")
	}
	return strings.Join(append(parts, "dropped"), ", ")
}

// drawGroups adds hulls, points, centres and the origin to p, and returns the points. Centres stand over many points
// and under few, so that they are seen and hide none.
func drawGroups(p *plot.Plot, groups []*group) (drawn dots) {
	for _, g := range groups {
		if corners := hull(g.points); corners != nil {
			p.Add(area{corners, g.color})
		}
		drawn = append(drawn, g.dots...)
	}
	if centres := centresOf(groups); len(drawn) > fewPoints {
		p.Add(drawn, centres, origin{})
	} else {
		p.Add(centres, drawn, origin{})
	}
	return drawn
}

// centresOf is a large mark at the centre of every group of two or more, if there are several groups.
func centresOf(groups []*group) (centres dots) {
	for _, g := range groups {
		if at := g.centre(); len(groups) > 1 && len(g.points) > 1 {
			title := fmt.Sprintf("centre of %s (%d)", g.name, len(g.points))
			centres = append(centres, dot{x: at[0], y: at[1], radius: 5.5, color: g.color, mark: g.mark, strong: true, title: title})
		}
	}
	return centres
}

// area is the plotter of a hull: a light fill with a dashed edge.
type area struct {
	corners [][2]float64
	color   color.NRGBA
}

func (a area) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	points := make([]vg.Point, len(a.corners))
	for i, corner := range a.corners {
		points[i] = vg.Point{X: x(corner[0]), Y: y(corner[1])}
	}
	c.FillPolygon(alpha(a.color, 0.12), points)
	c.SetLineStyle(draw.LineStyle{Color: alpha(a.color, 0.6), Width: 0.7, Dashes: []vg.Length{3, 2}})
	c.Stroke(polygonPath(points))
}

// origin is the plotter of the cross at the centre.
type origin struct{}

func (origin) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := vg.Point{X: x(0), Y: y(0)}
	if !c.Contains(at) {
		return
	}
	hover(c, "the mean that the picture is centred on", func() {
		line := draw.LineStyle{Color: inkSoft, Width: 1}
		c.StrokeLine2(line, at.X-5, at.Y, at.X+5, at.Y)
		c.StrokeLine2(line, at.X, at.Y-5, at.X, at.Y+5)
	})
}

// DataRange keeps the centre in sight.
func (origin) DataRange() (xmin, xmax, ymin, ymax float64) { return 0, 0, 0, 0 }

func clusterKey(by string, groups []*group, avoid dots) *key {
	k := &key{title: by, avoid: avoid}
	kept, dropped := 0, 0
	for _, g := range groups {
		for _, d := range g.dots {
			if d.hollow {
				dropped++
			} else {
				kept++
			}
		}
		k.entries = append(k.entries, dotEntry(g.name, dot{radius: 3, color: g.color, mark: g.mark}))
	}
	if kept > 0 && dropped > 0 {
		k.entries = append(k.entries,
			dotEntry(fmt.Sprintf("kept (%d)", kept), dot{radius: 3, color: inkSoft}),
			dotEntry(fmt.Sprintf("dropped (%d)", dropped), dot{radius: 3, color: inkSoft, hollow: true}))
	}
	return k
}

// clusterCaption is the caller's caption, or one that says what is seen, and what couldn't be drawn.
func clusterCaption(data ClusterData, points []ClusterPoint, image projection) string {
	caption := strings.TrimSpace(data.Caption)
	if caption == "" && len(points) > 0 {
		mean := "the mean of the points shown"
		if len(data.Centre) == len(points[0].X) {
			mean = "the mean given"
		}
		caption = fmt.Sprintf("Mean hidden states (agents: %d) on their first two principal components, centred on %s (cross). "+
			"Hollow marks were dropped by the novelty filter; large marks are the centres of the groups.", len(points), mean)
	}
	switch {
	case len(points) == 1:
		caption += " One vector has no principal components."
	case len(points) > 1 && image.variance[0] == 0:
		caption += fmt.Sprintf(" All %d vectors are equal.", len(points))
	}
	if left := len(data.Points) - len(points); left > 0 {
		caption += fmt.Sprintf(" %d of %d vectors could not be drawn: not finite, or of another length.", left, len(data.Points))
	}
	return strings.TrimSpace(caption)
}
