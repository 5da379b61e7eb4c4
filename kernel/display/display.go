// Package display makes rich output for notebook cells: MIME bundles, with the names that gophernotes gave them, so
// that its notebooks run unchanged, and displays that can be updated in place.
//
// It does not know the Jupyter protocol, the cell engine or any sibling: a session connects it to its outputs with
// [Connect].
package display

import (
	"fmt"
	"image"
	"maps"
	"os"
)

// MIMEMap maps a MIME type to its value: a string, []byte (sent as base64) or anything that encodes to JSON.
type MIMEMap = map[string]interface{}

// Data is one output: the same thing in several MIME types, with metadata per type. Transient["display_id"] names a
// display that later outputs may replace.
type Data = struct {
	Data      MIMEMap
	Metadata  MIMEMap
	Transient MIMEMap
}

// The MIME types that notebook front ends show.
const (
	MIMETypeHTML       = "text/html"
	MIMETypeJavaScript = "application/javascript"
	MIMETypeJPEG       = "image/jpeg"
	MIMETypeJSON       = "application/json"
	MIMETypeLatex      = "text/latex"
	MIMETypeMarkdown   = "text/markdown"
	MIMETypePNG        = "image/png"
	MIMETypePDF        = "application/pdf"
	MIMETypeSVG        = "image/svg+xml"
	MIMETypeText       = "text/plain"
)

// A value that implements one of these interfaces shows itself so when a cell ends in it. Renderer wins over
// SimpleRenderer, which wins over the single types.
type (
	Renderer       = interface{ Render() Data }
	SimpleRenderer = interface{ SimpleRender() MIMEMap }
	HTMLer         = interface{ HTML() string }
	JavaScripter   = interface{ JavaScript() string }
	JPEGer         = interface{ JPEG() []byte }
	JSONer         = interface{ JSON() map[string]interface{} }
	Latexer        = interface{ Latex() string }
	Markdowner     = interface{ Markdown() string }
	PNGer          = interface{ PNG() []byte }
	PDFer          = interface{ PDF() []byte }
	SVGer          = interface{ SVG() string }
)

// Image is an image that shows as PNG.
type Image = image.Image

// MakeData returns v under one MIME type, with a text form beside it.
func MakeData(mimeType string, v interface{}) Data {
	d := Data{Data: MIMEMap{mimeType: v}}
	if mimeType != MIMETypeText {
		d.Data[MIMETypeText] = fmt.Sprint(v)
		if b, ok := v.([]byte); ok {
			d.Data[MIMETypeText] = fmt.Sprintf("%s, %d bytes", mimeType, len(b))
		}
	}
	return d
}

// MakeData3 returns v under one MIME type with the given text form.
func MakeData3(mimeType, plaintext string, v interface{}) Data {
	return Data{Data: MIMEMap{MIMETypeText: plaintext, mimeType: v}}
}

// MIME returns a bundle of data with its metadata; both may be nil.
func MIME(data, metadata MIMEMap) Data {
	return Data{Data: maps.Clone(data), Metadata: maps.Clone(metadata)}
}

// HTML, Markdown and the functions below wrap content that already has the named type.
func HTML(html string) Data { return MakeData(MIMETypeHTML, html) }

// JavaScript returns a script; most front ends ask the user before they run one.
func JavaScript(script string) Data { return MakeData(MIMETypeJavaScript, script) }

// JPEG returns a JPEG file's bytes.
func JPEG(jpeg []byte) Data { return MakeData(MIMETypeJPEG, jpeg) }

// JSON returns a value that front ends show as a tree.
func JSON(json map[string]interface{}) Data { return MakeData(MIMETypeJSON, json) }

// Latex returns an inline formula; latex comes without its dollar signs.
func Latex(latex string) Data { return MakeData3(MIMETypeLatex, latex, "$"+latex+"$") }

// Math returns a displayed formula; latex comes without its dollar signs.
func Math(latex string) Data { return MakeData3(MIMETypeLatex, latex, "$$"+latex+"$$") }

// Markdown returns Markdown text.
func Markdown(markdown string) Data { return MakeData(MIMETypeMarkdown, markdown) }

// PDF returns a PDF file's bytes.
func PDF(pdf []byte) Data { return MakeData(MIMETypePDF, pdf) }

// PNG returns a PNG file's bytes.
func PNG(png []byte) Data { return MakeData(MIMETypePNG, png) }

// SVG returns an SVG drawing's text.
func SVG(svg string) Data { return MakeData(MIMETypeSVG, svg) }

// Any returns v under mimeType, or under the type found in v when mimeType is "". v is a string, []byte, image.Image,
// io.Reader, io.WriterTo, Data, or implements one of this package's interfaces.
func Any(mimeType string, v interface{}) (Data, error) { return anyData(mimeType, v) }

// Auto is Any with the type found in v.
func Auto(v interface{}) (Data, error) { return anyData("", v) }

// File returns a file's content under mimeType, or under the type found in it when mimeType is "".
func File(mimeType, path string) (Data, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Data{}, err
	}
	return anyData(mimeType, b)
}
