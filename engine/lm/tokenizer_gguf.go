package lm

import (
	"fmt"
	"strings"
)

// Reading a tokenizer from the metadata of a GGUF file. What a file asks for and this package does not do is an error:
// a tokenizer that is almost right gives wrong tokens silently.

// GGUF's kinds of tokens that matter here (tokenizer.ggml.token_type).
const (
	ggufNormal  = 1
	ggufUnknown = 2
	ggufControl = 3
	ggufUser    = 4
)

// tokenizer reads the tokenizer.ggml.* metadata.
func (g *gguf) tokenizer() (*Tokenizer, error) {
	model, err := g.string("tokenizer.ggml.model")
	if err != nil {
		return nil, err
	}
	if model != "gpt2" {
		return nil, fmt.Errorf("%w: tokenizer.ggml.model is %q; only byte-level BPE (\"gpt2\") is read", ErrModel, model)
	}
	name, err := g.string("tokenizer.ggml.pre")
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	specials, err := g.vocabulary(t)
	if err != nil {
		return nil, err
	}
	if err := t.setPre(name); err != nil {
		return nil, err
	}
	if err := t.addAll(specials); err != nil {
		return nil, err
	}
	return t, g.ends(t)
}

// setPre takes over what the name of a pre-tokenizer implies. The format carries neither the normaliser nor
// ignore_merges; Qwen's tokenizer.json has NFC, Llama 3's takes words that are tokens whole.
func (t *Tokenizer) setPre(name string) (err error) {
	t.split, err = pretokenizerByName(name)
	t.normalize = nil
	if strings.Contains(name, "qwen") {
		t.normalize = nfc
	}
	t.bpe.whole = strings.HasPrefix(name, "llama")
	return err
}

// vocabulary reads tokens and merges into t and returns the tokens that are matched as whole texts.
func (g *gguf) vocabulary(t *Tokenizer) ([]added, error) {
	words, err := g.strings("tokenizer.ggml.tokens")
	if err != nil {
		return nil, err
	}
	kinds, err := g.ints("tokenizer.ggml.token_type")
	if err != nil {
		return nil, err
	}
	merges, err := g.strings("tokenizer.ggml.merges")
	if err != nil {
		return nil, err
	}
	if len(kinds) != len(words) {
		return nil, fmt.Errorf("%w: %d tokens, but %d token types", ErrModel, len(words), len(kinds))
	}
	var specials []added
	for i, kind := range kinds {
		switch kind {
		case ggufNormal:
			continue
		case ggufUnknown, ggufControl, ggufUser:
			specials = append(specials, added{token: Token(i), text: words[i]})
		}
		words[i] = "" // the others are padding
	}
	t.bpe, err = newBPE(words, merges)
	return specials, err
}

// ends reads which tokens begin and end a text.
func (g *gguf) ends(t *Tokenizer) error {
	var stops []int
	for _, key := range []string{"eos", "eot", "eom"} {
		key = "tokenizer.ggml." + key + "_token_id"
		if _, ok := g.meta[key]; !ok {
			continue
		}
		end, err := g.int(key)
		if err != nil {
			return err
		}
		stops = append(stops, end)
	}
	begins, err := g.bool("tokenizer.ggml.add_bos_token")
	if err != nil {
		return err
	}
	if begins {
		begin, err := g.int("tokenizer.ggml.bos_token_id")
		if err != nil {
			return err
		}
		if begin < 0 || begin >= t.Len() {
			return fmt.Errorf("%w: begin token %d is outside the vocabulary of %d", ErrModel, begin, t.Len())
		}
		t.begin = []Token{Token(begin)}
	}
	return t.setStops(stops)
}
