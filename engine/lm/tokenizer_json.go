package lm

import (
	"encoding/json"
	"fmt"
	"os"
)

// Reading a tokenizer from Hugging Face's tokenizer.json, with the same rule: what is not known is refused.

// tokenizerJSON is the part of Hugging Face's tokenizer.json that matters.
type tokenizerJSON struct {
	AddedTokens []struct {
		ID         int    `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer    *tokenizerStep `json:"normalizer"`
	PreTokenizer  *tokenizerStep `json:"pre_tokenizer"`
	PostProcessor *tokenizerStep `json:"post_processor"`
	Model         struct {
		Type         string            `json:"type"`
		Unk          *string           `json:"unk_token"`
		Dropout      *float64          `json:"dropout"`
		Prefix       *string           `json:"continuing_subword_prefix"`
		Suffix       *string           `json:"end_of_word_suffix"`
		ByteFallback bool              `json:"byte_fallback"`
		FuseUnk      bool              `json:"fuse_unk"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Vocab        map[string]int    `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
	} `json:"model"`
}

// tokenizerStep is a normaliser, pre-tokenizer or post-processor; Type says which of the other fields count.
type tokenizerStep struct {
	Type             string          `json:"type"`
	Normalizers      []tokenizerStep `json:"normalizers"`
	Pretokenizers    []tokenizerStep `json:"pretokenizers"`
	Processors       []tokenizerStep `json:"processors"`
	Pattern          tokenizerRegex  `json:"pattern"`
	Behavior         string          `json:"behavior"`
	Invert           bool            `json:"invert"`
	AddPrefixSpace   bool            `json:"add_prefix_space"`
	UseRegex         *bool           `json:"use_regex"` // true when absent
	IndividualDigits bool            `json:"individual_digits"`
	Single           []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
}

type tokenizerRegex struct {
	Regex string `json:"Regex"`
}

// openTokenizer reads a tokenizer.json. ends are the ids that end a text, from the model's configuration.
func openTokenizer(path string, ends []int) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTokenizer(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, t.setStops(ends)
}

func parseTokenizer(data []byte) (*Tokenizer, error) {
	var file tokenizerJSON
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	t := &Tokenizer{}
	var err error
	if t.normalize, err = file.Normalizer.normalizer(); err != nil {
		return nil, err
	}
	if t.split, err = file.PreTokenizer.pretokenizer(); err != nil {
		return nil, err
	}
	if t.bpe, err = file.vocabulary(); err != nil {
		return nil, err
	}
	var specials []added
	for _, a := range file.AddedTokens {
		text := a.Content
		if a.Normalized && t.normalize != nil {
			text = t.normalize(text)
		}
		if a.ID < 0 || a.ID >= t.Len() {
			return nil, fmt.Errorf("%w: added token %q has the id %d, the vocabulary %d places", ErrModel, a.Content, a.ID, t.Len())
		}
		specials = append(specials, added{Token(a.ID), text, a.LStrip, a.RStrip, a.SingleWord, a.Normalized})
	}
	if err := t.addAll(specials); err != nil {
		return nil, err
	}
	return t, file.PostProcessor.begin(t)
}

// vocabulary builds the BPE model with room for the added tokens.
func (file *tokenizerJSON) vocabulary() (*bpe, error) {
	m := file.Model
	switch {
	case m.Type != "BPE":
		return nil, fmt.Errorf("%w: tokenizer model %q; only BPE is read", ErrModel, m.Type)
	case m.ByteFallback || m.FuseUnk || m.Dropout != nil && *m.Dropout != 0,
		m.Prefix != nil && *m.Prefix != "", m.Suffix != nil && *m.Suffix != "":
		return nil, fmt.Errorf("%w: the tokenizer uses byte_fallback, fuse_unk, dropout or a subword prefix or suffix", ErrModel)
	}
	size := len(m.Vocab)
	for _, a := range file.AddedTokens {
		if _, inside := m.Vocab[a.Content]; !inside {
			size++
		}
	}
	words := make([]string, size)
	for word, id := range m.Vocab {
		if id < 0 || id >= size || words[id] != "" {
			return nil, fmt.Errorf("%w: token %q has the id %d, outside 0 … %d or taken", ErrModel, word, id, size-1)
		}
		words[id] = word
	}
	merges, err := file.merges()
	if err != nil {
		return nil, err
	}
	b, err := newBPE(words, merges)
	if err != nil {
		return nil, err
	}
	b.whole = m.IgnoreMerges
	if m.Unk != nil {
		id, ok := m.Vocab[*m.Unk]
		if !ok {
			return nil, fmt.Errorf("%w: unk_token %q is not in the vocabulary", ErrModel, *m.Unk)
		}
		b.unk = Token(id)
	}
	return b, nil
}

// merges writes every merge as "a b".
func (file *tokenizerJSON) merges() ([]string, error) {
	merges := make([]string, len(file.Model.Merges))
	for i, raw := range file.Model.Merges { // "a b" in old files, ["a", "b"] in new ones
		var two []string
		if json.Unmarshal(raw, &merges[i]) == nil {
			continue
		}
		if json.Unmarshal(raw, &two) != nil || len(two) != 2 {
			return nil, fmt.Errorf("%w: merge %d is %s, not two words", ErrModel, i, raw)
		}
		merges[i] = two[0] + " " + two[1]
	}
	return merges, nil
}

func (s *tokenizerStep) normalizer() (func(string) string, error) {
	switch {
	case s == nil || s.Type == "Sequence" && len(s.Normalizers) == 0:
		return nil, nil
	case s.Type == "NFC":
		return nfc, nil
	case s.Type == "Sequence" && len(s.Normalizers) == 1:
		return s.Normalizers[0].normalizer()
	}
	return nil, fmt.Errorf("%w: tokenizer.json normalises by %s; only NFC is known", ErrModel, s.Type)
}

// pretokenizer recognises the four known arrangements; all end in ByteLevel, which also makes bytes of the words.
func (s *tokenizerStep) pretokenizer() (pretokenizer, error) {
	var steps []tokenizerStep
	switch {
	case s == nil:
		return nil, fmt.Errorf("%w: tokenizer.json has no pre_tokenizer", ErrModel)
	case s.Type == "Sequence":
		steps = s.Pretokenizers
	default:
		steps = []tokenizerStep{*s}
	}
	if n := len(steps); n == 0 || steps[n-1].Type != "ByteLevel" || steps[n-1].AddPrefixSpace {
		return nil, fmt.Errorf("%w: the pre-tokenizer does not end in ByteLevel without a prefix space", ErrModel)
	}
	regex := steps[len(steps)-1].UseRegex
	inner := regex == nil || *regex
	switch {
	case len(steps) == 1 && inner:
		return wordwise(gpt2Word), nil
	case len(steps) == 2 && inner && steps[0].Type == "Digits" && steps[0].IndividualDigits:
		return digitwise(wordwise(gpt2Word)), nil
	case len(steps) == 2 && !inner && steps[0].Type == "Split" && steps[0].Behavior == "Isolated" && !steps[0].Invert:
		switch steps[0].Pattern.Regex {
		case qwen2Pattern:
			return wordwise(qwen2Word), nil
		case llama3Pattern:
			return wordwise(llama3Word), nil
		}
	}
	return nil, fmt.Errorf("%w: the pre-tokenizer is none of Qwen2's, Llama 3's, SmolLM's and GPT-2's (pattern %q)",
		ErrModel, steps[0].Pattern.Regex)
}

// begin finds the tokens that the post-processor puts before a text; others than those are refused.
func (s *tokenizerStep) begin(t *Tokenizer) error {
	if s == nil {
		return nil
	}
	switch s.Type {
	case "ByteLevel": // offsets only
		return nil
	case "Sequence":
		for _, step := range s.Processors {
			if err := step.begin(t); err != nil {
				return err
			}
		}
		return nil
	case "TemplateProcessing":
		return s.template(t)
	}
	return fmt.Errorf("%w: tokenizer.json has a post-processor of type %q", ErrModel, s.Type)
}

// template reads the tokens before the text; tokens behind it would end every prompt, and are refused.
func (s *tokenizerStep) template(t *Tokenizer) error {
	for i, piece := range s.Single {
		if piece.SpecialToken == nil {
			if i != len(s.Single)-1 {
				return fmt.Errorf("%w: the post-processor adds tokens behind a text", ErrModel)
			}
			return nil
		}
		token, ok := t.named[piece.SpecialToken.ID]
		if !ok {
			return fmt.Errorf("%w: the post-processor adds %q, which is no added token", ErrModel, piece.SpecialToken.ID)
		}
		t.begin = append(t.begin, token)
	}
	return nil
}
