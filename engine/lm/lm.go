// Package lm holds language models: files (GGUF, safetensors), tokenizer, chat template, the Backend that runs
// them, and the decode loop with its sampling and drafts. It deliberately knows no problem, swarm or archive.
//
// Main path: Open a file → New backend (engine/lm/cpu) → Pass prompts into blocks → Latent or Decode.
//
// Dimension letters used in comments here, in engine/lm/cpu and in kernels: B batch, T tokens, L layers, D width,
// Hq and Hkv heads, Dh head width, F feed-forward width, V vocabulary, P page.
package lm

import "errors"

// Token is an index into a model's vocabulary.
type Token int32

// Config is the shape of a dense decoder-only transformer, every number read from its file.
type Config struct {
	Arch            string // "llama", "qwen2" or "qwen3"
	Layers          int    // L
	Width           int    // D
	Heads           int    // Hq
	KVHeads         int    // Hkv, divides Hq
	HeadDim         int    // Dh; Hq·Dh need not equal D
	FFN             int    // F
	Vocab           int    // V, rows of the embedding
	Context         int    // positions the model was trained for
	RopeTheta       float64
	RopeInterleaved bool    // pairs (2i, 2i+1) as in GGUF llama files; false: (i, i+Dh/2)
	NormEps         float64 // of every RMS norm
	Tied            bool    // the output head is the input embedding
	QKVBias         bool    // qwen2
	QKNorm          bool    // qwen3: RMS norm per head on q and k before rotation
}

// Errors a caller can test for.
var (
	ErrNoBlock     = errors.New("no such block")
	ErrBadSpan     = errors.New("bad span")
	ErrOutOfMemory = errors.New("out of memory for blocks")
	ErrModel       = errors.New("bad model file") // truncated, missing tensor, wrong shape, unknown type
)
