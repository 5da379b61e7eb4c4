package lm_test

import (
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/lmtest"
)

// The small real model opens with the numbers of its model card, its vocabulary gives the tokens of Hugging Face
// tokenizers under three pre-tokenizers, and its chat begins with its own default system turn.
func TestSmolLM(t *testing.T) {
	m, err := lm.Open(lmtest.SmolLM(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := lm.Config{Arch: "llama", Layers: 30, Width: 576, Heads: 9, KVHeads: 3, HeadDim: 64, FFN: 1536, Vocab: 49152,
		Context: 8192, RopeTheta: 100000, RopeInterleaved: true, NormEps: float64(float32(1e-5)), Tied: true}
	if m.Config != want {
		t.Errorf("config %+v, want %+v", m.Config, want)
	}
	for pre, golden := range map[string]string{"smollm": "smollm", "llama-bpe": "llama3", "gpt-2": "gpt2"} {
		lm.CheckGolden(t, m.Tokenizer.WithPre(t, pre), golden)
	}
	lm.CheckGolden(t, m.Tokenizer, "smollm")
	system := "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
	if got := m.Tokenizer.Decode(m.Chat.System("")); got != system || m.Chat.Err() != nil {
		t.Errorf("system turn %q, %v", got, m.Chat.Err())
	}
}
