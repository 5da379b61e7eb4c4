// Package page turns an executed notebook into one HTML file that needs nothing else: no script, no font, no
// network. It follows the reader's light or dark setting and prints well. It deliberately knows no kernel and no
// search: it reads nbformat 4.
//
// Text of the notebook (sources, streams, tracebacks, plain results) is escaped. What a kernel sent as HTML or SVG is
// shown as it is, within bounds: its elements are balanced, so that it can't close the page's own, elements that act
// on the whole page are left out, and the page's Content-Security-Policy lets no script run and nothing load.
//
// The main path: Notebook decodes, renders each cell (markdown.go, golang.go, output.go, ansi.go) and hands the
// parts to Write, which other pages of skep use as well.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed style.css
var style string

//go:embed page.gohtml
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// policy lets a page show data it carries, and nothing else.
const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// Document is a page to write.
type Document struct {
	Title  string
	Footer string        // one line; "" for none
	Body   template.HTML // trusted markup
}

// Write writes the document as one HTML file.
func Write(w io.Writer, d Document) error {
	title := strings.TrimSpace(d.Title)
	if title == "" {
		title = "Notebook"
	}
	err := pageTemplate.Execute(w, map[string]any{
		"Title": title, "Footer": d.Footer, "Body": d.Body, "Policy": policy, "Style": template.CSS(style),
	})
	if err != nil {
		return fmt.Errorf("page: write: %w", err)
	}
	return nil
}

// Notebook writes an executed notebook, the bytes of an .ipynb file, as one HTML file. fallback is the title of a
// notebook that has none.
func Notebook(w io.Writer, ipynb []byte, fallback string) error {
	nb, err := decode(ipynb)
	if err != nil {
		return err
	}
	title := nb.title()
	if title == "" {
		title = fallback
	}
	var body bytes.Buffer
	for _, c := range nb.Cells {
		body.WriteString(string(renderCell(c, nb.language())))
	}
	return Write(w, Document{Title: title, Footer: nb.Metadata.Kernel.DisplayName, Body: template.HTML(body.String())})
}

// renderCell is one <section> with the cell's source and outputs.
func renderCell(c cell, language string) template.HTML {
	var b strings.Builder
	switch c.Type {
	case "markdown":
		fmt.Fprintf(&b, "<section class=\"markdown\">\n%s</section>\n", markdown(string(c.Source), c.Attachments))
	case "code":
		b.WriteString("<section class=\"code\">\n")
		if strings.TrimSpace(string(c.Source)) != "" {
			fmt.Fprintf(&b, "<div class=\"in\"><span class=\"prompt\">%s</span><pre><code>%s</code></pre></div>\n",
				prompt(c), Highlight(string(c.Source), language))
		}
		for _, o := range joinStreams(c.Outputs) {
			b.WriteString(string(renderOutput(o)))
		}
		b.WriteString("</section>\n")
	default:
		fmt.Fprintf(&b, "<section class=\"raw\"><pre>%s</pre></section>\n", template.HTMLEscapeString(string(c.Source)))
	}
	return template.HTML(b.String())
}

// prompt is the number of the cell and, below it, how long it ran.
func prompt(c cell) string {
	number := " "
	if c.Count != nil {
		number = fmt.Sprint(*c.Count)
	}
	p := "[" + number + "]"
	if took, known := c.took(); known && took.Seconds() >= 0.1 {
		p += fmt.Sprintf("<br><small>%.1f s</small>", took.Seconds())
	}
	return p
}
