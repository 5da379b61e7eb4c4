package plotting

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svg is gonum's SVG canvas with two additions: hover titles on groups of marks and fonts to fall back on. vgsvg
// shows no writer, so a title travels through it as a text element that no drawing can contain (a control
// character, which FillString takes out of real text) and document puts the group in its place.
type svg struct {
	*vgsvg.Canvas
	titles []string
	face   font.Face
}

func newSVG(w, h vg.Length) *svg {
	face := captionText.Handler.Cache().Lookup(captionText.Font, captionText.Font.Size)
	return &svg{Canvas: vgsvg.New(w, h), face: face}
}

const opens, closes = "\x02", "\x03"

var (
	placeholder = regexp.MustCompile(`<text [^>]*>([\x02\x03])(\d*)</text>\n?`)
	rootElement = regexp.MustCompile(`<svg [^>]*>`)
)

// open starts a group of marks that shows title when the pointer rests on it; close ends it.
func (s *svg) open(title string) {
	s.Canvas.FillString(s.face, vg.Point{}, opens+strconv.Itoa(len(s.titles)))
	s.titles = append(s.titles, title)
}

func (s *svg) close() { s.Canvas.FillString(s.face, vg.Point{}, closes) }

// FillString draws text, without the characters that XML forbids.
func (s *svg) FillString(f font.Face, at vg.Point, text string) {
	s.Canvas.FillString(f, at, printable(text))
}

// document is the finished SVG. label names the picture for screen readers.
func (s *svg) document(label string) []byte {
	var out bytes.Buffer
	if _, err := s.Canvas.WriteTo(&out); err != nil {
		panic(fmt.Sprintf("plotting: writing an SVG into memory: %v", err)) // a buffer accepts every write
	}
	doc := placeholder.ReplaceAllStringFunc(out.String(), func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		if parts[1] == closes {
			return "</g>\n"
		}
		i, _ := strconv.Atoi(parts[2]) // the digits that open wrote
		return "<g><title>" + html.EscapeString(printable(s.titles[i])) + "</title>\n"
	})
	doc = strings.ReplaceAll(doc, "font-family:Liberation Sans;", "font-family:Liberation Sans, Arial, Helvetica, sans-serif;")
	doc = rootElement.ReplaceAllStringFunc(doc, func(root string) string {
		return strings.TrimSuffix(root, ">") + ` role="img" aria-label="` + html.EscapeString(printable(label)) + `">`
	})
	return []byte(doc)
}

// hover calls paint, whose marks show title under the pointer on canvases that can do it.
func hover(c vg.Canvas, title string, paint func()) {
	for inner, nested := c.(draw.Canvas); nested; inner, nested = c.(draw.Canvas) {
		c = inner.Canvas // gonum nests its drawing areas
	}
	if s, ok := c.(*svg); ok && title != "" {
		s.open(title)
		defer s.close()
	}
	paint()
}
