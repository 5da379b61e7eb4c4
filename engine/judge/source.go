package judge

import (
	"fmt"
	"regexp"
	"slices"
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
	name := declaredEncoding(code) // Python itself takes "utf-8-" and anything, Emacs's utf-8-unix, for utf-8
	if !strings.HasPrefix(name, "utf-8-") && !slices.Contains([]string{"", "utf-8", "utf8", "u8", "ascii", "us-ascii"}, name) {
		return fmt.Sprintf("the program declares the encoding %q, only UTF-8 is allowed; it was not run", clip(name, 40))
	}
	return ""
}

// declaredEncoding returns the encoding that Python would take from the first two lines, in small letters, or "". The
// second line counts only where the first is blank or a comment.
func declaredEncoding(code string) string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(clip(code, 4096), "\ufeff"))
	lines := strings.SplitN(text, "\n", 3)
	for _, line := range lines[:min(2, len(lines))] {
		if m := coding.FindStringSubmatch(line); m != nil {
			return strings.ToLower(strings.ReplaceAll(m[1], "_", "-"))
		}
		if code := strings.Trim(line, " \t\f"); code != "" && code[0] != '#' {
			return ""
		}
	}
	return ""
}
