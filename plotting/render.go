package plotting

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"
)

const notebookDPI = 192 // twice what a page shows at 100 %, sharp on dense screens

// SimpleRender is the MIME bundle that a notebook shows: "image/svg+xml" (string), "image/png" ([]byte, 192 dpi) and
// "text/plain" (title and caption).
//
// There is no text/html on purpose. JupyterLab prefers it to everything else, and strips inline SVG from it when
// the notebook isn't trusted, which every notebook is not that was executed elsewhere; with these three it shows
// the SVG in a trusted notebook and the PNG in any other. Within HTML, Embed stands that cleaning; Inline is for pages
// of one's own.
func (f *Figure) SimpleRender() map[string]any {
	return map[string]any{
		"image/svg+xml": string(f.SVG()),
		"image/png":     f.PNG(notebookDPI),
		"text/plain":    f.String(),
	}
}

// Render is SimpleRender with the metadata that makes front ends show the PNG at the size of the SVG. Its type is
// that of gophernotes' display.Data.
func (f *Figure) Render() struct{ Data, Metadata, Transient map[string]any } {
	pixels := func(l vg.Length) int { return int(math.Round(l.Dots(96))) } // CSS pixels
	return struct{ Data, Metadata, Transient map[string]any }{
		Data: f.SimpleRender(),
		Metadata: map[string]any{
			"image/png": map[string]any{"width": pixels(f.Width), "height": pixels(f.Height)},
		},
	}
}

// String is the title and, on a second line, the caption.
func (f *Figure) String() string { return strings.TrimSpace(f.Title + "\n" + f.Caption) }

// Inline is the figure as an <svg> element to stand in an HTML page, where its hover titles work.
func (f *Figure) Inline() string {
	svg := f.SVG()
	return string(svg[bytes.Index(svg, []byte("<svg")):])
}

// Embed is the figure as an <img> element that carries its SVG: for HTML that a notebook shows, trusted or not. It has
// no hover titles.
func (f *Figure) Embed() string {
	data := base64.StdEncoding.EncodeToString(f.SVG())
	return fmt.Sprintf(`<img src="data:image/svg+xml;base64,%s" alt="%s" width="%.0f" height="%.0f">`,
		data, html.EscapeString(printable(f.Title)), f.Width.Dots(96), f.Height.Dots(96))
}
