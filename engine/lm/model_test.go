package lm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var tinyArchs = []string{"llama", "qwen2", "qwen3"}

func mustOpen(t testing.TB, path string) *Model {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// The same random model, written by gguf-py and as a safetensors folder (testdata/make_models.py), opens to the same
// shape, tokens and values; only llama's rotary pairs are ordered in another way.
func TestOpenBothFormats(t *testing.T) {
	for _, arch := range tinyArchs {
		file := mustOpen(t, "testdata/models/"+arch+".gguf")
		folder := mustOpen(t, "testdata/models/"+arch)
		want := Config{Arch: arch, Layers: 2, Width: 16, Heads: 4, KVHeads: 2, HeadDim: 4, FFN: 24, Vocab: 263, Context: 64,
			RopeTheta: 10000, RopeInterleaved: arch == "llama", NormEps: float64(float32(1e-6)), Tied: arch != "qwen2",
			QKVBias: arch == "qwen2", QKNorm: arch == "qwen3"}
		if arch == "qwen3" {
			want.HeadDim = 6
		}
		if file.Config != want {
			t.Errorf("%s.gguf:\n got %+v\nwant %+v", arch, file.Config, want)
		}
		want.RopeInterleaved, want.NormEps = false, 1e-6
		if folder.Config != want {
			t.Errorf("%s folder:\n got %+v\nwant %+v", arch, folder.Config, want)
		}
		if file.Name != "Tiny "+arch || folder.Name != arch || len(file.Hash) != 64 || file.Hash == folder.Hash {
			t.Errorf("%s: names %q and %q, hashes %s and %s", arch, file.Name, folder.Name, file.Hash, folder.Hash)
		}
		compareWeights(t, file, folder)
		text := "hello whe w0rld 12<|im_end|> é"
		if a, b := file.Tokenizer.EncodeSpecial(text), folder.Tokenizer.EncodeSpecial(text); !slices.Equal(a, b) {
			t.Errorf("%s: tokens %v and %v", arch, a, b)
		}
		if a, b := file.Tokenizer.Stops(), folder.Tokenizer.Stops(); !slices.Equal(a, []Token{260, 262}) || !slices.Equal(a, b) {
			t.Errorf("%s: stops %v and %v", arch, a, b)
		}
		if file.Chat.Err() != nil || folder.Chat.Err() != nil {
			t.Errorf("%s: chats %v, %v", arch, file.Chat.Err(), folder.Chat.Err())
		}
	}
}

func compareWeights(t *testing.T, file, folder *Model) {
	t.Helper()
	c := file.Config
	for name, shape := range c.tensors() {
		a, errA := file.Tensor(name, shape...)
		b, errB := folder.Tensor(name, shape...)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		x, y := make([]float32, a.Rows()*a.Cols()), make([]float32, b.Rows()*b.Cols())
		a.Floats(x, 0, a.Rows())
		b.Floats(y, 0, b.Rows())
		if c.RopeInterleaved && (strings.Contains(name, "attn_q.") || strings.Contains(name, "attn_k.")) {
			y = interleave(y, c.HeadDim, c.Width)
		}
		if !slices.Equal(x, y) {
			t.Errorf("%s %s: values differ between the formats", c.Arch, name)
		}
	}
}

// interleave moves row (head, half, i) to (head, i, half).
func interleave(rows []float32, dim, width int) []float32 {
	var out []float32
	for head := 0; head < len(rows); head += dim * width {
		for i := range dim / 2 {
			for half := range 2 {
				from := head + (half*dim/2+i)*width
				out = append(out, rows[from:from+width]...)
			}
		}
	}
	return out
}

func TestTensorErrors(t *testing.T) {
	m := mustOpen(t, "testdata/models/llama.gguf")
	for _, test := range []struct {
		name  string
		shape []int
		want  string
	}{
		{"blk.7.attn_q.weight", []int{16, 16}, `"blk.7.attn_q.weight" is missing`},
		{"blk.0.attn_k.weight", []int{16, 8}, "has shape [8 16], expected [16 8]"},
	} {
		if _, err := m.Tensor(test.name, test.shape...); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if _, err := Open("testdata/none.gguf"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// replace returns an edit that puts one string of the same length for another, everywhere.
func replace(old, new string) func([]byte) []byte {
	if len(old) != len(new) {
		panic(old + " and " + new + " differ in length")
	}
	return func(data []byte) []byte { return bytes.ReplaceAll(data, []byte(old), []byte(new)) }
}

// poke returns an edit that overwrites the bytes that follow a string, skip bytes behind it.
func poke(after string, skip int, value ...byte) func([]byte) []byte {
	return func(data []byte) []byte {
		at := bytes.Index(data, []byte(after))
		if at < 0 {
			panic(after + " is not in the file")
		}
		copy(data[at+len(after)+skip:], value)
		return data
	}
}

// le encodes a number as the format does.
func le(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// Each fault of a GGUF file is an error that names it.
func TestBadGGUF(t *testing.T) {
	original, err := os.ReadFile("testdata/models/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit func([]byte) []byte
		want string
	}{
		"empty":            {func([]byte) []byte { return nil }, "empty"},
		"no GGUF":          {replace("GGUF", "GGML"), `starts with "GGML"`},
		"version":          {poke("GGUF", 0, 9), "version 9"},
		"tensor count":     {poke("GGUF", 4, le(1<<60)...), "tensors: 1152921504606846976 announced"},
		"metadata count":   {poke("GGUF", 12, le(math.MaxUint64)...), "metadata entries"},
		"architecture":     {replace("llama", "gemma"), `"gemma" is not supported`},
		"missing key":      {replace("llama.block_count", "llama.block_xount"), `"llama.block_count" is missing`},
		"key type":         {poke("llama.block_count", 0, 6), `"llama.block_count" is not a whole number`},
		"unknown type":     {poke("llama.block_count", 0, 77), `"llama.block_count" has the unknown type 77`},
		"layers":           {poke("llama.block_count", 4, 255, 255, 255), "16777215 layers announced"},
		"zero layers":      {poke("llama.block_count", 4, 0), "layers is 0"},
		"odd heads":        {poke("llama.attention.head_count_kv", 4, 3), "4 heads do not share 3"},
		"width":            {poke("llama.embedding_length", 4, 32), "expected"},
		"rope scaling":     {replace("llama.context_length", "llama.rope.scaling.x"), `"llama.rope.scaling.x" asks for something`},
		"key twice":        {replace("tokenizer.ggml.tokens", "tokenizer.ggml.merges"), `"tokenizer.ggml.merges" stands twice`},
		"missing tensor":   {replace("blk.1.ffn_up.weight", "blk.1.ffn_uq.weight"), `"blk.1.ffn_up.weight" is missing`},
		"dimensions":       {poke("blk.0.attn_q.weight", 0, 200), "200 dimensions"},
		"dimension":        {poke("blk.0.attn_q.weight", 4, le(1<<40)...), "a dimension of 1099511627776"},
		"shape":            {poke("blk.0.attn_q.weight", 4, le(8)...), "has shape [16 8], expected [16 16]"},
		"tensor type":      {poke("blk.0.attn_q.weight", 20, 23), `"blk.0.attn_q.weight" has type IQ4_XS`},
		"offset":           {poke("blk.0.attn_q.weight", 24, le(1<<62)...), "truncated or corrupt"},
		"offset unaligned": {poke("blk.0.attn_q.weight", 24, 1), "not a multiple of 32"},
		"tokenizer":        {replace("gpt2", "bert"), `"bert"`},
		"pre-tokenizer":    {replace("smollm", "tekken"), `pre-tokenizer "tekken" is not known`},
		"merge":            {replace("he ll", "he lX"), `"he lX"`},
		"stop token":       {poke("tokenizer.ggml.eos_token_id", 4, 255, 255), "end token 65535"},
	} {
		data := test.edit(slices.Clone(original))
		path := filepath.Join(t.TempDir(), "bad.gguf")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err == nil {
			m.Close()
		}
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// A GGUF file cut anywhere is an error, never a panic, and never a model.
func TestTruncatedGGUF(t *testing.T) {
	data, err := os.ReadFile("testdata/models/qwen2.gguf")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 1 + n/4096*31 { // every byte of the beginning, then every 32nd and sparser
		g, err := parseGGUF(data[:n])
		if err == nil {
			_, err = g.config()
		}
		if n < len(data)-32 && !errors.Is(err, ErrModel) { // the last bytes may be padding
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
	}
}

// edited copies a model folder with one file changed; nil removes it.
func edited(t *testing.T, arch, file string, edit func([]byte) []byte) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/models/"+arch)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, file)
	if edit == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, edit(data), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func swap(old, new string) func([]byte) []byte {
	return func(data []byte) []byte { return bytes.Replace(data, []byte(old), []byte(new), 1) }
}

// Each fault of a model folder is an error that names it.
func TestBadFolder(t *testing.T) {
	const config, weights = "config.json", "model.safetensors"
	for name, test := range map[string]struct {
		arch, file string
		edit       func([]byte) []byte
		want       string
	}{
		"no config":       {"llama", config, nil, "config.json"},
		"no weights":      {"llama", weights, nil, "model.safetensors"},
		"no tokenizer":    {"llama", "tokenizer.json", nil, "tokenizer.json"},
		"no shard":        {"qwen3", "model-00002-of-00002.safetensors", nil, "model-00002-of-00002.safetensors"},
		"bad JSON":        {"llama", config, swap("{", "["), "config.json"},
		"architecture":    {"llama", config, swap(`"llama"`, `"phi3"`), `"phi3" is not supported`},
		"missing key":     {"llama", config, swap("num_key_value_heads", "x"), `"num_key_value_heads" is missing`},
		"head_dim":        {"qwen3", config, swap("head_dim", "x"), `"head_dim" is missing`},
		"no rope base":    {"llama", config, swap("rope_theta", "x"), `"rope_theta"`},
		"rope scaling":    {"llama", config, swap(`"rope_scaling": null`, `"rope_scaling": {"type": "linear"}`), `"rope_scaling" asks`},
		"rope type":       {"qwen3", config, swap(`"default"`, `"yarn"`), `"rope_parameters" asks`},
		"activation":      {"llama", config, swap(`"silu"`, `"gelu"`), `"hidden_act" asks`},
		"bias":            {"llama", config, swap("{", `{"attention_bias": true,`), `"attention_bias" asks`},
		"quantised":       {"llama", config, swap("{", `{"quantization_config": {"bits": 4},`), `"quantization_config" asks`},
		"window":          {"qwen2", config, swap("{", `{"layer_types": ["sliding_attention"],`), `"layer_types" asks`},
		"fraction":        {"llama", config, swap(`"hidden_size": 16`, `"hidden_size": 16.5`), "hidden_size"},
		"other width":     {"llama", config, swap(`"hidden_size": 16`, `"hidden_size": 32`), "expected"},
		"vocabulary":      {"llama", config, swap(`"vocab_size": 263`, `"vocab_size": 264`), "vocabulary of 264"},
		"truncated":       {"llama", weights, func(b []byte) []byte { return b[:len(b)-1] }, "truncated or corrupt"},
		"longer":          {"llama", weights, func(b []byte) []byte { return append(b, 0) }, "the data has"},
		"header length":   {"llama", weights, func(b []byte) []byte { return append(le(1<<40), b[8:]...) }, "a header of 1099511627776 bytes"},
		"short":           {"llama", weights, func(b []byte) []byte { return b[:5] }, "5 bytes"},
		"dtype":           {"llama", weights, swap(`"F32"`, `"F64"`), `type "F64"`},
		"missing tensor":  {"llama", weights, swap("layers.1.mlp.up_proj", "layers.1.mlp.uq_proj"), `"blk.1.ffn_up.weight" is missing`},
		"unknown tensor":  {"qwen2", config, swap(`"qwen2"`, `"llama"`), `"blk.0.attn_k.bias" has no place`},
		"offsets":         {"llama", weights, swap(`"data_offsets": [0, `, `"data_offsets": [1, `), "needs"},
		"shape":           {"llama", weights, swap(`"shape": [263, 16]`, `"shape": [16, 263]`), "embedding has 16 rows"},
		"index path":      {"qwen3", "model.safetensors.index.json", swap(`"model-0`, `"../odel-0`), "names the file"},
		"index placement": {"qwen3", "model.safetensors.index.json", swap(`00001-of`, `00002-of`), "the index does not place"},
		"pre-tokenizer":   {"llama", "tokenizer.json", swap(`"Digits"`, `"Whitespace"`), "pre-tokenizer"},
		"pattern":         {"qwen2", "tokenizer.json", swap(`\\p{N}`, `\\p{N}{1,2}`), "pattern"},
		"normaliser":      {"qwen2", "tokenizer.json", swap(`"NFC"`, `"NFKC"`), "NFKC"},
		"tokenizer model": {"llama", "tokenizer.json", swap(`"BPE"`, `"Unigram"`), "Unigram"},
		"token id":        {"llama", "tokenizer.json", swap(`"!": 33`, `"!": 9999999`), "9999999"},
		"added token id":  {"llama", "tokenizer.json", swap(`{"id": 260`, `{"id": 5000000000`), "5000000000"},
	} {
		m, err := Open(edited(t, test.arch, test.file, test.edit))
		if err == nil {
			m.Close()
		}
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

func FuzzGGUF(f *testing.F) {
	for _, arch := range tinyArchs {
		data, err := os.ReadFile("testdata/models/" + arch + ".gguf")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := parseGGUF(data)
		if err == nil {
			_, err = g.config()
		}
		if err == nil {
			_, err = g.tokenizer()
		}
		if err != nil {
			if !errors.Is(err, ErrModel) {
				t.Fatalf("error %v does not wrap ErrModel", err)
			}
			return
		}
		decodeAll(g.tensors)
	})
}

func FuzzSafetensors(f *testing.F) {
	for _, file := range []string{"llama/model.safetensors", "qwen3/model-00002-of-00002.safetensors"} {
		data, err := os.ReadFile("testdata/models/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tensors, err := parseSafetensors(data)
		if err != nil {
			if !errors.Is(err, ErrModel) {
				t.Fatalf("error %v does not wrap ErrModel", err)
			}
			return
		}
		decodeAll(tensors)
	})
}

// decodeAll decodes the last row of every tensor that can be: what the reader let through must be there.
func decodeAll(tensors map[string]Tensor) {
	for _, tensor := range tensors {
		if elems, _ := tensor.Type.Block(); elems > 0 && len(tensor.Shape) <= 2 {
			tensor.Floats(make([]float32, tensor.Cols()), tensor.Rows()-1, 1)
		}
	}
}
