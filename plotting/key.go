package plotting

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// key says what colours and marks mean. It stands on a white card in the corner of the plot that covers no data, or
// beside the plot when every corner would cover some. A nil or empty key draws nothing.
type key struct {
	title   string // "" for none
	entries []entry
	avoid   dots // data that it must not cover
}

type entry struct {
	label  string
	swatch func(c *draw.Canvas, centre vg.Point)
}

// spot is where a key stands.
type spot struct {
	width, height vg.Length
	left, top     bool
	beside        bool // right of the plot, at its top
}

const (
	keyGap    = vg.Length(8)
	keyPad    = vg.Length(4)
	keySwatch = vg.Length(16)
	keyRow    = vg.Length(12)
	keyLift   = vg.Length(0.8) // the middle of lower-case letters is below that of the line
)

// place finds the spot for the key of plot p on canvas c.
func (k *key) place(p *plot.Plot, c draw.Canvas) spot {
	if k == nil || len(k.entries) == 0 {
		return spot{}
	}
	s := k.size()
	area := p.DataCanvas(c)
	if s.width < area.Size().X/2 && s.height < area.Size().Y*0.7 {
		for _, at := range []spot{{top: true}, {}, {left: true, top: true}, {left: true}} {
			at.width, at.height = s.width, s.height
			if k.covers(p, area, at.box(area)) == 0 {
				return at
			}
		}
	}
	s.beside = true
	return s
}

func (k *key) size() spot {
	width := keyText.Width(k.title)
	rows := len(k.entries)
	if k.title != "" {
		rows++
	}
	for _, e := range k.entries {
		width = max(width, keySwatch+keyText.Width(e.label))
	}
	return spot{width: width + 2*keyPad, height: vg.Length(rows)*keyRow + 2*keyPad}
}

// covers counts the data that a key in box would hide.
func (k *key) covers(p *plot.Plot, area draw.Canvas, box vg.Rectangle) (n int) {
	x, y := p.Transforms(&area)
	for _, d := range k.avoid {
		at, r := vg.Point{X: x(d.x), Y: y(d.y)}, d.radius+2
		if at.X > box.Min.X-r && at.X < box.Max.X+r && at.Y > box.Min.Y-r && at.Y < box.Max.Y+r {
			n++
		}
	}
	return n
}

// box is the card of the spot within or beside area.
func (s spot) box(area draw.Canvas) vg.Rectangle {
	min := vg.Point{X: area.Max.X - keyGap - s.width, Y: area.Max.Y - keyGap - s.height}
	if s.left {
		min.X = area.Min.X + keyGap
	}
	if !s.top {
		min.Y = area.Min.Y + keyGap
	}
	if s.beside {
		min = vg.Point{X: area.Max.X + keyGap, Y: area.Max.Y - s.height}
	}
	return vg.Rectangle{Min: min, Max: min.Add(vg.Point{X: s.width, Y: s.height})}
}

func (k *key) draw(area draw.Canvas, s spot) {
	if k == nil || len(k.entries) == 0 {
		return
	}
	box := s.box(area)
	if !s.beside {
		area.SetColor(alpha(paper, 0.92))
		area.Fill(box.Path())
		area.SetLineStyle(draw.LineStyle{Color: grid, Width: 0.5})
		area.Stroke(box.Path())
	}
	left, row := box.Min.X+keyPad, box.Max.Y-keyPad-keyRow/2
	style := keyText
	style.YAlign = draw.YCenter
	if k.title != "" {
		bold := style
		bold.Font.Weight = titleText.Font.Weight
		area.FillText(bold, vg.Point{X: left, Y: row + keyLift}, k.title)
		row -= keyRow
	}
	for _, e := range k.entries {
		e.swatch(&area, vg.Point{X: left + keySwatch/2 - 2, Y: row})
		area.FillText(style, vg.Point{X: left + keySwatch, Y: row + keyLift}, e.label)
		row -= keyRow
	}
}

// dotEntry is the entry of a kind of dot.
func dotEntry(label string, d dot) entry {
	return entry{label, func(c *draw.Canvas, at vg.Point) { d.draw(c, at) }}
}
