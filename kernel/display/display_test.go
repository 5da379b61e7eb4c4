package display

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

type svgAndText struct{}

func (svgAndText) SVG() string    { return "<svg/>" }
func (svgAndText) String() string { return "text" }

type renderer struct{ svgAndText }

func (renderer) Render() Data { return HTML("<i>r</i>") }

type simple struct{}

func (simple) SimpleRender() MIMEMap { return MIMEMap{"text/markdown": "*m*"} }

func TestRender(t *testing.T) {
	for _, c := range []struct {
		v    any
		want MIMEMap
	}{
		{svgAndText{}, MIMEMap{"image/svg+xml": "<svg/>", "text/plain": "text"}},
		{renderer{}, MIMEMap{"text/html": "<i>r</i>", "text/plain": "<i>r</i>"}},
		{simple{}, MIMEMap{"text/markdown": "*m*", "text/plain": "display.simple"}},
		{HTML("x"), MIMEMap{"text/html": "x", "text/plain": "x"}},
	} {
		d, ok := Render(c.v)
		if !ok || !reflect.DeepEqual(d.Data, c.want) {
			t.Errorf("%T: %v %v, want %v", c.v, d.Data, ok, c.want)
		}
	}
	for _, v := range []any{1, "x", []int{1}, struct{ A int }{1}, errors.New("e")} {
		if _, ok := Render(v); ok {
			t.Errorf("%T shows itself", v)
		}
	}
}

func TestImages(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 7, 5))
	img.SetGray(3, 2, color.Gray{200})
	d, ok := Render(image.Image(img))
	b, _ := d.Data[MIMETypePNG].([]byte)
	back, err := png.Decode(bytes.NewReader(b))
	if !ok || err != nil || back.Bounds() != img.Bounds() {
		t.Fatalf("image as %v: %v", d.Data, err)
	}
	if size := d.Metadata[MIMETypePNG]; !reflect.DeepEqual(size, MIMEMap{"width": 7, "height": 5}) {
		t.Errorf("metadata %v", size)
	}
	for want, v := range map[string]any{
		MIMETypePNG: b, MIMETypeSVG: `<?xml version="1.0"?><svg></svg>`, MIMETypeHTML: "<html><body>x", MIMETypeText: strings.NewReader("plain"), MIMETypePDF: []byte("%PDF-1.4"),
	} {
		if d, err := Auto(v); err != nil || d.Data[want] == nil {
			t.Errorf("Auto(%T) gives %v, %v, want %s", v, d.Data, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "x.png")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err := File("", path); err != nil || !bytes.Equal(d.Data[MIMETypePNG].([]byte), b) {
		t.Errorf("File: %v, %v", d, err)
	}
	if _, err := Any("text/html", 3); err == nil {
		t.Error("an int is shown as HTML")
	}
	if got := Latex("x^2").Data[MIMETypeLatex]; got != "$x^2$" {
		t.Errorf("Latex %v", got)
	}
	if got := Math("x").Data[MIMETypeLatex]; got != "$$x$$" {
		t.Errorf("Math %v", got)
	}
}

type recorded struct {
	ids     []any
	updates []bool
	cleared int
}

func (r *recorded) Publish(d Data, update bool) error {
	r.ids, r.updates = append(r.ids, d.Transient["display_id"]), append(r.updates, update)
	return nil
}

func (r *recorded) Clear(bool) error { r.cleared++; return nil }

func TestLive(t *testing.T) {
	if err := Display(HTML("x")); !errors.Is(err, ErrNoNotebook) {
		t.Errorf("without a notebook: %v", err)
	}
	r := &recorded{}
	Connect(r)
	defer Connect(nil)
	a, err := Show(HTML("a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Show(HTML("b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Update(HTML("a2")), Display(HTML("c")), Clear(true)); err != nil {
		t.Fatal(err)
	}
	want := []any{string(a), string(b), string(a), nil}
	if !reflect.DeepEqual(r.ids, want) || !reflect.DeepEqual(r.updates, []bool{false, false, true, false}) || a == b || r.cleared != 1 {
		t.Errorf("published %v %v, cleared %d", r.ids, r.updates, r.cleared)
	}
}
