package plotting

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// Ticks marks up to seven round numbers, seldom fewer than four (steps of 1, 2, 2.5 or 5 times a power of ten), and
// writes all of them with the decimals that the step needs: 0.90 0.95 1.00, or 0 20 40. It has no minor ticks. It is
// a plot.Ticker.
type Ticks struct {
	Whole bool // only whole numbers: for counts
}

// Ticks returns the marks in [min, max]; none if that isn't a finite, increasing range.
func (t Ticks) Ticks(min, max float64) []plot.Tick {
	span := max - min
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	step, first, last, decimals := t.step(min, max)
	marks := make([]plot.Tick, 0, 7)
	for i := range int(last-first) + 1 {
		value := (first + float64(i)) * step
		marks = append(marks, plot.Tick{Value: value, Label: number(value, decimals)})
	}
	return marks
}

// step is the smallest round step that has at most seven multiples in [min, max], those multiples from first to last,
// and the decimals that it needs.
func (t Ticks) step(min, max float64) (step, first, last float64, decimals int) {
	for exponent := math.Floor(math.Log10((max - min) / 7)); ; exponent++ {
		for _, m := range []float64{1, 2, 2.5, 5} {
			step = m * math.Pow(10, exponent)
			if t.Whole && step != math.Trunc(step) {
				continue
			}
			first, last = math.Ceil(min/step-1e-9), math.Floor(max/step+1e-9)
			if last-first >= 7 {
				continue
			}
			decimals = int(-exponent)
			if m == 2.5 {
				decimals++
			}
			if decimals < 0 {
				decimals = 0
			}
			return step, first, last, decimals
		}
	}
}

// number writes v with so many decimals, in powers of ten where that would be long: 1.5e7.
func number(v float64, decimals int) string {
	if v == 0 {
		return "0"
	}
	size := math.Abs(v)
	if size < 1e6 && decimals <= 9 {
		return minus(strconv.FormatFloat(v, 'f', decimals, 64))
	}
	digits := decimals + int(math.Floor(math.Log10(size))) // behind the first
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', min(max(digits, 0), 15), 64), "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	power, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	return minus(mantissa + "e" + strconv.Itoa(power))
}

// minus sets a minus sign instead of a hyphen.
func minus(s string) string { return strings.ReplaceAll(s, "-", "−") }
