// Package python looks at candidate programs as text: tokens, numbers, functions, missing imports, the program inside
// a model's reply. It deliberately runs and judges nothing: whether a program parses is for the Python of the
// judge to say, so every function here takes broken programs and does something sensible.
package python

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind of a token.
type kind uint8

const (
	name kind = iota
	number
	str // string or bytes literal with its prefix and quotes
	comment
	op      // an operator or a bracket
	newline // end of a physical line outside brackets and strings
)

// token is a stretch of the source.
type token struct {
	kind       kind
	text       string
	start, end int  // bytes
	line       int  // from 1, of the first byte
	depth      int  // of open brackets before the token
	broken     bool // a string that does not end
}

// formatted says whether the token is an f-string (or a t-string).
func (t token) formatted() bool {
	return t.kind == str && isFormatted(t.text[:strings.IndexAny(t.text, `"'`)])
}

// scan splits source into tokens; white space, joined lines and everything unknown is passed over.
func scan(source string) []token {
	s := scanner{src: source, line: 1}
	if strings.HasPrefix(source, byteOrderMark) {
		s.pos = len(byteOrderMark)
	}
	for s.pos < len(s.src) {
		s.next()
	}
	return s.tokens
}

const byteOrderMark = "\ufeff"

type scanner struct {
	src    string
	pos    int
	line   int
	depth  int
	tokens []token
}

func (s *scanner) next() {
	c := s.src[s.pos]
	switch {
	case c == '\n':
		if s.depth == 0 {
			s.emit(newline, 1)
		} else {
			s.skip(1)
		}
	case strings.HasPrefix(s.src[s.pos:], "\\\n"):
		s.skip(2)
	case strings.HasPrefix(s.src[s.pos:], "\\\r\n"):
		s.skip(3)
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		s.skip(1)
	case c == '#':
		s.emit(comment, lineEnd(s.src[s.pos:]))
	case s.literal():
	case isDigit(c) || c == '.' && s.pos+1 < len(s.src) && isDigit(s.src[s.pos+1]):
		s.emit(number, numberLength(s.src[s.pos:]))
	default:
		s.nameOrPunctuation(c)
	}
}

// literal emits the string literal at the position, if there is one.
func (s *scanner) literal() bool {
	n, closed := stringLength(s.src[s.pos:])
	if n > 0 {
		s.emit(str, n)
		s.tokens[len(s.tokens)-1].broken = !closed
	}
	return n > 0
}

// operators of more than one character, long ones first.
var operators = []string{"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", ":=",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@="}

func (s *scanner) nameOrPunctuation(c byte) {
	if n := nameLength(s.src[s.pos:]); n > 0 {
		s.emit(name, n)
		return
	}
	_, n := utf8.DecodeRuneInString(s.src[s.pos:])
	for _, o := range operators {
		if strings.HasPrefix(s.src[s.pos:], o) {
			n = len(o)
			break
		}
	}
	s.emit(op, n)
	switch c {
	case '(', '[', '{':
		s.depth++
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	}
}

func (s *scanner) emit(k kind, n int) {
	s.tokens = append(s.tokens, token{k, s.src[s.pos : s.pos+n], s.pos, s.pos + n, s.line, s.depth, false})
	s.skip(n)
}

func (s *scanner) skip(n int) {
	s.line += strings.Count(s.src[s.pos:s.pos+n], "\n")
	s.pos += n
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

func nameLength(s string) int {
	for i, r := range s {
		starts := r == '_' || unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
		if !starts && (i == 0 || !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)) {
			return i
		}
	}
	return len(s)
}

// numberLength covers integers with underscores and bases, floats, exponents and the imaginary suffix.
func numberLength(s string) int {
	i := 0
	if len(s) > 1 && s[0] == '0' && strings.IndexByte("xXoObB", s[1]) >= 0 {
		for i = 2; i < len(s) && (isHex(s[i]) || s[i] == '_'); i++ {
		}
		return i
	}
	digits := func() {
		for i < len(s) && (isDigit(s[i]) || s[i] == '_') {
			i++
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			i = j
			digits()
		}
	}
	if i < len(s) && (s[i] == 'j' || s[i] == 'J') {
		i++
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
