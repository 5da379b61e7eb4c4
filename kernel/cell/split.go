package cell

import (
	"go/scanner"
	"go/token"
	"strings"
)

// kind says what a top-level item of a cell is.
type kind int

const (
	importItem kind = iota
	declItem        // type, const, func with a name
	varItem         // var: a statement, unless a function of the same cell uses its name
	stmtItem
)

// item is one top-level piece of a cell, with where it came from.
type item struct {
	kind kind
	text string
	name string // of a function; "" for methods and everything else
	recv string // a method's base type

	carries string // variable that a varItem of ours moves to the new version of its type

	cell, line, col int // position of text[0], 1-based
}

// tok is a scanned token.
type tok struct {
	off int
	tok token.Token
	lit string
}

// scan returns the tokens of code, with the semicolons that Go inserts at line ends. Errors are left to the parser.
func scan(code string) []tok {
	var s scanner.Scanner
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(code))
	s.Init(f, []byte(code), func(token.Position, string) {}, 0)
	var toks []tok
	for {
		pos, t, lit := s.Scan()
		if t == token.EOF {
			return toks
		}
		toks = append(toks, tok{f.Offset(pos), t, lit})
	}
}

// split cuts a cell into its top-level items. It never fails: a cell with unbalanced brackets is one or more items that
// the parser refuses.
func split(code string, cell int) []item {
	var items []item
	toks := scan(code)
	depth, first := 0, -1
	header := false // between for, if or switch and its brace, where semicolons separate clauses
	finish := func(last, end int) {
		if first >= 0 {
			it := classify(toks[first:last])
			it.text = code[toks[first].off:end]
			it.cell = cell
			it.line, it.col = lineCol(code, toks[first].off)
			items = append(items, it)
		}
		first = -1
	}
	for i, t := range toks {
		switch t.tok {
		case token.IF, token.FOR, token.SWITCH:
			header = header || depth == 0
		case token.LPAREN, token.LBRACK, token.LBRACE:
			header = header && (depth > 0 || t.tok != token.LBRACE)
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		case token.SEMICOLON:
			if depth <= 0 && !(header && t.lit == ";") {
				header = false
				depth = 0
				finish(i, t.off)
				continue
			}
		}
		if first < 0 {
			first = i
		}
	}
	finish(len(toks), len(code))
	return items
}

// classify looks at an item's first tokens.
func classify(toks []tok) item {
	switch toks[0].tok {
	case token.IMPORT:
		return item{kind: importItem}
	case token.TYPE, token.CONST:
		return item{kind: declItem}
	case token.VAR:
		return item{kind: varItem}
	case token.FUNC:
		return classifyFunc(toks)
	}
	return item{kind: stmtItem}
}

// classifyFunc tells a function, a method and a function literal apart.
func classifyFunc(toks []tok) item {
	if len(toks) > 1 && toks[1].tok == token.IDENT {
		return item{kind: declItem, name: toks[1].lit}
	}
	recv, depth := "", 0
	for i, t := range toks[1:] {
		switch t.tok {
		case token.LPAREN, token.LBRACK:
			depth++
		case token.RPAREN, token.RBRACK:
			if depth--; depth > 0 {
				continue
			}
			rest := toks[i+2:]
			if t.tok == token.RPAREN && len(rest) > 1 && rest[0].tok == token.IDENT && rest[1].tok == token.LPAREN {
				return item{kind: declItem, recv: recv}
			}
			return item{kind: stmtItem}
		case token.IDENT:
			if depth == 1 {
				recv = t.lit // the last name at this depth is the type's
			}
		}
	}
	return item{kind: stmtItem}
}

func lineCol(code string, off int) (line, col int) {
	before := code[:off]
	return strings.Count(before, "\n") + 1, off - (strings.LastIndexByte(before, '\n') + 1) + 1
}

// Status tells whether code can be run as it stands: "complete", "incomplete" (with the indentation that the next
// line wants) or "invalid".
func Status(code string) (status, indent string) {
	if depth, open := bracketDepth(code); open || depth > 0 {
		return "incomplete", strings.Repeat("\t", max(depth, 0))
	} else if depth < 0 {
		return "invalid", ""
	}
	for _, it := range split(code, 1) {
		if err := parseItem(it); err != nil {
			return "invalid", ""
		}
	}
	return "complete", ""
}

// bracketDepth counts open brackets; open is set inside an unfinished comment or raw string. A closing bracket too many
// gives a negative depth.
func bracketDepth(code string) (depth int, open bool) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(code))
	s.Init(f, []byte(code), func(_ token.Position, msg string) {
		open = open || strings.HasPrefix(msg, "comment not terminated") || strings.HasPrefix(msg, "raw string literal not terminated")
	}, 0)
	for {
		_, t, _ := s.Scan()
		switch t {
		case token.EOF:
			return depth, open
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if depth--; depth < 0 {
				return depth, open
			}
		}
	}
}
