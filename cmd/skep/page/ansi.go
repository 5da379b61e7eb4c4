package page

import (
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

// escapes are the escape sequences of a terminal (ECMA-48): control sequences, of which the first group is the
// parameters and the second the final byte; operating system commands; and short escapes.
var escapes = regexp.MustCompile("\x1b\\[([0-9:;<=>?]*)[ -/]*([@-~])|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\|$)|\x1b[ -/]*[0-~]|\x1b")

// terminal renders text as a terminal would leave it: colours and weights as <span>s, carriage returns and
// backspaces overwrite, every other control is dropped. All text is escaped.
func terminal(text string) template.HTML {
	var out strings.Builder
	var p pen
	write := func(s string) {
		if s = strings.Map(dropControls, s); s != "" {
			out.WriteString(p.dress(template.HTMLEscapeString(s)))
		}
	}
	done := 0
	text = overwrite(text)
	for _, at := range escapes.FindAllStringSubmatchIndex(text, -1) {
		write(text[done:at[0]])
		if at[4] >= 0 && text[at[4]:at[5]] == "m" {
			p.set(text[at[2]:at[3]])
		}
		done = at[1]
	}
	write(text[done:])
	return template.HTML(out.String())
}

func dropControls(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}

// overwrite resolves the carriage returns and backspaces of progress bars: of each line it keeps what was written
// last. Colours set in an overwritten part stay set.
func overwrite(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.ContainsAny(text, "\r\b") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		parts := strings.Split(strings.TrimRight(line, "\r"), "\r")
		last := len(parts) - 1
		colours := ""
		for _, part := range parts[:last] {
			colours += strings.Join(escapes.FindAllString(part, -1), "")
		}
		lines[i] = colours + rubOut(parts[last])
	}
	return strings.Join(lines, "\n")
}

// rubOut lets each backspace take the character before it.
func rubOut(line string) string {
	var kept []rune
	for _, r := range line {
		if r != '\b' {
			kept = append(kept, r)
		} else if len(kept) > 0 {
			kept = kept[:len(kept)-1]
		}
	}
	return string(kept)
}

// pen is the look of terminal text: CSS classes for what the style sheet names, CSS colours for others. The zero
// value is plain.
type pen struct {
	bold, faint, italic, underline, inverse, struck string // a class or ""
	fore, back                                      string // "fg0".."fg7", "bg0".."bg7", or "#rrggbb"
}

// dress wraps escaped text in the span of the pen.
func (p pen) dress(escaped string) string {
	classes, css := []string{}, ""
	for _, class := range []string{p.bold, p.faint, p.italic, p.underline, p.struck, p.inverse} {
		if class != "" {
			classes = append(classes, class)
		}
	}
	for _, c := range []struct{ value, property string }{{p.fore, "color"}, {p.back, "background"}} {
		if strings.HasPrefix(c.value, "#") {
			css += c.property + ":" + c.value + ";"
			if c.property == "color" && p.back == "" {
				classes = append(classes, legible(c.value)...)
			}
		} else if c.value != "" {
			classes = append(classes, c.value)
		}
	}
	if len(classes) == 0 && css == "" {
		return escaped
	}
	span := "<span"
	if len(classes) > 0 {
		span += ` class="` + strings.Join(classes, " ") + `"`
	}
	if css != "" {
		span += ` style="` + css + `"`
	}
	return span + ">" + escaped + "</span>"
}

// legible is the class that gives text of a colour of its own a ground to stand on where the page's is too near to
// it: "dark" text on a dark page, "pale" text on a light one.
func legible(rrggbb string) []string {
	rgb, _ := strconv.ParseUint(rrggbb[1:], 16, 32)                     // extended wrote it
	luma := (299*(rgb>>16) + 587*(rgb>>8&0xff) + 114*(rgb&0xff)) / 1000 // ITU-R BT.601
	switch {
	case luma < 90:
		return []string{"dark"}
	case luma > 170:
		return []string{"pale"}
	}
	return nil
}

// set applies the parameters of a Select Graphic Rendition sequence (ECMA-48 §8.3.117; 38 and 48 as xterm's
// ctlseqs describe them). Unknown parameters change nothing.
func (p *pen) set(parameters string) {
	var codes []int
	for _, number := range strings.Split(strings.ReplaceAll(parameters, ":", ";"), ";") {
		n, _ := strconv.Atoi(number) // an empty parameter is 0
		codes = append(codes, n)
	}
	for len(codes) > 0 {
		code := codes[0]
		codes = codes[1:]
		switch {
		case code == 38:
			p.fore, codes = extended(codes, "fg")
		case code == 48:
			p.back, codes = extended(codes, "bg")
		case code >= 30 && code <= 37:
			p.fore = fmt.Sprintf("fg%d", code-30)
		case code >= 90 && code <= 97:
			p.fore = fmt.Sprintf("fg%d", code-90)
		case code >= 40 && code <= 47:
			p.back = fmt.Sprintf("bg%d", code-40)
		case code >= 100 && code <= 107:
			p.back = fmt.Sprintf("bg%d", code-100)
		default:
			p.setAttribute(code)
		}
	}
}

func (p *pen) setAttribute(code int) {
	switch code {
	case 0:
		*p = pen{}
	case 1:
		p.bold = "b"
	case 2:
		p.faint = "d"
	case 3:
		p.italic = "i"
	case 4:
		p.underline = "u"
	case 7:
		p.inverse = "rev"
	case 9:
		p.struck = "st"
	case 22:
		p.bold, p.faint = "", ""
	case 23:
		p.italic = ""
	case 24:
		p.underline = ""
	case 27:
		p.inverse = ""
	case 29:
		p.struck = ""
	case 39:
		p.fore = ""
	case 49:
		p.back = ""
	}
}

// extended reads the rest of 38 or 48: 5;n of the palette of 256 colours, or 2;r;g;b. It returns the colour and the
// codes behind it; a broken sequence is no colour and ends all.
func extended(codes []int, class string) (string, []int) {
	switch {
	case len(codes) >= 2 && codes[0] == 5:
		return indexed(codes[1], class), codes[2:]
	case len(codes) >= 4 && codes[0] == 2:
		return fmt.Sprintf("#%02x%02x%02x", byte(codes[1]), byte(codes[2]), byte(codes[3])), codes[4:]
	}
	return "", nil
}

// indexed is a colour of xterm's palette: 16 named ones, a 6 × 6 × 6 cube, 24 greys.
func indexed(n int, class string) string {
	switch {
	case n < 0 || n > 255:
		return ""
	case n < 16:
		return fmt.Sprintf("%s%d", class, n%8)
	case n < 232:
		level := func(i int) int {
			if i == 0 {
				return 0
			}
			return 55 + 40*i
		}
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(n-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}
