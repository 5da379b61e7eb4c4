package lm

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc is Unicode's canonical composition as tokenizers apply it. norm.NFC alone would not do: it puts a joiner into
// runs of more than 30 combining marks. So its data is used, character by character, when the text needs change.
func nfc(text string) string {
	if norm.NFC.IsNormalString(text) {
		return text
	}
	return compose(decompose(text))
}

// decompose splits text into canonically ordered runes, each as its bytes: invalid ones pass through.
func decompose(text string) []string {
	var out []string
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		whole := text[:size]
		if whole != lateComposite {
			whole = norm.NFD.String(whole)
		}
		for len(whole) > 0 {
			_, n := utf8.DecodeRuneInString(whole)
			out = append(out, whole[:n])
			whole = whole[n:]
		}
		text = text[size:]
	}
	for from := 0; from < len(out); from++ { // order each run of marks by class, equal classes as they stand
		to := from
		for to < len(out) && class(out[to]) != 0 {
			to++
		}
		slices.SortStableFunc(out[from:to], func(a, b string) int { return int(class(a)) - int(class(b)) })
		from = to
	}
	return out
}

// compose joins every character with the last starter before it, unless something between them blocks it
// (Unicode Standard, D117).
func compose(runes []string) string {
	starter, last := -1, uint8(0) // index of the starter; class of the last rune kept after it
	kept := runes[:0]
	for _, r := range runes {
		c := class(r)
		if starter >= 0 && (len(kept) == starter+1 || last < c) {
			if one := norm.NFC.String(kept[starter] + r); utf8.RuneCountInString(one) == 1 && one != lateComposite {
				kept[starter] = one
				continue
			}
		}
		if c == 0 {
			starter = len(kept)
		}
		last = c
		kept = append(kept, r)
	}
	size := 0
	for _, r := range kept {
		size += len(r)
	}
	out := make([]byte, 0, size)
	for _, r := range kept {
		out = append(out, r...)
	}
	return string(out)
}

// class is the canonical combining class of a rune in Unicode 9, 0 for starters.
func class(r string) uint8 {
	c := norm.NFD.PropertiesString(r).CCC()
	if c == 0 {
		return 0
	}
	if first, _ := utf8.DecodeRuneInString(r); unicode.Is(lateMarks, first) {
		return 0
	}
	return c
}
