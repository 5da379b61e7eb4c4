// Package plotting draws skep's figures on gonum/plot. It takes plain numbers and small interfaces, imports no
// sibling, and deliberately knows no engine, problem or notebook: a Figure shows itself through SimpleRender.
package plotting

import (
	"bytes"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is a finished drawing. It is immutable and safe for concurrent use.
type Figure struct {
	Title, Caption string
	Width, Height  vg.Length
	plot           *plot.Plot
}

// New makes a figure of p, w wide and h high. The figure takes p: the caller must not change it afterwards.
func New(p *plot.Plot, w, h vg.Length, title, caption string) *Figure {
	return &Figure{Title: title, Caption: caption, Width: w, Height: h, plot: p}
}

// SVG is the figure as an SVG document.
func (f *Figure) SVG() []byte {
	canvas := vgsvg.New(f.Width, f.Height)
	f.plot.Draw(draw.New(canvas))
	var out bytes.Buffer
	canvas.WriteTo(&out)
	return out.Bytes()
}

// PNG is the figure as a PNG image with dpi pixels per inch.
func (f *Figure) PNG(dpi int) []byte {
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(dpi))}
	f.plot.Draw(draw.New(canvas))
	var out bytes.Buffer
	canvas.WriteTo(&out)
	return out.Bytes()
}

// SimpleRender is the MIME bundle that a notebook shows: SVG as a string, PNG as bytes, title and caption as text.
func (f *Figure) SimpleRender() map[string]any {
	return map[string]any{
		"image/svg+xml": string(f.SVG()),
		"image/png":     f.PNG(192),
		"text/plain":    f.Title + "\n" + f.Caption,
	}
}
