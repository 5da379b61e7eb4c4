package plotting

import (
	"image/color"
	"math"
	"strings"
	"unicode/utf8"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The house style. Sizes are points.
var (
	paper   = color.NRGBA{R: 255, G: 255, B: 255, A: 255}
	ink     = color.NRGBA{R: 0x22, G: 0x22, B: 0x22, A: 255}
	inkSoft = color.NRGBA{R: 0x55, G: 0x55, B: 0x55, A: 255}
	axis    = color.NRGBA{R: 0x77, G: 0x77, B: 0x77, A: 255}
	grid    = color.NRGBA{R: 0xe6, G: 0xe6, B: 0xe6, A: 255}
	wrong   = color.NRGBA{R: 0xc1, G: 0x12, B: 0x1f, A: 255} // violated constraints

	titleText   = sans(12, xfont.WeightBold, ink)
	labelText   = sans(10, xfont.WeightNormal, ink)
	tickText    = sans(9, xfont.WeightNormal, inkSoft)
	keyText     = sans(9, xfont.WeightNormal, ink)
	captionText = sans(9, xfont.WeightNormal, inkSoft)
)

// palette holds seven colours of Okabe and Ito's set, which stay apart for every common kind of colour blindness
// (M. Okabe, K. Ito, "Color Universal Design", 2008); its yellow and black are left out, as they vanish on paper
// and among the axes.
var palette = []color.NRGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 255}, // blue
	{R: 0xe6, G: 0x9f, B: 0x00, A: 255}, // orange
	{R: 0x00, G: 0x9e, B: 0x73, A: 255}, // green
	{R: 0xcc, G: 0x79, B: 0xa7, A: 255}, // purple
	{R: 0xd5, G: 0x5e, B: 0x00, A: 255}, // vermilion
	{R: 0x56, G: 0xb4, B: 0xe9, A: 255}, // sky
	{R: 0x66, G: 0x66, B: 0x66, A: 255}, // grey
}

// marks are the outlines that tell groups apart once the colours repeat, and in black and white.
var marks = []mark{circle, square, triangle, diamond}

// tone is the colour and mark of the i-th group; they repeat together after 28.
func tone(i int) (color.NRGBA, mark) {
	return palette[i%len(palette)], marks[(i/len(palette)+i%len(palette))%len(marks)]
}

func alpha(c color.NRGBA, a float64) color.NRGBA {
	c.A = uint8(math.Round(255 * a))
	return c
}

func sans(size font.Length, weight xfont.Weight, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
		XAlign:  text.XLeft,
		YAlign:  text.YTop,
		Handler: plot.DefaultTextHandler,
	}
}

// dress gives p the house style and a finite range.
func dress(p *plot.Plot) {
	p.BackgroundColor = nil // the card is the background
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Padding = 0
		a.LineStyle.Width = 0 // gonum's two lines don't meet; drawGrid draws ours
		a.Tick.LineStyle = draw.LineStyle{Color: axis, Width: 0.6}
		if a.Tick.Length > 0 {
			a.Tick.Length = 4
		}
		restyle(&a.Tick.Label, tickText)
		restyle(&a.Label.TextStyle, labelText)
		a.Label.Padding = 4
		if _, gonums := a.Tick.Marker.(plot.DefaultTicks); gonums {
			a.Tick.Marker = Ticks{}
		}
		finite(a)
	}
	restyle(&p.Legend.TextStyle, keyText)
}

// restyle takes font and colour from style and keeps alignment and rotation.
func restyle(s *text.Style, style text.Style) { s.Font, s.Color = style.Font, style.Color }

// finite makes the range of an axis one that can be drawn: ordered, not empty, and narrow enough that its length is
// a number. An axis without data runs from 0 to 1.
func finite(a *plot.Axis) {
	const most = math.MaxFloat64 / 8
	switch {
	case math.IsNaN(a.Min) || math.IsNaN(a.Max) || math.IsInf(a.Min, 1) || math.IsInf(a.Max, -1):
		a.Min, a.Max = 0, 1
	case a.Min > a.Max:
		a.Min, a.Max = a.Max, a.Min
	}
	a.Min, a.Max = math.Max(a.Min, -most), math.Min(a.Max, most)
	if least := 1e-12 * math.Max(math.Abs(a.Min), math.Abs(a.Max)); a.Max-a.Min <= least {
		half := math.Max(math.Abs(a.Min)*0.05, least)
		if half == 0 {
			half = 1
		}
		a.Min, a.Max = a.Min-half, a.Max+half
	}
}

// pad widens a range by the fraction by at both ends, so that no mark touches the frame.
func pad(a *plot.Axis, by float64) {
	finite(a)
	d := by * (a.Max - a.Min)
	a.Min, a.Max = a.Min-d, a.Max+d
}

// drawGrid draws light lines at the ticks, under the data, and the left and lower edge.
func drawGrid(p *plot.Plot, c draw.Canvas) {
	line := draw.LineStyle{Color: grid, Width: 0.5}
	edge := draw.LineStyle{Color: axis, Width: 0.8}
	x, y := p.Transforms(&c)
	if p.X.Tick.Length > 0 {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if at := x(t.Value); !t.IsMinor() && c.ContainsX(at) {
				c.StrokeLine2(line, at, c.Min.Y, at, c.Max.Y)
			}
		}
		c.StrokeLine2(edge, c.Min.X, c.Min.Y, c.Max.X, c.Min.Y)
	}
	if p.Y.Tick.Length > 0 {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if at := y(t.Value); !t.IsMinor() && c.ContainsY(at) {
				c.StrokeLine2(line, c.Min.X, at, c.Max.X, at)
			}
		}
		c.StrokeLine2(edge, c.Min.X, c.Min.Y, c.Min.X, c.Max.Y)
	}
}

// wrap breaks s into lines no wider than width: at spaces, and inside a word only when the word alone is too wide.
// Line breaks in s stay. An empty s gives no lines.
func wrap(style text.Style, s string, width vg.Length) []string {
	var lines []string
	for _, paragraph := range strings.Split(strings.TrimSpace(printable(s)), "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if joined := strings.TrimSpace(line + " " + word); style.Width(joined) <= width {
				line = joined
				continue
			}
			if line != "" {
				lines = append(lines, line)
			}
			for line = word; style.Width(line) > width; {
				n := fits(style, line, width)
				lines, line = append(lines, line[:n]), line[n:]
			}
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// fits is the number of bytes of s, at least one rune, that are no wider than width.
func fits(style text.Style, s string, width vg.Length) int {
	_, end := utf8.DecodeRuneInString(s)
	for i := range s {
		if i > end && style.Width(s[:i]) > width {
			break
		}
		end = max(end, i)
	}
	return end
}

// printable replaces what neither XML nor a font can show: control characters but the line break, and broken UTF-8.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r <= 0x9f || r == '\ufffe' || r == '\uffff':
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

func lineHeight(style text.Style) vg.Length { return 1.3 * style.Font.Size }

// textHeight is the height of lines with the gap that separates them from the plot; no lines have none.
func textHeight(style text.Style, lines []string, gap vg.Length) vg.Length {
	if len(lines) == 0 {
		return 0
	}
	return vg.Length(len(lines))*lineHeight(style) + gap
}

// drawLines draws lines from top downwards at the left edge of c, and returns their height with the gap.
func drawLines(c draw.Canvas, style text.Style, lines []string, top, gap vg.Length) vg.Length {
	style.YAlign = text.YBottom // baseline
	for i, line := range lines {
		c.FillText(style, vg.Point{X: c.Min.X, Y: top - vg.Length(i)*lineHeight(style) - style.Font.Size}, line)
	}
	return textHeight(style, lines, gap)
}
