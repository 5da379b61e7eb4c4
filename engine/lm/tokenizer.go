package lm

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokenizer turns text into tokens and back: byte-level BPE with the file's vocabulary, merges and pre-tokenizer. Its
// tokens are those of Hugging Face tokenizers, without anything added at the ends. Safe for concurrent use.
type Tokenizer struct {
	bpe       *bpe
	split     pretokenizer
	normalize func(string) string // applied to ordinary text; nil: none
	added     []added             // longest first
	named     map[string]Token    // added tokens by text
	begin     []Token
	stops     []Token
}

// added is a token that is matched in the text before anything else, special or not.
type added struct {
	token          Token
	text           string
	lstrip, rstrip bool // it takes the white space on that side along
	single         bool // only where it is a whole word
	normalized     bool // it is matched in the normalised text
}

// Encode turns plain text into tokens. What looks like a special token stays text, so it is safe for text that others
// wrote.
func (t *Tokenizer) Encode(text string) []Token { return t.plain(nil, t.normal(text)) }

// EncodeSpecial is Encode with the special and other added tokens in the text taken as such.
func (t *Tokenizer) EncodeSpecial(text string) []Token {
	var out []Token
	t.cut(text, false, func(piece string, token Token) {
		if token != noToken {
			out = append(out, token)
			return
		}
		t.cut(t.normal(piece), true, func(piece string, token Token) {
			if token != noToken {
				out = append(out, token)
			} else {
				out = t.plain(out, piece)
			}
		})
	})
	return out
}

// Decode returns the bytes of the tokens, special tokens by their text. The text may begin or end inside a character
// when the tokens do; joined runs decode to the joined bytes. Tokens outside the vocabulary are nothing.
func (t *Tokenizer) Decode(tokens []Token) string {
	var out strings.Builder
	for _, token := range tokens {
		if 0 <= token && int(token) < len(t.bpe.pieces) {
			out.WriteString(t.bpe.pieces[token])
		}
	}
	return out.String()
}

// Token looks a token up by its text, special tokens first.
func (t *Tokenizer) Token(text string) (Token, bool) {
	if token, ok := t.named[text]; ok {
		return token, true
	}
	token, ok := t.bpe.ids[text]
	return token, ok
}

// Len is the number of tokens; the model's embedding may have more rows.
func (t *Tokenizer) Len() int { return len(t.bpe.pieces) }

// Begin are the tokens that every text begins with, none for most models. Chat.System writes them by itself. The
// caller must not change it.
func (t *Tokenizer) Begin() []Token { return t.begin }

// Stops are the tokens that end a generation, ascending. The caller must not change it.
func (t *Tokenizer) Stops() []Token { return t.stops }

func (t *Tokenizer) normal(text string) string {
	if t.normalize == nil {
		return text
	}
	return t.normalize(text)
}

// plain appends the tokens of normalised text.
func (t *Tokenizer) plain(out []Token, text string) []Token {
	t.split(text, func(word string) { out = t.bpe.encode(out, word) })
	return out
}

// cut calls each with every added token of the text (of the kind that is matched in normalised text, or of the other)
// and with the stretches between them, whose token is noToken. Of tokens that begin at one place the longest counts.
// As in Hugging Face tokenizers, the matches are those of the bare texts, and stripping only decides what is left
// between them; a match that is refused as no whole word still takes its place.
func (t *Tokenizer) cut(text string, normalized bool, each func(piece string, token Token)) {
	from := 0
	for i := 0; i < len(text); {
		a, ok := t.addedAt(text[i:], normalized)
		if !ok {
			i++
			continue
		}
		start, end := i, i+len(a.text)
		i = end
		if a.single && !isWhole(text, start, end) {
			continue
		}
		if a.lstrip {
			start = max(from, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if a.rstrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if from < start {
			each(text[from:start], noToken)
		}
		each(a.text, a.token)
		from = end
	}
	if from < len(text) {
		each(text[from:], noToken)
	}
}

// addedAt finds the longest added token that text begins with.
func (t *Tokenizer) addedAt(text string, normalized bool) (added, bool) {
	for _, a := range t.added {
		if a.normalized == normalized && text[0] == a.text[0] && strings.HasPrefix(text, a.text) {
			return a, true
		}
	}
	return added{}, false
}

// isWhole reports whether no word goes on at either end of text[start:end].
func isWhole(text string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !isWord(before) && !isWord(after)
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc)
}

// addAll enters the added tokens into the vocabulary.
func (t *Tokenizer) addAll(all []added) error {
	t.named = make(map[string]Token, len(all))
	for _, a := range all {
		if a.text == "" || a.token < 0 || int(a.token) >= len(t.bpe.pieces) {
			return fmt.Errorf("%w: added token %d, %q, has no text or no place in the vocabulary", ErrModel, a.token, a.text)
		}
		t.bpe.pieces[a.token] = a.text
		t.named[a.text] = a.token
	}
	t.added = slices.Clone(all)
	slices.SortStableFunc(t.added, func(a, b added) int { return len(b.text) - len(a.text) })
	return nil
}

// stopNames are special tokens that end a text or a turn in the supported families, whatever the file calls its end.
var stopNames = []string{"<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>"}

// setStops takes the file's end tokens and those that are there by name.
func (t *Tokenizer) setStops(ends []int) error {
	var stops []Token
	for _, end := range ends {
		if end < 0 || end >= t.Len() {
			return fmt.Errorf("%w: end token %d is outside the vocabulary of %d", ErrModel, end, t.Len())
		}
		stops = append(stops, Token(end))
	}
	for _, name := range stopNames {
		if token, ok := t.named[name]; ok {
			stops = append(stops, token)
		}
	}
	slices.Sort(stops)
	t.stops = slices.Compact(stops)
	if len(t.stops) == 0 {
		return fmt.Errorf("%w: the file names no token that ends a text", ErrModel)
	}
	return nil
}
