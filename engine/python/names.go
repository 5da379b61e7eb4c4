package python

import (
	"slices"
	"strings"
)

// names is what a program does with names, scopes not told apart.
type names struct {
	bound map[string]bool // imported, assigned, defined, a parameter, a loop variable …
	used  []string        // by attribute (np in np.array), in order, some twice
	stars []string        // modules of which everything is imported
}

// namesOf looks through a program, the fields of its f-strings included.
func namesOf(source string) names {
	n := names{bound: map[string]bool{}}
	for _, line := range logicalLines(source) {
		for _, statement := range statements(expand(line)) {
			n.statement(statement)
		}
	}
	return n
}

// expand puts the tokens of the fields of f-strings behind them, as if they stood in brackets.
func expand(line []token) []token {
	if !slices.ContainsFunc(line, token.formatted) {
		return line
	}
	var all []token
	for _, t := range line {
		all = append(all, t)
		if !t.formatted() {
			continue
		}
		for _, field := range fields(t.text) {
			for _, inner := range logicalLines("(" + field + ")") {
				for _, x := range expand(inner) {
					x.depth += t.depth
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// statements cuts a logical line at its semicolons.
func statements(line []token) (all [][]token) {
	start := 0
	for i, t := range line {
		if t.text == ";" && t.depth == 0 {
			all = append(all, line[start:i])
			start = i + 1
		}
	}
	return append(all, line[start:])
}

func (n *names) statement(s []token) {
	for i, t := range s { // an import may stand behind the colon of its block
		if (t.text == "import" || t.text == "from") && (i == 0 || s[i-1].text == ":" && s[i-1].depth == 0) {
			n.imports(s[i:])
			s = s[:i]
			break
		}
	}
	n.targets(s)
	for i, t := range s {
		if t.kind != name || text(s, i-1) == "." {
			continue
		}
		if text(s, i+1) == "." {
			n.used = append(n.used, t.text)
		}
		switch t.text {
		case "lambda", "def":
			n.parameters(s[i+1:], t.depth)
		case "class", "as":
			n.bind(s[i+1:], func(x token) bool { return x.kind != name && x.text != "(" })
		case "for":
			n.bind(s[i+1:], func(x token) bool { return x.text == "in" })
		case "global", "nonlocal", "case":
			if i == 0 {
				n.bind(s[1:], func(token) bool { return false })
			}
		}
	}
}

// text is that of the i-th token, "" beyond the ends.
func text(s []token, i int) string {
	if i < 0 || i >= len(s) {
		return ""
	}
	return s[i].text
}

// bind takes the plain names (no attribute, call or subscript) of s up to where end says. A name that stands alone
// behind its keyword ends it, too: "as x, y as z" binds x.
func (n *names) bind(s []token, end func(token) bool) {
	for i, t := range s {
		if end(t) {
			return
		}
		if next := text(s, i+1); t.kind == name && text(s, i-1) != "." && next != "." && next != "[" && (next != "(" || i == 0) {
			n.bound[t.text] = true
		}
	}
}

// parameters binds the name of a function and its parameters, up to the colon or the arrow: s begins behind def or lambda, which stands
// at depth.
func (n *names) parameters(s []token, depth int) {
	inside := depth + 1
	if len(s) > 0 && (s[0].text == ":" || s[0].text == "*" || s[0].text == "**" || s[0].kind == name && text(s, 1) != "(" && text(s, 1) != "[") {
		inside = depth // of lambda, without brackets
	}
	for i, t := range s {
		if t.depth == depth && (t.text == ":" || t.text == "->") {
			return
		}
		before := text(s, i-1)
		if t.kind == name && (i == 0 || t.depth == inside && slices.Contains([]string{"(", "[", ",", "*", "**"}, before)) {
			n.bound[t.text] = true
		}
	}
}

// targets binds what a statement assigns to: before "=" outside brackets, ":=", augmented assignment, annotation.
func (n *names) targets(s []token) {
	start, last := 0, -1
	for i, t := range s {
		switch {
		case t.text == ":=" && i > 0, t.depth == 0 && strings.HasSuffix(t.text, "=") && strings.ContainsAny(t.text[:1], "+-*/%&|^@"),
			t.text == ":" && i == 1, t.depth == 0 && (strings.HasPrefix(t.text, "<<=") || strings.HasPrefix(t.text, ">>=")):
			n.bind(s[max(0, i-1):i], func(token) bool { return i > 1 && s[i-2].text == "." })
		}
		switch {
		case t.text == ":" && t.depth == 0 && last < 0:
			start = i + 1
		case t.text == "=" && t.depth == 0:
			last = i
		}
	}
	if last > start {
		n.bind(s[start:last], func(token) bool { return false })
	}
}

// imports binds what an import statement binds: the first part of a dotted name, or the name behind "as".
func (n *names) imports(s []token) {
	from, at := "", 1
	if s[0].text == "from" {
		for at < len(s) && s[at].text != "import" {
			from += s[at].text
			at++
		}
		at++
	}
	for i := at; i < len(s); i++ {
		before := text(s, i-1)
		switch {
		case s[i].text == "*":
			n.stars = append(n.stars, from)
		case s[i].kind != name || s[i].text == "as" || before == ".":
		case before == "as":
			n.bound[s[i].text] = true
		default:
			end := i + 1
			for text(s, end) == "." {
				end += 2
			}
			if text(s, end) != "as" {
				n.bound[s[i].text] = true
			}
		}
	}
}
