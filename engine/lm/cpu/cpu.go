// Package cpu runs language models on the processor: it implements lm.Backend. It knows matrices, pages and rotations;
// it knows no text, no sampling and no agent.
//
// Main path: New reads the weights (still in the mapped file) → Pass turns spans into sequences (pass.go) → forward
// takes their rows through the layers in chunks (forward.go): products (product.go), attention over the pages of a view
// (attention.go) → outputs (head.go). Latent feeds hidden states back (latent.go). Pages belong to blocks (blocks.go).
//
// Everything is computed in float32 from weights as the file has them; nothing is quantised on the way. The bits of a
// row depend only on its own sequence: every product and every softmax has fixed cuts (package vec), whatever the
// batch, the chunk or the number of threads.
package cpu

import (
	"fmt"
	"os"
	"runtime"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// DefaultMaxBytes bounds the pages of a Backend when Options.MaxBytes is 0: 768 MiB is about 32,000 tokens of a
// 0.5 B model, and with the mapped weights stays within 2 GiB.
const DefaultMaxBytes = 768 << 20

// maxRows is the number of rows that go through the layers together. Activations grow with it, results do not change.
const maxRows = 512

// Options sets up a Backend; the zero value is the default.
type Options struct {
	Threads  int   // goroutines that compute; 0 means GOMAXPROCS
	MaxBytes int64 // most bytes held by blocks; 0 means DefaultMaxBytes

	// Set forces an instruction set: "avx512", "avx2" or "portable". "" takes the environment variable SKEP_SIMD and,
	// when that is empty too, the best one.
	Set string

	// Alignment is Eq. 2's W_a. nil: the first call of Latent gets it from lm.Align, which may take a minute.
	Alignment *lm.Alignment
}

// Backend is a model on the CPU. Use it from one goroutine at a time. It needs no closing, but the model must stay
// open as long as it is used.
type Backend struct {
	model  *lm.Model
	config lm.Config
	ops    *vec.Ops
	threads,
	rows int // most rows of a chunk

	weights weights
	blocks  blocks
	acts    activations
	crew    *crew
	scratch []scratch // by thread
	angles  angles
	align   *alignment
	given   *lm.Alignment // Options.Alignment
	done    int64         // rows computed
}

var _ lm.Backend = (*Backend)(nil)

// New prepares an open model for the CPU. It reads no weight but the norms and biases. It fails when the model lacks a
// tensor (lm.ErrModel), or Options ask for an instruction set that this machine can't run.
func New(m *lm.Model, o Options) (*Backend, error) {
	if o.Set == "" {
		o.Set = os.Getenv("SKEP_SIMD")
	}
	ops, err := vec.For(o.Set)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if o.Threads < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("cpu: %d threads and %d bytes for blocks: give numbers above 0, or 0 for the defaults", o.Threads, o.MaxBytes)
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	b := &Backend{
		model: m, config: m.Config, ops: ops, threads: o.Threads, rows: maxRows, given: o.Alignment,
		blocks:  newBlocks(m.Config, o.MaxBytes),
		scratch: make([]scratch, o.Threads),
		angles:  newAngles(m.Config),
	}
	if b.weights, err = loadWeights(m); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return b, nil
}

// Config is the shape of the loaded model.
func (b *Backend) Config() lm.Config { return b.config }

// Stats reports memory in use and work done.
func (b *Backend) Stats() lm.Stats {
	return lm.Stats{
		WeightBytes: b.weights.bytes,
		BlockBytes:  b.blocks.bytes(), PeakBytes: b.blocks.peakBytes(),
		Rows: b.done, Threads: b.threads, Kernel: b.ops.Name,
	}
}
