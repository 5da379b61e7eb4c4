package page

import (
	"go/scanner"
	"go/token"
	"html/template"
	"slices"
	"strings"
)

// predeclared names of Go and of skep's cells.
var predeclared = strings.Fields(`any append bool byte cap clear close comparable complex complex128 complex64 copy
	ctx delete error false float32 float64 imag int int16 int32 int64 int8 iota len make max min must new nil panic print
	println real recover rune string true uint uint16 uint32 uint64 uint8 uintptr`)

// Highlight is source as HTML with <span>s around Go's tokens; another language is only escaped. Incomplete or broken
// Go is marked as far as it goes: no character of source is lost or added but carriage returns.
func Highlight(source, language string) template.HTML {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source) // the scanner drops them from literals
	if language != "go" {
		return template.HTML(template.HTMLEscapeString(source))
	}
	var out strings.Builder
	done := 0
	for _, t := range goTokens(source) {
		out.WriteString(template.HTMLEscapeString(source[done:t.start]))
		body := template.HTMLEscapeString(source[t.start:t.end])
		if t.class != "" {
			body = `<span class="hl-` + t.class + `">` + body + `</span>`
		}
		out.WriteString(body)
		done = t.end
	}
	out.WriteString(template.HTMLEscapeString(source[done:]))
	return template.HTML(out.String())
}

// goToken is a token at source[start:end]; class is "" for what stays plain.
type goToken struct {
	start, end int
	class      string
}

func goTokens(source string) (tokens []goToken) {
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return tokens
		}
		start := file.Offset(pos)
		if literal == "" {
			literal = tok.String()
		}
		end := start + len(literal)
		if tok == token.SEMICOLON && literal == "\n" || end > len(source) || source[start:end] != literal {
			continue // a semicolon that the scanner put in
		}
		if tok == token.LPAREN && len(tokens) > 0 && tokens[len(tokens)-1].end == start {
			if last := &tokens[len(tokens)-1]; last.class == "" && token.IsIdentifier(source[last.start:last.end]) {
				last.class = "f" // a call or a function's name
			}
		}
		tokens = append(tokens, goToken{start, end, classOf(tok, literal)})
	}
}

func classOf(tok token.Token, literal string) string {
	switch {
	case tok == token.COMMENT:
		return "c"
	case tok.IsKeyword():
		return "k"
	case tok == token.STRING || tok == token.CHAR:
		return "s"
	case tok == token.INT || tok == token.FLOAT || tok == token.IMAG:
		return "n"
	case tok == token.IDENT && slices.Contains(predeclared, literal):
		return "b"
	}
	return ""
}
