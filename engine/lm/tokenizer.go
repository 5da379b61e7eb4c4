package lm

// Tokenizer turns text into tokens and back: byte-level BPE. Safe for concurrent use.
type Tokenizer struct{}

// Encode turns plain text into tokens; text that looks like a special token stays text.
func (t *Tokenizer) Encode(text string) []Token { return nil }

// EncodeSpecial is Encode with special tokens in the text taken as such.
func (t *Tokenizer) EncodeSpecial(text string) []Token { return nil }

// Decode turns tokens into text.
func (t *Tokenizer) Decode(tokens []Token) string { return "" }

// Token looks a special or ordinary token up by its text.
func (t *Tokenizer) Token(text string) (Token, bool) { return 0, false }

// Stops are the tokens that end a generation.
func (t *Tokenizer) Stops() []Token { return nil }
