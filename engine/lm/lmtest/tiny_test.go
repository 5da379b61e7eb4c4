package lmtest

import "testing"

func TestTinyOpens(t *testing.T) {
	m := Tiny(t)
	const text = "naïve\n\t<|im_end|> 字"
	if got := m.Tokenizer.Decode(m.Tokenizer.Encode(text)); got != text {
		t.Errorf("decoded %q", got)
	}
	if n := len(m.Tokenizer.Encode(text)); n != len(text) {
		t.Errorf("%d tokens, %d bytes", n, len(text))
	}
	if err := m.Chat.Err(); err != nil {
		t.Error(err)
	}
	if len(m.Chat.AssistantOpen()) == 0 || len(m.Tokenizer.Stops()) == 0 {
		t.Error("no chat tokens")
	}
}
