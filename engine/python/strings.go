package python

import "strings"

// stringLength is the length of the string literal at the position with its prefix, 0 if there is none. A literal without
// an end reaches to the end of its line, or of the source when it is triple-quoted; closed is false then.
func stringLength(s string) (n int, closed bool) {
	p := 0
	for p < len(s) && p < 3 && strings.IndexByte("rRbBuUfFtT", s[p]) >= 0 {
		p++
	}
	if p == len(s) || s[p] != '"' && s[p] != '\'' {
		return 0, false
	}
	quote := quoteAt(s[p:])
	return stringEnd(s, p+len(quote), quote, isFormatted(s[:p]))
}

// quoteAt is the quote that s begins with: one character or three.
func quoteAt(s string) string {
	if three := strings.Repeat(s[:1], 3); strings.HasPrefix(s, three) {
		return three
	}
	return s[:1]
}

func isFormatted(prefix string) bool { return strings.ContainsAny(prefix, "fFtT") }

// stringEnd is the end of a literal whose inside begins at i. In a formatted one quotes inside a field belong to the
// field (PEP 701).
func stringEnd(s string, i int, quote string, formatted bool) (end int, closed bool) {
	for i < len(s) {
		switch {
		case s[i] == '\\':
			i += 2
			if i <= len(s) && s[i-1] == '\r' && i < len(s) && s[i] == '\n' {
				i++
			}
		case s[i] == '\n' && len(quote) == 1:
			return i, false
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote), true
		case formatted && strings.HasPrefix(s[i:], "{{"):
			i += 2
		case formatted && s[i] == '{':
			behind, ok := fieldEnd(s, i+1, quote)
			if !ok { // no whole field: read on as in a plain string
				return stringEnd(s, i+1, quote, false)
			}
			i = behind
		default:
			i++
		}
	}
	return len(s), false
}

// fieldEnd is the position behind the field of a formatted literal whose inside begins at i; ok is false when the field
// does not end.
func fieldEnd(s string, i int, quote string) (end int, ok bool) {
	depth := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '\n' && len(quote) == 1:
			return 0, false
		case c == '}' && depth == 0:
			return i + 1, true
		case c == ':' && depth == 0:
			return specEnd(s, i+1, quote)
		case c == '"' || c == '\'':
			inner := quoteAt(s[i:])
			if i, ok = stringEnd(s, i+len(inner), inner, i > 0 && isFormatted(s[i-1:i])); !ok {
				return 0, false
			}
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
		i++
	}
	return 0, false
}

// specEnd is fieldEnd from behind the colon of a field on: plain text with fields in it.
func specEnd(s string, i int, quote string) (end int, ok bool) {
	for i < len(s) {
		switch {
		case s[i] == '}':
			return i + 1, true
		case s[i] == '{':
			if i, ok = fieldEnd(s, i+1, quote); !ok {
				return 0, false
			}
			continue
		case strings.HasPrefix(s[i:], quote), s[i] == '\n' && len(quote) == 1:
			return 0, false
		}
		i++
	}
	return 0, false
}

// fields are the insides of the fields of a formatted literal, format and all.
func fields(literal string) (all []string) {
	p := strings.IndexAny(literal, `"'`)
	quote := quoteAt(literal[p:])
	for i := p + len(quote); i < len(literal); {
		switch {
		case strings.HasPrefix(literal[i:], "{{"):
			i += 2
		case literal[i] == '{':
			end, ok := fieldEnd(literal, i+1, quote)
			if !ok {
				return append(all, literal[i+1:])
			}
			all = append(all, literal[i+1:end-1])
			i = end
		default:
			i++
		}
	}
	return all
}
