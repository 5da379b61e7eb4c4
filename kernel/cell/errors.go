package cell

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

func red(s string) string  { return "\x1b[31m" + s + "\x1b[0m" }
func bold(s string) string { return "\x1b[1m" + s + "\x1b[0m" }

// at shows a position of a cell with its source line and a caret; code may be that of another cell, then there is none.
func at(pos token.Position, code string) []string {
	lines := []string{bold(fmt.Sprintf("%s:%d:%d", pos.Filename, pos.Line, pos.Column))}
	if src := strings.Split(code, "\n"); pos.Line >= 1 && pos.Line <= len(src) {
		line := src[pos.Line-1]
		lines = append(lines, "    "+line)
		if pos.Column >= 1 && pos.Column <= len(line)+1 {
			blank := regexp.MustCompile(`[^\t]`).ReplaceAllString(line[:pos.Column-1], " ")
			lines = append(lines, "    "+blank+red("^"))
		}
	}
	return lines
}

// syntaxError turns a parser error into one of the cell.
func syntaxError(err error, code string) error {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return &Error{Name: "syntax error", Value: err.Error(), Traceback: []string{red("syntax error: ") + err.Error()}}
	}
	first := list[0]
	msg := strings.TrimSuffix(first.Msg, " (and 1 more errors)")
	trace := append([]string{red("syntax error: ") + msg}, at(first.Pos, code)...)
	return &Error{Name: "syntax error", Value: fmt.Sprintf("%s: %s", first.Pos, msg), Traceback: trace}
}

// maxErrors is how many errors of a cell are shown.
const maxErrors = 5

// typeErrors turns the errors of go/types into one of the cell.
func (s *scope) typeErrors(errs []types.Error, code string) error {
	var values, trace []string
	for i, e := range errs {
		if strings.HasPrefix(e.Msg, "\t") { // the continuation of the error before
			trace = append(trace, "    "+strings.TrimSpace(e.Msg))
			continue
		}
		if i == maxErrors {
			trace = append(trace, fmt.Sprintf("… and %d more", len(errs)-i))
			break
		}
		pos := s.fset.Position(e.Pos)
		msg := s.hint(e.Msg)
		values = append(values, fmt.Sprintf("%s: %s", pos, msg))
		trace = append(trace, red("compile error: ")+msg)
		trace = append(trace, at(pos, code)...)
	}
	return &Error{Name: "compile error", Value: strings.Join(values, "\n"), Traceback: trace}
}

var undefined = regexp.MustCompile(`^undefined: ([\pL_][\pL\pN_]*)$`)

var missingMember = regexp.MustCompile(`\(type \*?([\pL_][\pL\pN_]*) has no field or method|^cannot use .* variable of (?:struct )?type ([\pL_][\pL\pN_]*)\)`)

// hint adds what to do to the message of an undefined name.
func (s *scope) hint(msg string) string {
	if m := missingMember.FindStringSubmatch(msg); m != nil && s.version[m[1]+m[2]] > 1 {
		return fmt.Sprintf("%s (the value may be of an earlier version of %s: make it again)", msg, m[1]+m[2])
	}
	if strings.HasPrefix(msg, "not enough arguments in call to must") {
		return "must takes a value and an error; a statement whose last result is an error stops the cell without it"
	}
	m := undefined.FindStringSubmatch(msg)
	if m == nil {
		return msg
	}
	if path, ok := wellKnown[m[1]]; ok {
		return fmt.Sprintf("%s (add: import %q)", msg, path)
	}
	for name := range s.objects {
		if strings.EqualFold(name, m[1]) {
			return fmt.Sprintf("%s (did you mean %s?)", msg, name)
		}
	}
	return msg
}

// wellKnown maps names of packages to what they most likely mean.
var wellKnown = map[string]string{
	"bufio": "bufio", "bytes": "bytes", "context": "context", "errors": "errors", "fmt": "fmt", "io": "io", "json": "encoding/json",
	"log": "log", "math": "math", "os": "os", "path": "path", "rand": "math/rand/v2", "reflect": "reflect", "regexp": "regexp",
	"sort": "sort", "slices": "slices", "maps": "maps", "strconv": "strconv", "strings": "strings", "sync": "sync", "time": "time",
	"http": "net/http", "filepath": "path/filepath", "plot": "gonum.org/v1/plot", "plotter": "gonum.org/v1/plot/plotter",
	"plotutil": "gonum.org/v1/plot/plotutil", "vg": "gonum.org/v1/plot/vg", "mat": "gonum.org/v1/gonum/mat",
	"stat": "gonum.org/v1/gonum/stat", "floats": "gonum.org/v1/gonum/floats", "engine": "skep/engine", "plotting": "skep/plotting",
	"problems": "skep/problems",
}

// errorFailure is a cell that ended in an error value.
func errorFailure(f failed, code string) *Error {
	pos := token.Position{Filename: cellName(f.cell), Line: f.line, Column: 1}
	trace := append([]string{red("error: ") + f.err.Error()}, at(pos, code)[:1]...)
	if src := strings.Split(code, "\n"); f.line >= 1 && f.line <= len(src) {
		trace = append(trace, "    "+src[f.line-1])
	}
	return &Error{Name: "error", Value: f.err.Error(), Traceback: trace, Cause: f.err}
}

// frame is a line that yaegi writes for each function that a panic passes.
var frame = regexp.MustCompile(`^(\d+):(\d+): panic: [\pL\pN_.]+\(\.\.\.\)\n$`)

// panicFailure is a cell that ended in a panic. frames are yaegi's, innermost first.
// The statement of the cell comes from the cell itself; yaegi knows only where a function begins.
func panicFailure(v any, frames []token.Position, statement token.Position, code string) *Error {
	msg := panicText(v)
	trace := []string{red("panic: ") + msg}
	slices.Reverse(frames)
	frames = append([]token.Position{statement}, frames...)
	for i, f := range slices.Compact(frames) {
		lines := at(f, code)
		if i > 0 {
			lines[0] = "in the function at " + lines[0]
			lines = lines[:1]
		}
		trace = append(trace, lines...)
	}
	err, _ := v.(error)
	return &Error{Name: "panic", Value: msg, Traceback: trace, Cause: err}
}

// panicText says what a panic value is, in Go's words where yaegi has reflect's.
func panicText(v any) string {
	var msg string
	switch v := v.(type) {
	case reflect.Value:
		msg = fmt.Sprint(v)
	case error:
		msg = v.Error()
	case fmt.Stringer:
		msg = v.String()
	default:
		msg = fmt.Sprint(v)
	}
	switch {
	case strings.Contains(msg, "reflect: call of reflect.Value.") && strings.Contains(msg, "on zero Value"),
		strings.Contains(msg, "reflect.Value.") && strings.Contains(msg, "nil pointer"):
		return "runtime error: invalid memory address or nil pointer dereference"
	case strings.HasPrefix(msg, "reflect: slice index out of range"), strings.HasPrefix(msg, "reflect: array index out of range"):
		return "runtime error: index out of range"
	}
	return msg
}
