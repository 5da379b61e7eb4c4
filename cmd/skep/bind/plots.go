package bind

import (
	"bytes"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"skep/kernel/display"
)

// Size of a bare gonum plot in a cell.
const (
	plotWidth  = 6 * vg.Inch
	plotHeight = 4 * vg.Inch
)

// renderPlot shows gonum plots, which have no render method of their own, as SVG and PNG.
func renderPlot(v any) (display.Data, bool) {
	p, ok := v.(*plot.Plot)
	if !ok {
		return display.Data{}, false
	}
	d := display.Data{Data: display.MIMEMap{display.MIMETypeText: "plot " + p.Title.Text}}
	for mime, format := range map[string]string{display.MIMETypeSVG: "svg", display.MIMETypePNG: "png"} {
		w, err := p.WriterTo(plotWidth, plotHeight, format)
		if err != nil {
			return display.Data{}, false
		}
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			return display.Data{}, false
		}
		d.Data[mime] = b.Bytes()
	}
	return d, true
}
