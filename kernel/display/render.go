package display

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // so that the size of every common image is found
	_ "image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
)

// Render returns how v shows itself, and false when v implements none of this package's interfaces and is no image.
// A text form is always there. A method of v that panics, for instance on a nil receiver, is not recovered here.
func Render(v interface{}) (Data, bool) {
	d, ok := rendered(v)
	if !ok {
		return d, false
	}
	if d.Data == nil {
		d.Data = MIMEMap{}
	}
	if _, has := d.Data[MIMETypeText]; !has {
		d.Data[MIMETypeText] = plain(v)
	}
	return withSizes(d), true
}

func rendered(v interface{}) (Data, bool) {
	switch v := v.(type) {
	case Data:
		return v, len(v.Data) > 0
	case Renderer:
		return v.Render(), true
	case SimpleRenderer:
		return Data{Data: v.SimpleRender()}, true
	}
	m := MIMEMap{}
	if v, ok := v.(HTMLer); ok {
		m[MIMETypeHTML] = v.HTML()
	}
	if v, ok := v.(JavaScripter); ok {
		m[MIMETypeJavaScript] = v.JavaScript()
	}
	if v, ok := v.(JPEGer); ok {
		m[MIMETypeJPEG] = v.JPEG()
	}
	if v, ok := v.(JSONer); ok {
		m[MIMETypeJSON] = v.JSON()
	}
	if v, ok := v.(Latexer); ok {
		m[MIMETypeLatex] = v.Latex()
	}
	if v, ok := v.(Markdowner); ok {
		m[MIMETypeMarkdown] = v.Markdown()
	}
	if v, ok := v.(PNGer); ok {
		m[MIMETypePNG] = v.PNG()
	}
	if v, ok := v.(PDFer); ok {
		m[MIMETypePDF] = v.PDF()
	}
	if v, ok := v.(SVGer); ok {
		m[MIMETypeSVG] = v.SVG()
	}
	if img, ok := v.(image.Image); ok && len(m) == 0 {
		if b, err := encodePNG(img); err == nil {
			m[MIMETypePNG] = b
			m[MIMETypeText] = fmt.Sprintf("image %v", img.Bounds().Size())
		}
	}
	return Data{Data: m}, len(m) > 0
}

// plain is the text form of a value that shows itself in other ways: its String method, else its type.
func plain(v interface{}) string {
	switch v := v.(type) {
	case fmt.Stringer:
		return v.String()
	case error:
		return v.Error()
	}
	return fmt.Sprintf("%T", v)
}

func encodePNG(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}

// withSizes adds width and height of raster images that have no metadata yet.
func withSizes(d Data) Data {
	for _, mime := range []string{MIMETypePNG, MIMETypeJPEG} {
		b, ok := d.Data[mime].([]byte)
		if _, has := d.Metadata[mime]; !ok || has {
			continue
		}
		c, _, err := image.DecodeConfig(bytes.NewReader(b))
		if err != nil {
			continue
		}
		if d.Metadata == nil {
			d.Metadata = MIMEMap{}
		}
		d.Metadata[mime] = MIMEMap{"width": c.Width, "height": c.Height}
	}
	return d
}

func anyData(mimeType string, v interface{}) (Data, error) {
	if mimeType == "" {
		if d, ok := Render(v); ok {
			return d, nil
		}
	}
	switch x := v.(type) {
	case image.Image:
		b, err := encodePNG(x)
		if err != nil {
			return Data{}, err
		}
		v = b
	case io.WriterTo:
		var b bytes.Buffer
		if _, err := x.WriteTo(&b); err != nil {
			return Data{}, err
		}
		v = b.Bytes()
	case io.Reader:
		b, err := io.ReadAll(x)
		if err != nil {
			return Data{}, err
		}
		v = b
	case string, []byte:
	default:
		return Data{}, fmt.Errorf("display: cannot show a %T as %q: want string, []byte, image.Image, io.Reader, io.WriterTo or a value with a render method", v, mimeType)
	}
	if mimeType == "" {
		mimeType = sniff(v)
	}
	if b, ok := v.([]byte); ok && isText(mimeType) {
		v = string(b)
	}
	return withSizes(MakeData(mimeType, v)), nil
}

// sniff finds the MIME type of a string or []byte by its first bytes.
func sniff(v interface{}) string {
	b, ok := v.([]byte)
	if !ok {
		b = []byte(v.(string))
	}
	t, _, _ := strings.Cut(http.DetectContentType(b), ";")
	head := strings.TrimSpace(string(b[:min(len(b), 256)]))
	if (t == "text/xml" || t == "text/plain" || t == "text/html") && strings.Contains(head, "<svg") {
		return MIMETypeSVG
	}
	return t
}

func isText(mimeType string) bool {
	return strings.HasPrefix(mimeType, "text/") || mimeType == MIMETypeSVG || mimeType == MIMETypeJavaScript
}
