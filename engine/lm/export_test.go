package lm

import "testing"

// WithPre is the tokenizer with another of GGUF's pre-tokenizers.
func (t *Tokenizer) WithPre(tb testing.TB, name string) *Tokenizer {
	other, bpe := *t, *t.bpe
	other.bpe = &bpe
	if err := other.setPre(name); err != nil {
		tb.Fatal(err)
	}
	return &other
}

// CheckGolden compares a tokenizer with the golden tokens of that name (testdata/make_tokens.py).
func CheckGolden(t *testing.T, tok *Tokenizer, name string) {
	t.Helper()
	texts := readTexts(t).Plain
	compareTokens(t, tok.Encode, texts, readTokens(t, name)[:len(texts)])
}
