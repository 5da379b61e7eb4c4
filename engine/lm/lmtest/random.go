package lmtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"skep/engine/lm"
)

// Random writes a GGUF model of the given shape with random weights and opens it; it is closed when the test ends.
// Arch, Layers, Width, Heads, KVHeads, HeadDim, FFN, RopeTheta and Tied are taken from c, the rest follows from the
// family; the vocabulary is Tiny's, with unused tokens up to Vocab. The matrices are of the type matrices, whose blocks must divide their columns; a
// quantised matrix has random bytes for its numbers.
func Random(t testing.TB, c lm.Config, matrices lm.DType) *lm.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.gguf")
	if err := os.WriteFile(path, randomFile(c, matrices), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(path)
	if err != nil {
		t.Fatalf("lmtest: the random model does not open: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func randomFile(c lm.Config, matrices lm.DType) []byte {
	g := &gguf{random: rand.New(rand.NewPCG(uint64(matrices), 1))}
	vocab := g.tokenizer(c.Arch, c.Vocab)
	for _, kv := range []struct {
		key string
		n   int
	}{{"block_count", c.Layers}, {"embedding_length", c.Width}, {"feed_forward_length", c.FFN},
		{"attention.head_count", c.Heads}, {"attention.head_count_kv", c.KVHeads}, {"attention.key_length", c.HeadDim},
		{"attention.value_length", c.HeadDim}, {"rope.dimension_count", c.HeadDim}, {"context_length", tinyContext}} {
		g.uint32(c.Arch+"."+kv.key, uint32(kv.n))
	}
	g.float32(c.Arch+".rope.freq_base", float32(c.RopeTheta))
	g.float32(c.Arch+".attention.layer_norm_rms_epsilon", 1e-6)
	g.matrix("token_embd.weight", matrices, vocab, c.Width)
	if !c.Tied {
		g.matrix("output.weight", matrices, vocab, c.Width)
	}
	g.tensor("output_norm.weight", c.Width)
	for l := range c.Layers {
		g.layer(fmt.Sprintf("blk.%d.", l), c, matrices)
	}
	return g.bytes()
}

func (g *gguf) layer(at string, c lm.Config, matrices lm.DType) {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	g.tensor(at+"attn_norm.weight", c.Width)
	g.tensor(at+"ffn_norm.weight", c.Width)
	for _, part := range []struct {
		name       string
		rows, cols int
	}{
		{"attn_q", q, c.Width}, {"attn_k", kv, c.Width}, {"attn_v", kv, c.Width}, {"attn_output", c.Width, q},
		{"ffn_gate", c.FFN, c.Width}, {"ffn_up", c.FFN, c.Width}, {"ffn_down", c.Width, c.FFN},
	} {
		g.matrix(at+part.name+".weight", matrices, part.rows, part.cols)
	}
	if c.Arch == "qwen2" {
		g.tensor(at+"attn_q.bias", q)
		g.tensor(at+"attn_k.bias", kv)
		g.tensor(at+"attn_v.bias", kv)
	}
	if c.Arch == "qwen3" {
		g.tensor(at+"attn_q_norm.weight", c.HeadDim)
		g.tensor(at+"attn_k_norm.weight", c.HeadDim)
	}
}

// matrix writes a matrix: float32 as tensor does, other types as random blocks with sane scales.
func (g *gguf) matrix(name string, kind lm.DType, rows, cols int) {
	if kind == lm.F32 {
		g.tensor(name, rows, cols)
		return
	}
	g.nTensors++
	put(&g.infos, uint64(len(name)), name, uint32(2), uint64(cols), uint64(rows), uint32(kind), uint64(g.data.Len()))
	elems, size := kind.Block()
	for range rows * cols / elems {
		g.data.Write(g.block(kind, size))
	}
	g.data.Write(make([]byte, -g.data.Len()&31))
}

// halfScales are the offsets of the f16 numbers in a block: they must not be random, or weights are infinite.
var halfScales = map[lm.DType][]int{
	lm.F16: {0}, lm.BF16: {0}, lm.Q4_0: {0}, lm.Q4_1: {0, 2}, lm.Q5_0: {0}, lm.Q8_0: {0},
	lm.Q4_K: {0, 2}, lm.Q5_K: {0, 2}, lm.Q6_K: {208},
}

// smallest is the f16 exponent field that brings a type's weights near 0.05, with the size of its numbers.
var smallest = map[lm.DType]uint16{
	lm.F16: 10, lm.BF16: 0x3d00 >> 10, lm.Q4_0: 7, lm.Q4_1: 7, lm.Q5_0: 6, lm.Q8_0: 3, lm.Q4_K: 2, lm.Q5_K: 1, lm.Q6_K: 1,
}

// block is one block of random numbers with scales 2^e·(1+random), or a random number of either sign for F16 and BF16.
func (g *gguf) block(kind lm.DType, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(g.random.Uint32())
	}
	for _, at := range halfScales[kind] {
		half := smallest[kind]<<10 | uint16(g.random.Uint32()&0x3ff)
		if kind == lm.F16 || kind == lm.BF16 {
			half |= uint16(g.random.Uint32() & 0x8000)
		}
		b[at], b[at+1] = byte(half), byte(half>>8)
	}
	return b
}
