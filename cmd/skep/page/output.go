package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// joinStreams joins texts of one stream that follow each other: a carriage return in one may overwrite the other.
func joinStreams(outputs []output) (joined []output) {
	for _, o := range outputs {
		if n := len(joined); n > 0 && o.Type == "stream" && joined[n-1].Type == "stream" && joined[n-1].Name == o.Name {
			joined[n-1].Text += o.Text
			continue
		}
		joined = append(joined, o)
	}
	return joined
}

// renderOutput is one <div class="out"> with the output's richest form.
func renderOutput(o output) template.HTML {
	var body template.HTML
	switch o.Type {
	case "stream":
		class := "stdout"
		if o.Name == "stderr" {
			class = "stderr"
		}
		body = pre(class, terminal(string(o.Text)))
	case "error":
		text := strings.Join(o.Traceback, "\n")
		if strings.TrimSpace(text) == "" {
			text = o.Error + ": " + o.Value
		}
		body = pre("error", terminal(text))
	default:
		body = renderData(o)
	}
	if body == "" {
		return ""
	}
	return `<div class="out"><span class="prompt"></span>` + body + "</div>\n"
}

func pre(class string, body template.HTML) template.HTML {
	return template.HTML(`<pre class="` + class + `">` + string(body) + `</pre>`)
}

// forms are the MIME types that the page can show, the richest first, and how.
var forms = []struct {
	mime   string
	render func(o output, mime, data string) template.HTML
}{
	{"text/html", func(_ output, _, data string) template.HTML {
		return template.HTML(`<div class="html">` + contain(data) + `</div>`)
	}},
	{"image/svg+xml", func(_ output, _, data string) template.HTML {
		return template.HTML(`<div class="picture">` + contain(data) + `</div>`)
	}},
	{"image/png", renderImage},
	{"image/jpeg", renderImage},
	{"image/gif", renderImage},
	{"text/markdown", func(_ output, _, data string) template.HTML {
		return template.HTML(`<div class="markdown">` + string(markdown(data, nil)) + `</div>`)
	}},
	{"text/latex", renderPlain},
	{"text/plain", renderPlain},
	{"application/json", func(_ output, _, data string) template.HTML {
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(data), "", "  ") != nil {
			return renderPlain(output{}, "", data)
		}
		return renderPlain(output{}, "", indented.String())
	}},
}

// renderData shows the richest form of a bundle that isn't empty, or names what can't be shown.
func renderData(o output) template.HTML {
	for _, form := range forms {
		data := dataText(o.Data[form.mime])
		if strings.TrimSpace(data) == "" {
			continue
		}
		if rendered := form.render(o, form.mime, data); rendered != "" {
			return rendered
		}
	}
	if len(o.Data) == 0 {
		return ""
	}
	unknown := slices.Sorted(maps.Keys(o.Data))
	return pre("", template.HTML(template.HTMLEscapeString("[no form that a page can show: "+strings.Join(unknown, ", ")+"]")))
}

// dataText is a bundle's value: a text, or JSON as it stands.
func dataText(raw json.RawMessage) string {
	var t lines
	if t.UnmarshalJSON(raw) == nil {
		return string(t)
	}
	return string(raw)
}

func renderPlain(_ output, _, data string) template.HTML {
	return pre("", terminal(data))
}

// renderImage embeds a base64 image, at the size that the metadata gives. One that isn't base64 shows nothing, so
// that the next form does.
func renderImage(o output, mime, data string) template.HTML {
	data = strings.Join(strings.Fields(data), "")
	if raw, err := base64.StdEncoding.DecodeString(data); err != nil || len(raw) == 0 {
		return ""
	}
	var size struct {
		Width  float64 `json:"width"`
		Height float64 `json:"height"`
	}
	_ = json.Unmarshal(o.Metadata[mime], &size) // no metadata: the image's own size
	attributes := ""
	if size.Width > 0 && size.Height > 0 {
		attributes = fmt.Sprintf(` width="%.0f" height="%.0f"`, size.Width, size.Height)
	}
	alt := template.HTMLEscapeString(strings.TrimSpace(dataText(o.Data["text/plain"])))
	return template.HTML(fmt.Sprintf(`<div class="picture"><img src="data:%s;base64,%s" alt="%s"%s></div>`, mime, data, alt, attributes))
}

// contain is markup with its elements closed, so that it can't end the page's own, and without those that would act
// on the whole page. Handlers and style attributes stay: the page's policy lets no script run.
func contain(markup string) string {
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(markup), context)
	if err != nil {
		return string(pre("", template.HTML(template.HTMLEscapeString(markup))))
	}
	var out bytes.Buffer
	for _, n := range nodes {
		if outOfPlace(n) {
			continue
		}
		removeOutOfPlace(n)
		if err := html.Render(&out, n); err != nil {
			return string(pre("", template.HTML(template.HTMLEscapeString(markup))))
		}
	}
	return out.String()
}

// outOfPlace is true for elements that act on the whole page, or can only load what the policy forbids.
func outOfPlace(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Meta, atom.Base, atom.Link, atom.Iframe, atom.Object, atom.Embed, atom.Frame, atom.Frameset,
		atom.Plaintext: // the last can't be closed
		return n.Type == html.ElementNode
	}
	return false
}

func removeOutOfPlace(n *html.Node) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if outOfPlace(child) {
			n.RemoveChild(child)
		} else {
			removeOutOfPlace(child)
		}
		child = next
	}
}
