package lm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Chat writes the turns of a conversation in the model's own format, as runs of tokens, so that a prompt can be cut
// into blocks of keys and values between any two of them. A conversation is System, then UserOpen, text, UserClose,
// AssistantOpen, and what the model writes; the caller encodes its own text with Tokenizer.Encode, so nothing in it
// counts as a special token. Safe for concurrent use.
type Chat struct {
	// Think lets a model that can think do so: AssistantOpen then leaves out the empty thought that keeps it from it.
	Think bool

	tok    *Tokenizer
	style  chatStyle
	err    error   // why the format is not known
	begin  []Token // of a conversation
	system string  // the template's system text for a conversation without one; "" for none
	thinks bool    // thinking is an option of the template
}

// chatStyle is how a format writes one turn: open, role, middle, text, then close.
type chatStyle struct {
	open, middle, close string // special tokens and line breaks
}

var (
	chatML = chatStyle{"<|im_start|>", "\n", "<|im_end|>\n"}
	llama3 = chatStyle{"<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"}
)

// defaultSystem finds the system turn that a ChatML template writes out when a conversation brings none.
var defaultSystem = regexp.MustCompile(`<\|im_start\|>system(?:\n|\\n)([^'"{}]+)<\|im_end\|>`)

// newChat recognises the format by the template that came with the model. An unknown or missing template is an error
// only once the chat is used: Err.
func newChat(template string, tok *Tokenizer) Chat {
	c := Chat{tok: tok, begin: tok.begin, thinks: strings.Contains(template, "enable_thinking")}
	switch {
	case template == "":
		c.err = fmt.Errorf("%w: the model brings no chat template: it is no chat model, use an instruct one", ErrModel)
		return c
	case strings.Contains(template, chatML.open):
		c.style = chatML
	case strings.Contains(template, llama3.open):
		c.style = llama3
		if begin, ok := tok.named["<|begin_of_text|>"]; ok { // its template writes it, whatever the tokenizer adds
			c.begin = []Token{begin}
		}
	default:
		c.err = fmt.Errorf("%w: the model's chat template is neither ChatML nor Llama 3's: %.60q", ErrModel, template)
		return c
	}
	for _, name := range special.FindAllString(c.style.open+c.style.middle+c.style.close, -1) {
		if _, ok := tok.named[name]; !ok {
			c.err = fmt.Errorf("%w: the chat template uses %s, which is no special token of the model", ErrModel, name)
		}
	}
	if found := defaultSystem.FindStringSubmatch(template); found != nil {
		c.system = strings.ReplaceAll(found[1], `\n`, "\n")
	}
	return c
}

// special matches a special token in a chatStyle.
var special = regexp.MustCompile(`<\|\w+\|>`)

// Err says why the chat cannot be used, nil when it can. Every run of an unusable chat is nil.
func (c Chat) Err() error {
	if c.tok == nil && c.err == nil {
		return fmt.Errorf("%w: no chat: the model is not open", ErrModel)
	}
	return c.err
}

// System begins a conversation: the tokens that every text begins with, and a system turn. With "" the turn holds the
// template's own default, and is left out when the template has none. Llama 3's dates are not written.
func (c Chat) System(text string) []Token {
	if c.Err() != nil {
		return nil
	}
	begin := slices.Clone(c.begin)
	if text == "" {
		text = c.system
	}
	if text == "" {
		return begin
	}
	return append(begin, slices.Concat(c.open("system", text), c.run(c.style.close))...)
}

// UserOpen begins a user turn; its text follows.
func (c Chat) UserOpen() []Token { return c.open("user", "") }

// UserClose ends a user turn, and equally a turn of the model that is given as history.
func (c Chat) UserClose() []Token { return c.run(c.style.close) }

// AssistantOpen begins the turn that the model writes. A model that can think gets an empty thought, as its template
// writes it when thinking is off, unless Think is set.
func (c Chat) AssistantOpen() []Token {
	run := c.open("assistant", "")
	if c.thinks && !c.Think && c.Err() == nil {
		run = append(run, c.tok.EncodeSpecial("<think>\n\n</think>\n\n")...)
	}
	return run
}

// Stops are the tokens that end the model's turn.
func (c Chat) Stops() []Token {
	if c.Err() != nil {
		return nil
	}
	return c.tok.Stops()
}

// open writes the beginning of a turn. The text is encoded together with what stands before it, as the template would.
func (c Chat) open(role, text string) []Token {
	if c.Err() != nil {
		return nil
	}
	mark := special.FindString(c.style.middle)
	run := c.run(c.style.open)
	if mark == "" {
		return append(run, c.tok.Encode(role+c.style.middle+text)...)
	}
	run = append(append(run, c.tok.Encode(role)...), c.run(mark)...)
	return append(run, c.tok.Encode(c.style.middle[len(mark):]+text)...)
}

// run encodes a piece of the format itself, special tokens included.
func (c Chat) run(piece string) []Token {
	if c.Err() != nil {
		return nil
	}
	return c.tok.EncodeSpecial(piece)
}
