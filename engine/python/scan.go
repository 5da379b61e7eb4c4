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
	op      // one character of punctuation, enough for what is asked here
	newline // end of a physical line outside brackets and strings
)

// token is a stretch of the source.
type token struct {
	kind       kind
	text       string
	start, end int // bytes
	line       int // from 1, of the first byte
	depth      int // of open brackets before the token
}

// scan splits source into tokens; white space, joined lines and everything unknown is passed over.
func scan(source string) []token {
	s := scanner{src: source, line: 1}
	for s.pos < len(s.src) {
		s.next()
	}
	return s.tokens
}

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
	case c == '\\' && strings.HasPrefix(s.src[s.pos:], "\\\n"):
		s.skip(2)
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		s.skip(1)
	case c == '#':
		s.emit(comment, lineEnd(s.src[s.pos:]))
	case s.stringLength() > 0:
		s.emit(str, s.stringLength())
	case isDigit(c) || c == '.' && s.pos+1 < len(s.src) && isDigit(s.src[s.pos+1]):
		s.emit(number, numberLength(s.src[s.pos:]))
	default:
		s.nameOrPunctuation(c)
	}
}

func (s *scanner) nameOrPunctuation(c byte) {
	if n := nameLength(s.src[s.pos:]); n > 0 {
		s.emit(name, n)
		return
	}
	_, n := utf8.DecodeRuneInString(s.src[s.pos:])
	s.emit(op, n)
	switch c {
	case '(', '[', '{':
		s.depth++
	case ')', ']', '}':
		s.depth = max(0, s.depth-1)
	}
}

func (s *scanner) emit(k kind, n int) {
	s.tokens = append(s.tokens, token{k, s.src[s.pos : s.pos+n], s.pos, s.pos + n, s.line, s.depth})
	s.skip(n)
}

func (s *scanner) skip(n int) {
	s.line += strings.Count(s.src[s.pos:s.pos+n], "\n")
	s.pos += n
}

// stringLength is the length of the string literal at the position with its prefix, 0 if there is none. A literal without
// an end reaches to the end of its line, or of the source when it is triple-quoted.
func (s *scanner) stringLength() int {
	rest := s.src[s.pos:]
	p := 0
	for p < len(rest) && p < 3 && strings.IndexByte("rRbBuUfF", rest[p]) >= 0 {
		p++
	}
	if p == len(rest) || rest[p] != '"' && rest[p] != '\'' {
		return 0
	}
	quote, raw := rest[p:p+1], false
	if strings.HasPrefix(rest[p:], strings.Repeat(quote, 3)) {
		quote, raw = strings.Repeat(quote, 3), true
	}
	for i := p + len(quote); i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
		case rest[i] == '\n' && !raw:
			return i
		case strings.HasPrefix(rest[i:], quote):
			return i + len(quote)
		}
	}
	return len(rest)
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

func nameLength(s string) int {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
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
