package oracle

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skep/engine/lm"
)

// array is a dumped tensor: float32 values, or whole numbers for tokens and positions.
type array struct {
	shape  []int
	floats []float32
	ints   []int32
}

// rows cuts an array into its first dimension.
func (a array) rows() [][]float32 {
	width := len(a.floats) / a.shape[0]
	return slices.Collect(slices.Chunk(a.floats, width))
}

func (a array) tokens() []lm.Token {
	tokens := make([]lm.Token, len(a.ints))
	for i, n := range a.ints {
		tokens[i] = lm.Token(n)
	}
	return tokens
}

// readArrays reads a safetensors file of F32 and I32 tensors, apart from the reader under test.
func readArrays(t *testing.T, path string) map[string]array {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := binary.LittleEndian.Uint64(data)
	header := map[string]struct {
		Type    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}{}
	if err := json.Unmarshal(data[8:8+size], &header); err != nil {
		t.Fatal(err)
	}
	arrays := map[string]array{}
	for name, h := range header {
		raw := data[8+size:][h.Offsets[0]:h.Offsets[1]]
		a := array{shape: h.Shape, floats: make([]float32, len(raw)/4), ints: make([]int32, len(raw)/4)}
		for i := range a.ints {
			bits := binary.LittleEndian.Uint32(raw[4*i:])
			a.ints[i], a.floats[i] = int32(bits), math.Float32frombits(bits)
		}
		if h.Type != "F32" && h.Type != "I32" {
			t.Fatalf("%s: %s has type %s", path, name, h.Type)
		}
		arrays[name] = a
	}
	return arrays
}

// shape is what the weights' shapes depend on, read from a config.json.
type shape struct {
	Type    string `json:"model_type"`
	Vocab   int    `json:"vocab_size"`
	Width   int    `json:"hidden_size"`
	FFN     int    `json:"intermediate_size"`
	Layers  int    `json:"num_hidden_layers"`
	Heads   int    `json:"num_attention_heads"`
	KVHeads int    `json:"num_key_value_heads"`
	HeadDim int    `json:"head_dim"`
	Tied    bool   `json:"tie_word_embeddings"`
}

// parameters are the names and shapes of Transformers' parameters of such a model.
func (s shape) parameters() map[string][]int {
	if s.HeadDim == 0 {
		s.HeadDim = s.Width / s.Heads
	}
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	all := map[string][]int{"model.embed_tokens.weight": {s.Vocab, s.Width}, "model.norm.weight": {s.Width}}
	if !s.Tied {
		all["lm_head.weight"] = []int{s.Vocab, s.Width}
	}
	for layer := range s.Layers {
		add := func(name string, shape ...int) { all[fmt.Sprintf("model.layers.%d.%s", layer, name)] = shape }
		add("input_layernorm.weight", s.Width)
		add("post_attention_layernorm.weight", s.Width)
		add("self_attn.q_proj.weight", q, s.Width)
		add("self_attn.k_proj.weight", kv, s.Width)
		add("self_attn.v_proj.weight", kv, s.Width)
		add("self_attn.o_proj.weight", s.Width, q)
		add("mlp.gate_proj.weight", s.FFN, s.Width)
		add("mlp.up_proj.weight", s.FFN, s.Width)
		add("mlp.down_proj.weight", s.Width, s.FFN)
		if s.Type == "qwen2" {
			add("self_attn.q_proj.bias", q)
			add("self_attn.k_proj.bias", kv)
			add("self_attn.v_proj.bias", kv)
		}
		if s.Type == "qwen3" {
			add("self_attn.q_norm.weight", s.HeadDim)
			add("self_attn.k_norm.weight", s.HeadDim)
		}
	}
	return all
}

// writeModel makes the model folder of a case: its dumped config, the shared tokenizer, and the weights that
// weight() of dump.py draws, stored as dtype. seed is the case's place in dump.py's table, from 1.
func writeModel(t *testing.T, name string, seed uint64, dtype string) string {
	t.Helper()
	folder := t.TempDir()
	for _, file := range []string{filepath.Join(name, "config.json"), "tokenizer.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", "transformers", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, filepath.Base(file)), data)
	}
	var s shape
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err == nil {
		err = json.Unmarshal(config, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	header, data := map[string]any{}, []byte(nil)
	parameters := s.parameters()
	for i, parameter := range slices.Sorted(maps.Keys(parameters)) {
		start := len(data)
		data = appendWeights(data, lm.Key{Run: seed, Swarm: uint64(i)}, parameter, parameters[parameter], dtype)
		header[parameter] = map[string]any{"dtype": dtype, "shape": parameters[parameter], "data_offsets": [2]int{start, len(data)}}
	}
	encoded, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(encoded)))
	write(t, filepath.Join(folder, "model.safetensors"), slices.Concat(file, encoded, data))
	return folder
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// appendWeights is weight() of dump.py: 8-bit numbers, exact in each storage type.
func appendWeights(data []byte, key lm.Key, name string, shape []int, dtype string) []byte {
	n := 1
	for _, dim := range shape {
		n *= dim
	}
	for i := range n {
		u := int(256*key.Uniform(uint64(i+1))) - 128
		x := float32(u) / 1024
		switch {
		case strings.Contains(name, "norm"):
			x = 1 + float32(u>>1)/128
		case strings.HasSuffix(name, ".bias"):
			x = float32(u) / 512
		}
		switch bits := math.Float32bits(x); dtype {
		case "F32":
			data = binary.LittleEndian.AppendUint32(data, bits)
		case "BF16":
			data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
		case "F16":
			data = binary.LittleEndian.AppendUint16(data, half(bits))
		}
	}
	return data
}

// half cuts the bits of a float32 that is exact in fp16 and not subnormal there.
func half(bits uint32) uint16 {
	if bits<<1 == 0 {
		return 0
	}
	sign, exponent, fraction := bits>>31, bits>>23&0xff-127+15, bits>>13&0x3ff
	return uint16(sign<<15 | exponent<<10 | fraction)
}
