package cell

import (
	"cmp"
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// edit replaces text[start:end] of an assembled cell. Behind every edit the text gets a line directive, so that what
// follows keeps its position.
type edit struct {
	start, end int
	text       string
	order      int // among edits at one place: ends of inner nodes, ends of outer nodes, starts of outer, starts of inner
}

// editor collects the edits of one cell.
type editor struct {
	c     *checked
	edits []edit
}

func (e *editor) off(p token.Pos) int { return e.c.tfile.Offset(p) }

// before inserts text in front of a node; nodes are visited from the outside in.
func (e *editor) before(p token.Pos, text string) { e.replace(p, p, text) }

// after inserts text behind a node.
func (e *editor) after(p token.Pos, text string) {
	o := e.off(p)
	e.edits = append(e.edits, edit{o, o, text, -len(e.edits) - 1})
}

func (e *editor) replace(from, to token.Pos, text string) {
	e.edits = append(e.edits, edit{e.off(from), e.off(to), text, len(e.edits)})
}

// render returns the text between two positions with the edits inside it, led by a line directive.
func (e *editor) render(from, to token.Pos, fset *token.FileSet) string {
	start, end := e.off(from), e.off(to)
	var inside []edit
	for _, x := range e.edits {
		if x.start >= start && x.end <= end {
			inside = append(inside, x)
		}
	}
	slices.SortStableFunc(inside, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order))
	})
	var b strings.Builder
	b.WriteString(e.directive(start, fset))
	at := start
	for _, x := range inside {
		if x.start < at { // inside a piece that another edit replaced
			continue
		}
		b.WriteString(e.c.text[at:x.start])
		b.WriteString(x.text)
		b.WriteString(e.directive(x.end, fset))
		at = x.end
	}
	b.WriteString(e.c.text[at:end])
	return b.String()
}

// cellStride is how far apart the lines of two cells are for the interpreter. yaegi finds imports by file name, so all
// cells must be one file to it; the number of the cell goes into the line.
const cellStride = 1_000_000

// directive names the user's position of an offset, as the interpreter gets it.
func (e *editor) directive(off int, fset *token.FileSet) string {
	p := fset.Position(e.c.tfile.Pos(off))
	cell, _ := strconv.Atoi(strings.Trim(p.Filename, "In[]")) // our own name
	return fmt.Sprintf("/*line :%d:%d*/", cell*cellStride+p.Line, p.Column)
}

// decodePosition turns a line and column of the interpreter into the user's; false for text that we made.
func decodePosition(line, col string) (token.Position, bool) {
	l, _ := strconv.Atoi(line)
	c, _ := strconv.Atoi(col)
	return token.Position{Filename: cellName(l / cellStride), Line: l % cellStride, Column: c}, l >= cellStride
}

var interpreterPosition = regexp.MustCompile(`\b(\d{7,}):(\d+)\b`)

// decodePositions does the same inside a message.
func decodePositions(msg string) string {
	return interpreterPosition.ReplaceAllStringFunc(msg, func(s string) string {
		line, col, _ := strings.Cut(s, ":")
		pos, ok := decodePosition(line, col)
		if !ok {
			return s
		}
		return pos.String()
	})
}
