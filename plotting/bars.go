package plotting

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bar is one horizontal bar.
type Bar struct {
	Label string
	Value float64 // drawn as nothing when it isn't finite, and said so
	Note  string  // written behind the bar; "" writes the value
}

// note is what is written behind the bar.
func (b Bar) note() string {
	if b.Note != "" {
		return shorten(printable(b.Note), 40)
	}
	return minus(fmt.Sprintf("%.4g", b.Value))
}

// BarData is what Bars draws.
type BarData struct {
	Title, Caption string
	Axis           string // what the values are, with their unit: "seconds"
	Bars           []Bar  // top down
}

// Bars draws horizontal bars from zero, each with its value.
func Bars(data BarData) *Figure {
	p := plot.New()
	p.X.Label.Text = data.Axis
	width, height := 6*vg.Inch, 0.7*vg.Inch+vg.Length(max(len(data.Bars), 2))*barRow
	if len(data.Bars) == 0 {
		p.Add(message("nothing to show yet"))
		return New(p, width, height, data.Title, data.Caption)
	}
	labels := make(plot.ConstantTicks, len(data.Bars))
	p.X.Min, p.X.Max = 0, 0
	names, notes := vg.Length(0), vg.Length(0) // widths
	for i, b := range data.Bars {
		labels[i] = plot.Tick{Value: -float64(i), Label: shorten(printable(b.Label), 32)}
		names, notes = max(names, tickText.Width(labels[i].Label)), max(notes, keyText.Width(b.note()))
		if isFinite(b.Value) {
			p.X.Min, p.X.Max = math.Min(p.X.Min, b.Value), math.Max(p.X.Max, b.Value)
		}
	}
	p.Add(bars(data.Bars))
	finite(&p.X)
	room := float64((width - names - 10) / max(width-names-notes-20, width/4))
	p.X.Max = p.X.Min + (p.X.Max-p.X.Min)*room // so that a note fits behind the longest bar
	finite(&p.X)
	p.Y.Min, p.Y.Max = -float64(len(data.Bars))+0.4, 0.6
	p.Y.Tick.Marker, p.Y.Tick.Length = labels, 0
	return New(p, width, height, data.Title, data.Caption)
}

const barRow = vg.Length(20)

// shorten cuts s to n runes, with an ellipsis.
func shorten(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

type bars []Bar

func (bs bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := keyText
	style.YAlign = draw.YCenter
	for i, b := range bs {
		note, value := b.note(), b.Value
		if !isFinite(value) {
			value = 0
		}
		from, to, middle := x(0), x(value), y(-float64(i))
		hover(c, b.Label+": "+note, func() {
			rect := vg.Rectangle{Min: vg.Point{X: min(from, to), Y: middle - barRow*0.33}, Max: vg.Point{X: max(from, to), Y: middle + barRow*0.33}}
			c.SetColor(palette[0])
			c.Fill(rect.Path())
		})
		c.FillText(style, vg.Point{X: max(from, to) + 4, Y: middle + keyLift}, note)
	}
	c.StrokeLine2(draw.LineStyle{Color: axis, Width: 0.8}, x(0), c.Min.Y, x(0), c.Max.Y)
}

// StageTime is the time that one stage of one round took.
type StageTime struct {
	Round   int
	Stage   string
	Seconds float64
}

// StageTimes draws the time of each stage, summed over rounds, in the order in which the stages first occur.
func StageTimes(times []StageTime) *Figure {
	var order []string
	seconds, rounds, total := map[string]float64{}, map[int]bool{}, 0.0
	for _, t := range times {
		if !isFinite(t.Seconds) {
			continue
		}
		if _, seen := seconds[t.Stage]; !seen {
			order = append(order, t.Stage)
		}
		seconds[t.Stage] += t.Seconds
		rounds[t.Round] = true
		total += t.Seconds
	}
	data := BarData{Title: "Time per stage", Axis: "seconds", Caption: "No stage has been timed yet."}
	for _, stage := range order {
		note := fmt.Sprintf("%s s", seconds3(seconds[stage]))
		if total > 0 {
			note += fmt.Sprintf(" (%.0f %%)", 100*seconds[stage]/total)
		}
		data.Bars = append(data.Bars, Bar{Label: stage, Value: seconds[stage], Note: note})
	}
	if len(order) > 0 {
		data.Caption = fmt.Sprintf("%s s in %s; percentages are of this sum.", seconds3(total), count(len(rounds), "round", "rounds"))
	}
	return Bars(data)
}

// seconds3 writes seconds with three digits, and never in powers of ten.
func seconds3(s float64) string {
	decimals := max(0, min(3, 2-int(math.Floor(math.Log10(math.Max(s, 1e-3))))))
	return strings.TrimSpace(fmt.Sprintf("%.*f", decimals, s))
}
