package page

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// rendered is the page of testdata/every.ipynb, parsed by an HTML parser.
func rendered(t *testing.T) *html.Node {
	t.Helper()
	ipynb, err := os.ReadFile("testdata/every.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Notebook(&out, ipynb, "fallback"); err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("PAGE_OUT"); dir != "" { // to look at it in a browser
		if err := os.WriteFile(filepath.Join(dir, "every.html"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// find lists the elements for which match is true, in document order.
func find(n *html.Node, match func(*html.Node) bool) (found []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && match(d) {
			found = append(found, d)
		}
	}
	return found
}

func tag(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == name }
}

func class(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return slices.Contains(strings.Fields(attribute(n, "class")), name) }
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

func only(t *testing.T, nodes []*html.Node, what string) *html.Node {
	t.Helper()
	if len(nodes) != 1 {
		t.Fatalf("%d of %s, want 1", len(nodes), what)
	}
	return nodes[0]
}

func TestEveryOutput(t *testing.T) {
	doc := rendered(t)
	sections := find(only(t, find(doc, tag("main")), "<main>"), tag("section"))
	if len(sections) != 15 {
		t.Fatalf("%d sections, want one for each of 15 cells", len(sections))
	}
	for i, row := range []struct {
		kind string
		want []string // texts that must be seen, in any order
	}{
		{"markdown", []string{"Every kind of output", "code", "a link", "bad one", "3.2", "x := 1", "raw HTML"}},
		{"markdown", []string{"An attached picture"}},
		{"code", []string{"[1]", "// greet says hello & more.", "`hello <%s>`"}},
		{"code", []string{"[2]", "x := 0x1F + len(\"é世\") + 'x'", "\"hello <you>\\n\""}},
		{"code", []string{"2.5 s", "reading 100 %\ndone in 2.5 s, exact, ac, gone\nsame stream\n", "<script>alert('stream')</script> & warning\n"}},
		{"code", []string{"[4]", "One circle", "circle 0: centre (0.5, 0.5), radius 0.5"}},
		{"code", []string{"[5]"}},
		{"code", []string{"swarm", "explore", "unclosed"}},
		{"code", []string{"panic: boom\n  In[7] line 1: <b>panic</b>(\"boom\")"}},
		{"code", []string{"Error: no <traceback>"}},
		{"code", []string{"bold and", "one"}},
		{"code", []string{"{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": \"\\u003ci\\u003e\"\n}"}},
		{"code", []string{"[no form that a page can show: application/vnd.jupyter.widget-view+json]"}},
		{"code", []string{"[ ]", "// never run\nfor i := range"}},
		{"raw", []string{"raw <cell>"}},
	} {
		if !class(row.kind)(sections[i]) {
			t.Errorf("section %d is %q, want %q", i, attribute(sections[i], "class"), row.kind)
		}
		for _, want := range row.want {
			if text := textOf(sections[i]); !strings.Contains(text, want) {
				t.Errorf("section %d doesn't show %q but:\n%s", i, want, text)
			}
		}
	}
	if title := textOf(only(t, find(doc, tag("title"))[:1], "<title>")); title != "Every kind of output" {
		t.Errorf("title %q", title)
	}
	if strings.Contains(textOf(doc), "reading  10 %") {
		t.Error("a carriage return did not overwrite")
	}
}

// TestNothingFromOutsideRuns: no script, no handler that could run, nothing that loads, and one body.
func TestNothingFromOutsideRuns(t *testing.T) {
	doc := rendered(t)
	for _, name := range []string{"script", "iframe", "object", "embed", "link", "base"} {
		if n := len(find(doc, tag(name))); n != 0 {
			t.Errorf("%d <%s>", n, name)
		}
	}
	policies := find(doc, func(n *html.Node) bool {
		return n.Data == "meta" && attribute(n, "http-equiv") == "Content-Security-Policy"
	})
	if got := attribute(only(t, policies, "policy"), "content"); !strings.HasPrefix(got, "default-src 'none';") || strings.Contains(got, "script-src") {
		t.Errorf("policy %q", got)
	}
	for _, n := range find(doc, func(n *html.Node) bool { return true }) {
		for _, a := range n.Attr {
			if a.Key == "src" && !strings.HasPrefix(a.Val, "data:image/") || a.Key == "href" && strings.Contains(a.Val, "javascript") {
				t.Errorf("<%s %s=%.60q>", n.Data, a.Key, a.Val)
			}
		}
	}
	only(t, find(doc, tag("body")), "<body>")
	only(t, find(doc, tag("footer")), "<footer>")
	if n := len(find(only(t, find(doc, tag("main")), "<main>"), class("raw"))); n != 1 {
		t.Error("a kernel's HTML closed the page's own elements: the last cell is outside <main>")
	}
}

func TestPictures(t *testing.T) {
	doc := rendered(t)
	svg := only(t, find(doc, tag("svg")), "<svg>")
	if attribute(svg, "viewBox") == "" || len(find(svg, tag("title"))) != 1 {
		t.Error("the SVG lost its view box or its hover title")
	}
	images := find(doc, tag("img"))
	if len(images) != 2 { // the attachment and the PNG without SVG
		t.Fatalf("%d images, want 2", len(images))
	}
	last := images[1]
	if attribute(last, "width") != "220" || attribute(last, "alt") != `a "picture" <of> one circle` {
		t.Errorf("image of width %q, alt %q", attribute(last, "width"), attribute(last, "alt"))
	}
}

func TestBadNotebooks(t *testing.T) {
	for name, row := range map[string]struct{ source, want string }{
		"not JSON":  {"{", "not a notebook"},
		"format 3":  {`{"nbformat": 3, "worksheets": []}`, "nbformat 3"},
		"no format": {`{}`, "nbformat 0"},
		"text":      {`{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}`, "string"},
	} {
		if err := Notebook(&bytes.Buffer{}, []byte(row.source), ""); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, row.want)
		}
	}
	var out bytes.Buffer
	if err := Notebook(&out, []byte(`{"nbformat": 4}`), "empty <notebook>"); err != nil || !strings.Contains(out.String(), "<title>empty &lt;notebook&gt;</title>") {
		t.Errorf("an empty notebook: %v", err)
	}
}

// TestHighlightLosesNothing: without its tags, highlighted text is the text, whatever it is.
func TestHighlightLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"x", " ", "\n", "`", "\"", "'", "/*", "*/", "//", "func", "(", ")", "0x", "1e", "é", "世", "\x00", "\xff", "\t", "<b>", "&", ":=", "\\", ".", "..."}
	for range 5000 {
		var source string
		for range r.IntN(12) {
			source += pieces[r.IntN(len(pieces))]
		}
		if got := plain(t, string(Highlight(source, "go"))); got != plain(t, template.HTMLEscapeString(source)) {
			t.Fatalf("%q became %q", source, got)
		}
	}
	if got := plain(t, string(Highlight("a\r\n`b\r\nc`", "go"))); got != "a\n`b\nc`" {
		t.Errorf("carriage returns: %q", got)
	}
}

// plain is the text of an HTML fragment as a parser reads it.
func plain(t *testing.T, fragment string) string {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader("<code>"+fragment+"</code>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return textOf(nodes[0])
}

// TestHighlightAgainstParser compares the classes with what go/parser finds in this package's own files.
func TestHighlightAgainstParser(t *testing.T) {
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		spans := find(parseSpans(t, string(Highlight(string(source), "go"))), tag("span"))
		got := map[string]map[string]int{}
		for _, s := range spans {
			kind := attribute(s, "class")
			if got[kind] == nil {
				got[kind] = map[string]int{}
			}
			got[kind][textOf(s)]++
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]int{"hl-s": {}, "hl-n": {}, "hl-c": {}}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				if literal.Kind == token.STRING || literal.Kind == token.CHAR {
					want["hl-s"][literal.Value]++
				} else {
					want["hl-n"][literal.Value]++
				}
			}
			if call, ok := n.(*ast.CallExpr); ok {
				if name, ok := call.Fun.(*ast.Ident); ok && !slices.Contains(predeclared, name.Name) && got["hl-f"][name.Name] == 0 {
					t.Errorf("%s: the call of %s is not marked", fset.Position(call.Pos()), name.Name)
				}
			}
			return true
		})
		for _, group := range file.Comments {
			for _, c := range group.List {
				want["hl-c"][c.Text]++
			}
		}
		for kind := range want {
			if fmt.Sprint(got[kind]) != fmt.Sprint(want[kind]) && len(want[kind]) > 0 {
				t.Errorf("%s: %s marks %v, the parser finds %v", name, kind, got[kind], want[kind])
			}
		}
	}
}

func parseSpans(t *testing.T, fragment string) *html.Node {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader("<code>"+fragment+"</code>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return nodes[0]
}

func TestTerminal(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"plain <b> & \"q\"", "plain &lt;b&gt; &amp; &#34;q&#34;"},
		{"\x1b[31mred\x1b[0m not", `<span class="fg1">red</span> not`},
		{"\x1b[1;4;92mok\x1b[22;24mless\x1b[39mno", `<span class="b u fg2">ok</span><span class="fg2">less</span>no`},
		{"\x1b[38;5;196mx\x1b[48;2;1;2;3my\x1b[m z", `<span class="dark" style="color:#ff0000;">x</span><span style="color:#ff0000;background:#010203;">y</span> z`},
		{"\x1b[38;5;9mx\x1b[38;5;244my", `<span class="fg1">x</span><span style="color:#808080;">y</span>`},
		{"\x1b[38:5:21mx", `<span class="dark" style="color:#0000ff;">x</span>`},
		{"\x1b[38;5mx\x1b[38;7;1my", "xy"}, // broken colours
		{"\x1b[38;2;255;255;255mx", `<span class="pale" style="color:#ffffff;">x</span>`},
		{"\x1b[7minverse\x1b[27m", `<span class="rev">inverse</span>`},
		{"\x1b]0;title\x07a\x1b[2J\x1b[10;10Hb\x1b(Bc\x1b", "abc"},
		{"10 %\r50 %\r100 %\nnext\r\n", "100 %\nnext\n"},
		{"\x1b[32mfirst\rlast", `<span class="fg2">last</span>`},
		{"abc\b\bX\b\b\b\bY", "Y"},
		{"bell\a and \x00 nul\u009b", "bell and  nul"},
		{"", ""},
	} {
		if got := string(terminal(row.text)); got != row.want {
			t.Errorf("%q:\ngot  %s\nwant %s", row.text, got, row.want)
		}
	}
}

// TestContain: whatever a kernel sends, a parser finds what follows it outside of it.
func TestContain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"<div>", "</div>", "</section>", "</main>", "</body>", "</html>", "<table>", "<tr>", "</td>", "text", "<!--", "-->", "<style>",
		"</style>", "<textarea>", "<title>", "<svg>", "</svg>", "<p", ">", "\"", "<plaintext>", "<script>", "<select>", "<math>", "<template>", "<xmp>", "<noscript>", "<form>", "<a>", "<b>", "<svg><title>", "<?xml version=\"1.0\"?>", "<![CDATA["}
	for range 5000 {
		var markup string
		for range 1 + r.IntN(8) {
			markup += pieces[r.IntN(len(pieces))]
		}
		doc, err := html.Parse(strings.NewReader(`<main><section><div class="html">` + contain(markup) + `</div></section><section id="next"></section></main>`))
		if err != nil {
			t.Fatal(err)
		}
		next := find(doc, func(n *html.Node) bool { return attribute(n, "id") == "next" })
		if len(next) != 1 || next[0].Parent.Data != "main" || next[0].Parent.Parent.Data != "body" {
			t.Fatalf("%q contained as %q swallows or breaks what follows", markup, contain(markup))
		}
	}
}
