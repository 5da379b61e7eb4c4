package judge

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxSourceBytes caps a candidate before anything looks at it.
const maxSourceBytes = 256 << 10

// coding is Python's own pattern for an encoding declaration on one of the first two lines (PEP 263).
var coding = regexp.MustCompile(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// checkSource says why a source is not even launched, or "". Whether it is Python is decided inside the walls.
func checkSource(code string) string {
	switch {
	case len(code) > maxSourceBytes:
		return fmt.Sprintf("the program has %d bytes, at most %d are allowed; it was not run", len(code), maxSourceBytes)
	case !utf8.ValidString(code):
		return "the program is not valid UTF-8; it was not run"
	case strings.ContainsRune(code, 0):
		return "the program contains a null byte; it was not run"
	}
	for _, line := range firstLines(code, 2) {
		if m := coding.FindStringSubmatch(line); m != nil {
			switch strings.ToLower(strings.ReplaceAll(m[1], "_", "-")) {
			case "utf-8", "utf8", "u8", "ascii", "us-ascii":
			default:
				return fmt.Sprintf("the program declares the encoding %q, only UTF-8 is allowed; it was not run", clip(m[1], 40))
			}
		}
	}
	return ""
}

// firstLines returns the first n lines by any of Python's line ends.
func firstLines(text string, n int) []string {
	text = strings.TrimPrefix(clip(text, 4096), "\ufeff")
	lines := strings.FieldsFunc(strings.ReplaceAll(text, "\r\n", "\n"), func(r rune) bool { return r == '\n' || r == '\r' })
	return lines[:min(n, len(lines))]
}
