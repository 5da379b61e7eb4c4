package lm

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Pre-tokenizers cut text into words; merges never cross a cut. The patterns are regular expressions in the model
// files, with a look-ahead that Go's regexp lacks, so each known one is written out here by hand and tested against
// Hugging Face tokenizers. Bytes that are no UTF-8 count as symbols.

// pretokenizer calls word for each word of text, in order; the words joined are the text.
type pretokenizer func(text string, word func(string))

// The patterns as the files spell them.
const (
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// pretokenizerByName knows the names of GGUF's tokenizer.ggml.pre.
func pretokenizerByName(name string) (pretokenizer, error) {
	switch name {
	case "qwen2", "deepseek-r1-qwen":
		return wordwise(qwen2Word), nil
	case "llama-bpe", "llama3", "llama-v3":
		return wordwise(llama3Word), nil
	case "gpt-2":
		return wordwise(gpt2Word), nil
	case "smollm":
		return digitwise(wordwise(gpt2Word)), nil
	}
	return nil, fmt.Errorf("%w: pre-tokenizer %q is not known (qwen2, llama-bpe, smollm and gpt-2 are)", ErrModel, name)
}

// wordwise repeats a function that returns the length of the first word of a text that is not empty.
func wordwise(first func(string) int) pretokenizer {
	return func(text string, word func(string)) {
		for len(text) > 0 {
			n := first(text)
			word(text[:n])
			text = text[n:]
		}
	}
}

// digitwise makes every number a word of its own and gives the stretches between them to inner.
func digitwise(inner pretokenizer) pretokenizer {
	return func(text string, word func(string)) {
		from := 0
		for i, r := range text {
			if !isDigit(r) {
				continue
			}
			inner(text[from:i], word)
			from = i + utf8.RuneLen(r)
			word(text[i:from])
		}
		inner(text[from:], word)
	}
}

func qwen2Word(s string) int  { return modernWord(s, 1) }
func llama3Word(s string) int { return modernWord(s, 3) }

// modernWord is the pattern that Qwen2 and Llama 3 share but for the length of a run of numbers.
func modernWord(s string, numbers int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isLetter(r):
		return span(s, isLetter, -1)
	case isNumber(r):
		return span(s, isNumber, numbers)
	case r != '\r' && r != '\n': // one character of another kind may lead a run of letters
		if n := span(s[size:], isLetter, -1); n > 0 {
			return size + n
		}
	}
	if n := spacedRun(s, isSymbol); n > 0 {
		return n + span(s[n:], isNewline, -1)
	}
	blank := span(s, unicode.IsSpace, -1)
	if n := lastNewline(s[:blank]); n > 0 {
		return n
	}
	return blankWord(s, blank)
}

// gpt2Word is the pattern of GPT-2, also inside the ByteLevel pre-tokenizer.
func gpt2Word(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	for _, class := range []func(rune) bool{isLetter, isNumber, isSymbol} {
		if n := spacedRun(s, class); n > 0 {
			return n
		}
	}
	return blankWord(s, span(s, unicode.IsSpace, -1))
}

// contraction is the length of 's 't 're 've 'm 'll 'd at the start of s, else 0. Folded, capitals count, and ſ as s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	rest := s[1:]
	for _, ending := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
		if len(rest) >= len(ending) && (rest[:len(ending)] == ending || fold && equalFoldASCII(rest[:len(ending)], ending)) {
			return 1 + len(ending)
		}
	}
	if long := "ſ"; fold && len(rest) >= len(long) && rest[:len(long)] == long {
		return 1 + len(long)
	}
	return 0
}

// equalFoldASCII compares a with lower, which is in lower case.
func equalFoldASCII(a, lower string) bool {
	for i := range len(a) {
		if a[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// span is the number of bytes of the leading runes of a class, at most limit runes when limit ≥ 0.
func span(s string, class func(rune) bool, limit int) int {
	for i, r := range s {
		if limit == 0 || !class(r) {
			return i
		}
		limit--
	}
	return len(s)
}

// spacedRun is the length of an optional space and a run of the class, 0 without the run.
func spacedRun(s string, class func(rune) bool) int {
	space := 0
	if s[0] == ' ' {
		space = 1
	}
	if n := span(s[space:], class, -1); n > 0 {
		return space + n
	}
	return 0
}

// blankWord cuts a run of blank bytes of white space: all of it at the end of the text, else all but its last
// character, which goes to the next word, unless it is the only one.
func blankWord(s string, blank int) int {
	if blank == len(s) {
		return blank
	}
	_, last := utf8.DecodeLastRuneInString(s[:blank])
	if blank > last {
		return blank - last
	}
	return blank
}

// lastNewline is the end of the last newline in s, 0 when there is none.
func lastNewline(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '\n' || s[i] == '\r' {
			return i + 1
		}
	}
	return 0
}
