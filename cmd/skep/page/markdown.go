package page

import (
	"bytes"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// markdowner renders GitHub's Markdown; raw HTML and dangerous links in it are left out, goldmark's default.
var markdowner = goldmark.New(goldmark.WithExtensions(extension.GFM))

// markdown renders a cell; "attachment:name" in an image shows the cell's attachment of that name.
func markdown(source string, attachments map[string]map[string]lines) template.HTML {
	raw := []byte(source)
	doc := markdowner.Parser().Parse(text.NewReader(raw))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if image, ok := n.(*ast.Image); ok && entering {
			image.Destination = attached(image.Destination, attachments)
		}
		return ast.WalkContinue, nil
	})
	var out bytes.Buffer
	if err := markdowner.Renderer().Render(&out, raw, doc); err != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>\n") // show it as it was written
	}
	return template.HTML(out.String())
}

// attached is the data URL of the attachment that destination names, or destination.
func attached(destination []byte, attachments map[string]map[string]lines) []byte {
	name, ok := strings.CutPrefix(string(destination), "attachment:")
	if !ok {
		return destination
	}
	for mime, data := range attachments[name] {
		if strings.HasPrefix(mime, "image/") {
			return []byte("data:" + mime + ";base64," + strings.Join(strings.Fields(string(data)), ""))
		}
	}
	return destination
}
