package judge

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A strict JSON reader, for frame headers and for files of numbers. encoding/json accepts duplicate keys, invalid UTF-8 and lone surrogates, which
// two readers may understand differently; this one accepts none of them. What it returns is one of nil, bool,
// number, string, []any and object.
type (
	number string         // a JSON number as written: "1e-5"
	object map[string]any // no key twice
)

const (
	maxNodes = 1_000_000
	// maxNesting bounds brackets in brackets: each level of a value may take two (an object with a tag, a list in it).
	maxNesting = 2*maxDepth + 8
)

// scanner reads one JSON text of bounded size. One goroutine uses it once.
type scanner struct {
	text  []byte
	at    int
	nodes int
}

// parseJSON reads text, which must be one JSON value and nothing else. Allocation is bounded by len(text).
func parseJSON(text []byte) (any, error) {
	s := &scanner{text: text}
	v, err := s.value(0)
	if err != nil {
		return nil, err
	}
	if s.space(); s.at != len(text) {
		return nil, s.fail("data after the end")
	}
	return v, nil
}

func (s *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// next returns the next byte after white space without taking it, 0 at the end.
func (s *scanner) next() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// take takes c if it comes next.
func (s *scanner) take(c byte) bool {
	if s.next() != c || s.at == len(s.text) {
		return false
	}
	s.at++
	return true
}

func (s *scanner) value(depth int) (any, error) {
	if s.nodes++; s.nodes > maxNodes {
		return nil, s.fail("more than %d values", maxNodes)
	}
	if depth > maxNesting {
		return nil, s.fail("nested deeper than %d", maxNesting)
	}
	switch c := s.next(); {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.list(depth)
	case c == '"':
		return s.string()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	default:
		return s.word()
	}
}

func (s *scanner) word() (any, error) {
	for text, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if strings.HasPrefix(string(s.text[s.at:min(s.at+5, len(s.text))]), text) {
			s.at += len(text)
			return v, nil
		}
	}
	return nil, s.fail("no JSON value")
}

func (s *scanner) list(depth int) (any, error) {
	s.at++
	list := []any{}
	if s.take(']') {
		return list, nil
	}
	for {
		v, err := s.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if s.take(']') {
			return list, nil
		}
		if !s.take(',') {
			return nil, s.fail("no , or ] in a list")
		}
	}
}

func (s *scanner) object(depth int) (any, error) {
	s.at++
	o := object{}
	if s.take('}') {
		return o, nil
	}
	for {
		if s.next() != '"' {
			return nil, s.fail("no key in an object")
		}
		key, err := s.string()
		if err != nil {
			return nil, err
		}
		if _, twice := o[key]; twice {
			return nil, s.fail("the key %q stands twice", clip(key, 40))
		}
		if !s.take(':') {
			return nil, s.fail("no : after a key")
		}
		if o[key], err = s.value(depth + 1); err != nil {
			return nil, err
		}
		if s.take('}') {
			return o, nil
		}
		if !s.take(',') {
			return nil, s.fail("no , or } in an object")
		}
	}
}

// number takes -?(0|[1-9]d*)(.d+)?([eE][+-]?d+)?, d a digit.
func (s *scanner) number() (any, error) {
	start := s.at
	s.one("-")
	if !s.one("0") && s.digits() == 0 {
		return nil, s.fail("a number without digits")
	}
	if s.one(".") && s.digits() == 0 {
		return nil, s.fail("a number without digits after the point")
	}
	if s.one("eE") {
		s.one("+-")
		if s.digits() == 0 {
			return nil, s.fail("a number without digits in the exponent")
		}
	}
	return number(s.text[start:s.at]), nil
}

// one takes one byte of set if it stands here.
func (s *scanner) one(set string) bool {
	if s.at == len(s.text) || strings.IndexByte(set, s.text[s.at]) < 0 {
		return false
	}
	s.at++
	return true
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

func (s *scanner) string() (string, error) {
	s.at++
	var b strings.Builder
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case c == '"':
			s.at++
			return b.String(), nil
		case c < 0x20:
			return "", s.fail("a control character in a string")
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			r, size := utf8.DecodeRune(s.text[s.at:])
			if r == utf8.RuneError && size < 2 {
				return "", s.fail("invalid UTF-8")
			}
			b.Write(s.text[s.at : s.at+size])
			s.at += size
		}
	}
	return "", s.fail("a string without end")
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape takes one escape, or the two of a surrogate pair.
func (s *scanner) escape() (rune, error) {
	if s.at++; s.at == len(s.text) {
		return 0, s.fail("a string without end")
	}
	if r, ok := escapes[s.text[s.at]]; ok {
		s.at++
		return r, nil
	}
	r, err := s.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if !s.one(`\`) {
		return 0, s.fail("a lone surrogate")
	}
	low, err := s.hex()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, s.fail("a lone surrogate")
	}
	return r, nil
}

// hex takes u and four hexadecimal digits.
func (s *scanner) hex() (rune, error) {
	if !s.one("u") {
		return 0, s.fail("an unknown escape")
	}
	var r rune
	for range 4 {
		if s.at == len(s.text) {
			return 0, s.fail("a string without end")
		}
		digit := strings.IndexByte("0123456789abcdef", s.text[s.at]|0x20)
		if digit < 0 || s.text[s.at] < '0' {
			return 0, s.fail("no hexadecimal digit in an escape")
		}
		r = r<<4 | rune(digit)
		s.at++
	}
	return r, nil
}

// clip cuts s to at most n bytes, on a rune's edge.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
