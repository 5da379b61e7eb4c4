// Package lmtest gives tests of other packages a language model: Tiny makes one with random weights in no time, SmolLM
// pulls a small real one, and Backend is the suite that every lm.Backend passes. It deliberately knows no engine.
package lmtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/engine/lm"
)

// Tiny writes a Qwen2 model with random weights, one token per byte and ChatML's special tokens, and opens it. It says
// nothing sensible but runs every path of a round in milliseconds. It is closed when the test ends.
func Tiny(t testing.TB) *lm.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, tinyFile(), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(path)
	if err != nil {
		t.Fatalf("lmtest: the tiny model does not open: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Shape of the tiny model.
const (
	tinyLayers, tinyWidth, tinyHeads, tinyKV, tinyFFN, tinyContext = 2, 32, 4, 2, 48, 65536
)

// gguf collects a model file.
type gguf struct {
	meta, infos, data bytes.Buffer
	nMeta, nTensors   uint64
	random            *rand.Rand
}

func tinyFile() []byte {
	g := &gguf{random: rand.New(rand.NewPCG(2611, 8483))}
	vocab := g.tokenizer("qwen2", 0)
	for _, kv := range []struct {
		key string
		n   uint32
	}{{"block_count", tinyLayers}, {"embedding_length", tinyWidth}, {"feed_forward_length", tinyFFN}, {"attention.head_count", tinyHeads},
		{"attention.head_count_kv", tinyKV}, {"context_length", tinyContext}} {
		g.uint32("qwen2."+kv.key, kv.n)
	}
	g.float32("qwen2.rope.freq_base", 1e6)
	g.float32("qwen2.attention.layer_norm_rms_epsilon", 1e-6)
	const head = tinyWidth / tinyHeads
	g.tensor("token_embd.weight", vocab, tinyWidth)
	g.tensor("output.weight", vocab, tinyWidth)
	g.tensor("output_norm.weight", tinyWidth)
	for l := range tinyLayers {
		at := "blk." + string(rune('0'+l)) + "."
		g.tensor(at+"attn_norm.weight", tinyWidth)
		g.tensor(at+"ffn_norm.weight", tinyWidth)
		for _, part := range []struct {
			name string
			rows int
		}{{"attn_q", tinyHeads * head}, {"attn_k", tinyKV * head}, {"attn_v", tinyKV * head}} {
			g.tensor(at+part.name+".weight", part.rows, tinyWidth)
			g.tensor(at+part.name+".bias", part.rows)
		}
		g.tensor(at+"attn_output.weight", tinyWidth, tinyHeads*head)
		g.tensor(at+"ffn_gate.weight", tinyFFN, tinyWidth)
		g.tensor(at+"ffn_up.weight", tinyFFN, tinyWidth)
		g.tensor(at+"ffn_down.weight", tinyWidth, tinyFFN)
	}
	return g.bytes()
}

// tokenizer writes a vocabulary of the 256 bytes in GPT-2's alphabet and the special tokens, without merges, filled up
// to least tokens with unused ones as converters do.
func (g *gguf) tokenizer(arch string, least int) (vocab int) {
	var words []string
	var kinds []uint32
	for b := range 256 {
		words, kinds = append(words, string(alphabet(byte(b)))), append(kinds, 1)
	}
	for _, special := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		words, kinds = append(words, special), append(kinds, 3)
	}
	for len(words) < least {
		words, kinds = append(words, fmt.Sprintf("[PAD%d]", len(words))), append(kinds, 5)
	}
	g.string("general.architecture", arch)
	g.string("general.name", "tiny")
	g.string("tokenizer.ggml.model", "gpt2")
	g.string("tokenizer.ggml.pre", "qwen2")
	g.strings("tokenizer.ggml.tokens", words)
	g.ints("tokenizer.ggml.token_type", kinds)
	g.strings("tokenizer.ggml.merges", nil)
	g.uint32("tokenizer.ggml.eos_token_id", 258)
	g.string("tokenizer.chat_template", "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}")
	return len(words)
}

// alphabet is GPT-2's printable stand-in for a byte: printable Latin-1 stands for itself, the rest follows from U+0100 on.
func alphabet(b byte) rune {
	printable := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if printable(int(b)) {
		return rune(b)
	}
	r := rune(0x100)
	for i := range int(b) {
		if !printable(i) {
			r++
		}
	}
	return r
}

func (g *gguf) key(name string, kind uint32) {
	g.nMeta++
	put(&g.meta, uint64(len(name)), name, kind)
}

func (g *gguf) uint32(name string, v uint32)   { g.key(name, 4); put(&g.meta, v) }
func (g *gguf) float32(name string, v float32) { g.key(name, 6); put(&g.meta, v) }
func (g *gguf) string(name, v string)          { g.key(name, 8); put(&g.meta, uint64(len(v)), v) }

func (g *gguf) strings(name string, list []string) {
	g.key(name, 9)
	put(&g.meta, uint32(8), uint64(len(list)))
	for _, s := range list {
		put(&g.meta, uint64(len(s)), s)
	}
}

func (g *gguf) ints(name string, list []uint32) {
	g.key(name, 9)
	put(&g.meta, uint32(5), uint64(len(list)), list)
}

// tensor writes random float32 weights of a scale that keeps activations near 1; norms are near 1.
func (g *gguf) tensor(name string, shape ...int) {
	g.nTensors++
	put(&g.infos, uint64(len(name)), name, uint32(len(shape)))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- { // GGUF names the fastest dimension first
		put(&g.infos, uint64(shape[i]))
		n *= shape[i]
	}
	put(&g.infos, uint32(0), uint64(g.data.Len()))
	scale, shift := 1.5/math.Sqrt(float64(shape[len(shape)-1])), 0.0
	if strings.HasSuffix(name, "norm.weight") {
		scale, shift = 0.1, 1
	}
	for range n {
		put(&g.data, float32(shift+scale*g.random.NormFloat64()))
	}
	g.data.Write(make([]byte, -g.data.Len()&31))
}

func (g *gguf) bytes() []byte {
	var b bytes.Buffer
	put(&b, "GGUF", uint32(3), g.nTensors, g.nMeta)
	b.Write(g.meta.Bytes())
	b.Write(g.infos.Bytes())
	b.Write(make([]byte, -b.Len()&31))
	b.Write(g.data.Bytes())
	return b.Bytes()
}

// put writes values little-endian; strings as their bytes.
func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic("lmtest: " + err.Error())
		}
	}
}
