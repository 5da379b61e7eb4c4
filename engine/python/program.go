package python

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hash identifies a program by what it does: comments, doc strings, blank lines, the width of indentation and the
// white space inside lines do not count.
func Hash(source string) string {
	sum := sha256.Sum256([]byte(canonical(source)))
	return hex.EncodeToString(sum[:])
}

// canonical writes one line per logical line: the depth of its indentation, then its tokens.
func canonical(source string) string {
	var out strings.Builder
	var indents []int
	for _, line := range logicalLines(source) {
		if len(line) == 1 && line[0].kind == str { // a doc string or a string used as a comment
			continue
		}
		width := indentation(source, line[0].start)
		for len(indents) > 0 && indents[len(indents)-1] > width {
			indents = indents[:len(indents)-1]
		}
		if len(indents) == 0 || indents[len(indents)-1] < width {
			indents = append(indents, width)
		}
		fmt.Fprintf(&out, "%d", len(indents))
		for _, t := range line {
			out.WriteByte(' ')
			out.WriteString(t.text)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// logicalLines groups tokens by logical line, without comments and empty lines.
func logicalLines(source string) [][]token {
	var lines [][]token
	var line []token
	flush := func() {
		if len(line) > 0 {
			lines = append(lines, line)
			line = nil
		}
	}
	for _, t := range scan(source) {
		switch t.kind {
		case newline:
			flush()
		case comment:
		default:
			line = append(line, t)
		}
	}
	flush()
	return lines
}

// indentation is the width of the white space before the byte at pos, tabs counted to the next multiple of 8 as
// Python does.
func indentation(source string, pos int) int {
	width := 0
	for _, c := range source[strings.LastIndexByte(source[:pos], '\n')+1 : pos] {
		switch c {
		case '\t':
			width += 8 - width%8
		case '\f':
			width = 0
		case '\ufeff':
		default:
			width++
		}
	}
	return width
}

// Literal is a numeric literal of a program.
type Literal struct {
	Text  string
	Start int    // byte offset
	Line  int    // from 1
	Code  string // its line, trimmed
}

// Literals lists the numeric literals of a program in order, those inside strings and comments left out.
func Literals(source string) []Literal {
	lines := strings.Split(source, "\n")
	var found []Literal
	for _, t := range scan(source) {
		if t.kind == number {
			found = append(found, Literal{t.text, t.start, t.line, strings.TrimSpace(lines[t.line-1])})
		}
	}
	return found
}

// pythonNumber is a numeric literal as Python has it: no leading zeros, underscores only between digits.
var pythonNumber = regexp.MustCompile(`^(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|(?:0(?:_?0)*|[1-9](?:_?\d)*)|` +
	strings.ReplaceAll(`(?:(?:D\.D?|\.D)(?:[eE][+-]?D)?|D[eE][+-]?D)[jJ]?|D[jJ])$`, "D", `(?:\d(?:_?\d)*)`))

// Replace returns the program with one literal replaced by value, a Python number written as text. An error says why
// value is not a number or is the same number.
func Replace(source string, lit Literal, value string) (string, error) {
	sign, digits := "", value
	if strings.HasPrefix(value, "-") || strings.HasPrefix(value, "+") {
		sign, digits = value[:1], value[1:]
	}
	if !pythonNumber.MatchString(digits) {
		return "", fmt.Errorf("%q is not a number", value)
	}
	if same(lit.Text, value) {
		return "", fmt.Errorf("%s is the number that stands there", value)
	}
	if sign == "-" {
		value = "(" + value + ")" // so that 2-x, 2**x and the like keep their meaning
	}
	return source[:lit.Start] + strings.TrimPrefix(value, "+") + source[lit.Start+len(lit.Text):], nil
}

// same says whether two literals are the same number of the same type: 1 and 1.0 differ in Python.
func same(a, b string) bool {
	x, errA := value(a)
	y, errB := value(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return x == y && IsInteger(a) == IsInteger(b)
}

// value is a numeric literal as a float.
func value(literal string) (float64, error) {
	plain := strings.ReplaceAll(literal, "_", "")
	if IsInteger(plain) {
		if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
			return float64(n), nil
		}
	}
	return strconv.ParseFloat(plain, 64)
}

// IsInteger says whether a numeric literal is an integer, of any base.
func IsInteger(number string) bool {
	if s := strings.TrimLeft(number, "+-("); len(s) > 1 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0 {
		return true
	}
	return !strings.ContainsAny(number, ".eEjJ")
}

// Function is a function or class at the top level of a program, decorators included.
type Function struct {
	Name       string
	Start, End int // bytes: from its first decorator or def to the end of its last line
}

// Functions lists the functions and classes at the top level.
func Functions(source string) []Function {
	var found []Function
	open, start := false, -1
	for _, line := range logicalLines(source) {
		if indentation(source, line[0].start) > 0 {
			if open {
				found[len(found)-1].End = line[len(line)-1].end
			}
			continue
		}
		open = false
		switch word := line[0].text; {
		case word == "@":
			if start < 0 {
				start = line[0].start
			}
			continue
		case (word == "def" || word == "class") && len(line) > 1:
			found = append(found, function(line, 1, start))
			open = true
		case word == "async" && len(line) > 2 && line[1].text == "def":
			found = append(found, function(line, 2, start))
			open = true
		}
		start = -1
	}
	return found
}

func function(line []token, at, decorators int) Function {
	f := Function{line[at].text, line[0].start, line[len(line)-1].end}
	if decorators >= 0 {
		f.Start = decorators
	}
	return f
}

// Splice completes a reply that holds only some functions: it returns parent with the functions of part put in the
// place of those of the same name. The rest of part keeps its side: what stands before its first such function (imports,
// constants) and its helper functions go before the first function, statements behind go to the end, where
// they find everything defined. ok is false when part redefines no function of parent, so that there is nothing to hold on to.
func Splice(parent, part string) (program string, ok bool) {
	theirs, ours := Functions(part), Functions(parent)
	before, after := part, ""
	replaced := map[string]string{}
	for _, f := range slices.Backward(theirs) {
		if slices.ContainsFunc(ours, func(o Function) bool { return o.Name == f.Name }) {
			if _, twice := replaced[f.Name]; !twice { // the last definition is the one that counts
				replaced[f.Name] = part[f.Start:f.End]
			}
			before, after = before[:f.Start], before[f.End:]+after
		}
	}
	if len(replaced) == 0 {
		return "", false
	}
	program = parent
	for _, f := range slices.Backward(ours) {
		if code, found := replaced[f.Name]; found {
			program = program[:f.Start] + code + program[f.End:]
		}
	}
	helpers, rest := apart(after)
	if first := strings.TrimSpace(before + helpers); first != "" {
		at := Functions(program)[0].Start
		program = program[:at] + first + "\n\n\n" + program[at:]
	}
	if rest != "" {
		program = strings.TrimRight(program, "\n") + "\n\n\n" + rest + "\n"
	}
	return program, true
}

// apart separates the functions at the top level of code from its other statements.
func apart(code string) (functions, rest string) {
	rest = code
	for _, f := range slices.Backward(Functions(code)) {
		functions = "\n\n\n" + code[f.Start:f.End] + functions
		rest = rest[:f.Start] + rest[f.End:]
	}
	return functions, strings.TrimSpace(rest)
}

// Defines says whether the program has a function called entry at its top level.
func Defines(source, entry string) bool {
	return slices.ContainsFunc(Functions(source), func(f Function) bool { return f.Name == entry })
}

var fence = regexp.MustCompile("(?m)^[ \t]*```[ \t]*([A-Za-z0-9+]*)[^\n]*$")

// Reply takes a model's reply apart: the words before the program, and the program: the longest block fenced as
// Python, else the longest fenced one, else, when the reply has no fence, everything from the first line
// that begins like code. A fence that never closes reaches to the end. code is "" when there is none.
func Reply(text string) (words, code string) {
	marks := fence.FindAllStringSubmatchIndex(text, -1)
	first := len(text)
	best, bestPython := "", false
	for i := 0; i < len(marks); i += 2 {
		m := marks[i]
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		lang := strings.ToLower(text[m[2]:m[3]])
		python := lang == "python" || lang == "py" || lang == "python3"
		block := dedent(strings.Trim(text[m[1]:end], "\r\n"))
		if python && !bestPython || python == bestPython && len(block) > len(best) {
			best, bestPython = block, python
		}
		first = min(first, m[0])
	}
	if len(marks) > 0 {
		return strings.TrimSpace(text[:first]), best
	}
	return unfenced(text)
}

// dedent takes away the white space that every line begins with, as in a block inside a list, and carriage returns.
func dedent(block string) string {
	block = strings.ReplaceAll(block, "\r\n", "\n")
	first, _, _ := strings.Cut(block, "\n")
	margin := first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	if margin == "" {
		return block
	}
	lines := strings.Split(block, "\n")
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) == "":
			lines[i] = ""
		case strings.HasPrefix(line, margin):
			lines[i] = line[len(margin):]
		default:
			return block
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

var codeLine = regexp.MustCompile(`(?m)^(import |from \w|def |class |@\w|[A-Za-z_]\w* = )`)

func unfenced(text string) (words, code string) {
	at := codeLine.FindStringIndex(text)
	if at == nil {
		return strings.TrimSpace(text), ""
	}
	return strings.TrimSpace(text[:at[0]]), strings.TrimRight(text[at[0]:], "\n ")
}

// Complete makes a program of the code in a reply: code itself when it is whole (it has the entry function and calls no
// function of parent that it lacks), else code spliced into parent, else code as it is.
func Complete(code, parent, entry string) string {
	if Defines(code, entry) && !leans(code, parent) {
		return code
	}
	if program, ok := Splice(parent, code); ok {
		return program
	}
	return code
}

// leans says whether code uses a function of parent that it neither defines nor binds.
func leans(code, parent string) bool {
	bound := namesOf(code).bound
	used := map[string]bool{}
	for _, t := range scan(code) {
		if t.kind == name {
			used[t.text] = true
		}
	}
	return slices.ContainsFunc(Functions(parent), func(f Function) bool { return used[f.Name] && !bound[f.Name] })
}

// compound are the words that begin a statement with a block. A name "match" or "case" is no loss here.
var compound = []string{"if", "elif", "else", "for", "while", "with", "try", "except", "finally", "def", "class", "async", "match", "case"}

// Line is a simple statement (no def, for, if …) that stands on one physical line inside a block and holds numbers: a
// place where a small change can matter and the program stays whole.
type Line struct {
	Number   int    // from 1
	Text     string // with its indentation
	Literals []int  // byte offsets of its numeric literals in Text
}

// Lines lists the lines of a program that can be rewritten on their own.
func Lines(source string) []Line {
	physical := strings.Split(source, "\n")
	var found []Line
	for _, statement := range logicalLines(source) {
		first, last := statement[0], statement[len(statement)-1]
		whole := first.line == last.line && !strings.Contains(last.text, "\n")
		if !whole || indentation(source, first.start) == 0 || first.text == "@" || slices.Contains(compound, first.text) {
			continue
		}
		l := Line{Number: first.line, Text: physical[first.line-1]}
		start := strings.LastIndexByte(source[:first.start], '\n') + 1
		for _, t := range statement {
			if t.kind == number {
				l.Literals = append(l.Literals, t.start-start)
			}
		}
		if len(l.Literals) > 0 {
			found = append(found, l)
		}
	}
	return found
}

// Rewrite returns the program with one line replaced.
func Rewrite(source string, l Line, text string) string {
	lines := strings.Split(source, "\n")
	lines[l.Number-1] = text
	return strings.Join(lines, "\n")
}

// Balanced says whether every bracket and quote that text opens is closed in it by its own kind, and none is closed that was
// not opened.
func Balanced(text string) bool {
	var open []byte
	for _, t := range scan(text) {
		if t.broken {
			return false
		}
		if t.kind != op {
			continue
		}
		if i := strings.Index("([{", t.text); i >= 0 {
			open = append(open, ")]}"[i])
		} else if strings.Contains(")]}", t.text) {
			if len(open) == 0 || open[len(open)-1] != t.text[0] {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}
