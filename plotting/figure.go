// Package plotting draws skep's figures on gonum/plot: Trajectory, Clusters, Shapes (packings and other plane
// geometry), StageTimes and Bars, each a function from plain numbers to a Figure. It imports no sibling, and
// deliberately knows no engine, problem or notebook: a Figure shows itself through SimpleRender and Render.
//
// The main path: a plotting function builds a gonum plot of marks, New gives it the house style, and Figure.draw
// lays out title, plot, key and caption on any vg.Canvas; SVG and PNG are that one drawing on two canvases.
package plotting

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Figure is a finished drawing: title, plot, and caption on a white card, so that it reads the same on a light and
// on a dark page. It is immutable and safe for concurrent use.
type Figure struct {
	Title, Caption string
	Width, Height  vg.Length // of the whole card

	mu    sync.Mutex // gonum's plots normalise their axes while they draw
	plot  *plot.Plot
	key   *key
	equal bool
}

// New makes a figure of p in the house style. w × h is the size of the plot with its axes; title, caption and margin
// come on top of it. An empty title takes the plot's own. The figure takes p: the caller must not change it
// afterwards. p keeps its ranges, labels, tick markers other than gonum's default, and its legend.
func New(p *plot.Plot, w, h vg.Length, title, caption string) *Figure {
	if title == "" {
		title = p.Title.Text
	}
	p.Title.Text = ""
	dress(p)
	f := &Figure{Title: title, Caption: caption, plot: p}
	f.Width = w + 2*margin
	f.Height = h + 2*margin + textHeight(titleText, wrap(titleText, title, w), titleGap) +
		textHeight(captionText, wrap(captionText, caption, w), captionGap)
	return f
}

// NewEqual is New with axes of equal scale: one unit of x is as long as one unit of y, whatever the ranges. The
// shorter range is widened on both sides.
func NewEqual(p *plot.Plot, w, h vg.Length, title, caption string) *Figure {
	f := New(p, w, h, title, caption)
	f.equal = true
	return f
}

const (
	margin     = vg.Length(10)
	titleGap   = vg.Length(8)
	captionGap = vg.Length(8)
	corner     = vg.Length(5) // radius of the card's corners
)

// draw lays the figure out on c, top down.
func (f *Figure) draw(canvas vg.Canvas) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := draw.NewCanvas(canvas, f.Width, f.Height)
	fillRounded(c, corner, paper)
	inner := draw.Crop(c, margin, -margin, margin, -margin)
	width := inner.Max.X - inner.Min.X
	inner.Max.Y -= drawLines(inner, titleText, wrap(titleText, f.Title, width), inner.Max.Y, titleGap)
	caption := wrap(captionText, f.Caption, width)
	height := textHeight(captionText, caption, captionGap)
	drawLines(inner, captionText, caption, inner.Min.Y+height-captionGap, 0)
	inner.Min.Y += height
	f.drawPlot(inner)
}

// drawPlot draws the axes, the grid below the data, the data, and the key in the emptiest corner or beside them.
func (f *Figure) drawPlot(c draw.Canvas) {
	spot := f.key.place(f.plot, c)
	if spot.beside {
		c.Max.X -= spot.width + keyGap
	}
	p := *f.plot // equalise widens the ranges for this canvas only
	if f.equal {
		equalise(&p, c)
	}
	drawGrid(&p, p.DataCanvas(c))
	p.Draw(c)
	f.key.draw(p.DataCanvas(c), spot)
}

// equalise widens one axis of p until both have the same scale on the data area of c.
func equalise(p *plot.Plot, c draw.Canvas) {
	for range 3 { // tick labels change width with the range, so the area moves a little: three passes settle it
		area := p.DataCanvas(c).Size()
		perX, perY := (p.X.Max-p.X.Min)/float64(area.X), (p.Y.Max-p.Y.Min)/float64(area.Y)
		scale := math.Max(perX, perY)
		widen(&p.X, scale*float64(area.X))
		widen(&p.Y, scale*float64(area.Y))
	}
}

func widen(a *plot.Axis, span float64) {
	middle := a.Min + (a.Max-a.Min)/2
	a.Min, a.Max = middle-span/2, middle+span/2
}

// SVG is the figure as an SVG document with hover titles on its marks (no script). Its text names Liberation Sans
// and falls back to Arial, Helvetica and the viewer's sans-serif.
func (f *Figure) SVG() []byte {
	canvas := newSVG(f.Width, f.Height)
	f.draw(canvas)
	return canvas.document(f.Title)
}

// PNG is the figure as a PNG image with dpi pixels per inch; 0 or less means 192.
func (f *Figure) PNG(dpi int) []byte {
	if dpi <= 0 {
		dpi = notebookDPI
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(dpi))}
	f.draw(canvas)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		panic(fmt.Sprintf("plotting: encoding a PNG into memory: %v", err)) // a buffer accepts every write
	}
	return out.Bytes()
}

// Save writes the figure to path; the extension says how: .svg or .png (192 dpi).
func (f *Figure) Save(path string) error {
	var data []byte
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg":
		data = f.SVG()
	case ".png":
		data = f.PNG(notebookDPI)
	default:
		return fmt.Errorf("plotting: can't save %q: extension %q is neither .svg nor .png", path, ext)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("plotting: save figure: %w", err)
	}
	return nil
}
