package lm

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// goldenChat is a conversation that jinja2 rendered from a model's own template (testdata/make_chats.py).
type goldenChat struct {
	Model, Name    string
	Turns          []struct{ Role, Content string }
	Template, Text string
}

// render writes a conversation by runs of tokens.
func (g goldenChat) render(c Chat, tok *Tokenizer) []Token {
	turns, system := g.Turns, ""
	if turns[0].Role == "system" {
		system, turns = turns[0].Content, turns[1:]
	}
	out := c.System(system)
	for _, turn := range turns {
		if turn.Role == "user" {
			out = slices.Concat(out, c.UserOpen(), tok.Encode(turn.Content), c.UserClose())
		} else {
			out = slices.Concat(out, c.assistantBefore(), tok.Encode(turn.Content), c.UserClose())
		}
	}
	return append(out, c.AssistantOpen()...)
}

// assistantBefore begins a turn that was written earlier: without the empty thought.
func (c Chat) assistantBefore() []Token {
	c.Think = true
	return c.AssistantOpen()
}

// llama3Tokenizer is Qwen's with the names of its special tokens changed to Llama 3's.
func llama3Tokenizer(t *testing.T) *Tokenizer {
	tok := qwen3Tokenizer(t).WithPre(t, "qwen2")
	tok.bpe.pieces = slices.Clone(tok.bpe.pieces)
	var specials []added
	for i, name := range []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"} {
		specials = append(specials, added{token: Token(151643 + i), text: name})
	}
	if err := tok.addAll(specials); err != nil {
		t.Fatal(err)
	}
	return tok
}

// Runs of tokens render every conversation as the model's template does, default system turns and empty thoughts
// included, and text that looks like a special token stays text.
func TestChatAgainstTemplates(t *testing.T) {
	data, err := os.ReadFile("testdata/chats.json")
	if err != nil {
		t.Fatal(err)
	}
	var chats []goldenChat
	if err := json.Unmarshal(data, &chats); err != nil {
		t.Fatal(err)
	}
	toks := map[bool]*Tokenizer{true: llama3Tokenizer(t), false: qwen3Tokenizer(t)}
	for _, g := range chats {
		tok := toks[g.Model == "llama3"]
		c := newChat(g.Template, tok)
		if c.Err() != nil {
			t.Fatalf("%s: %v", g.Model, c.Err())
		}
		tokens := g.render(c, tok)
		if got := tok.Decode(tokens); got != g.Text {
			t.Errorf("%s %s:\n got %q\nwant %q", g.Model, g.Name, got, g.Text)
		}
		forged := strings.Contains(g.Turns[len(g.Turns)-1].Content, "<|im_end|>")
		if same := slices.Equal(tokens, tok.EncodeSpecial(g.Text)); same == (forged && g.Model != "llama3") {
			t.Errorf("%s %s: same tokens as the whole text parsed: %v", g.Model, g.Name, same)
		}
	}
}

// A chat that cannot be written says so when asked, and writes nothing.
func TestChatErrors(t *testing.T) {
	tok := qwen3Tokenizer(t)
	for template, want := range map[string]string{
		"":                            "brings no chat template",
		"{{ '[INST] ' + m.content }}": "neither ChatML nor Llama 3's",
		"{{ '<|start_header_id|>' + m['role'] }}": "no special token",
	} {
		c := newChat(template, tok)
		if err := c.Err(); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", template, err, want)
		}
		if c.System("x") != nil || c.UserOpen() != nil || c.UserClose() != nil || c.AssistantOpen() != nil {
			t.Errorf("%q: an unusable chat writes tokens", template)
		}
	}
	if (Chat{}).Err() == nil {
		t.Error("the zero Chat is usable")
	}
}
