package lm

import "context"

// A Backend runs whole forward passes of one model over ragged batches. The CPU backend (engine/lm/cpu) and
// the CUDA backend implement it, one test suite runs over both, and the decode loop, drafts and sampling
// (Decode) stay on this side of it. It knows tokens, vectors and blocks; it knows no text and no swarm.
//
// Results do not depend on the batch: a span gives the same bits alone or beside others, with any number of
// threads. A Backend is used by one goroutine at a time. A method that fails leaves every block as it was
// before the call.
type Backend interface {
	// Config is the shape of the loaded model.
	Config() Config

	// New returns an empty block, owned by the caller until Free.
	New() BlockID

	// Fork returns a new block with the first n entries of b (copy-on-write: full pages are shared).
	Fork(b BlockID, n int) (BlockID, error)

	// Free gives blocks back. Freeing a block that another view still names is the caller's bug and is
	// reported by the next Pass that names it (ErrNoBlock).
	Free(blocks ...BlockID)

	// Pass computes the spans, which must not depend on each other: no span's View may name a block
	// that another span of the same call writes. Keys and values of every row are appended to the span's block.
	// The outputs stand in the order of the spans. Returns ErrNoBlock, ErrBadSpan, ErrOutOfMemory or ctx.Err().
	Pass(ctx context.Context, spans []Span) ([]Output, error)

	// Latent takes steps latent reasoning steps for every thought (Eq. 2, arXiv 2611.08483): it feeds
	// e(h_{t-1}), appends one key/value entry to the thought's block, and yields h_t. done, when not nil, is
	// called after each step with the number of finished steps. The result is [thought][step][Width].
	Latent(ctx context.Context, thoughts []Thought, steps int, done func(step int)) ([][][]float32, error)

	// Lens applies the output head to hidden states as they leave the final norm, [n][Width], and returns the k
	// best tokens of each with their logits and the log-sum-exp over the vocabulary.
	Lens(ctx context.Context, hidden [][]float32, k int) ([]Ranking, error)

	// Snapshot copies the cached keys (as stored: rotated to their cached positions) and values of a block.
	Snapshot(b BlockID) (KV, error)

	// Stats reports memory in use and work done since the backend was opened.
	Stats() Stats
}

// BlockID names a run of cached keys and values, one entry per position. 0 names no block.
type BlockID uint64

// Segment is one stretch of a view: the first Len entries of Block, whose keys were cached at position p and are
// seen at p+Shift. Nothing is copied or rotated in memory: the query at position i is rotated to i-Shift instead
// (Eq. 1: only the offset counts).
type Segment struct {
	Block BlockID
	Len   int // entries, 0 ≤ Len ≤ the block's length
	Shift int // positions, may be negative
}

// View is what a span attends to besides its own block, in order. nil sees nothing else.
type View []Segment

// Span is a run of consecutive rows of one sequence: row r stands at position Pos+r, attends to all of View,
// to the entries of Into before At, and causally to the rows of the span itself.
type Span struct {
	Tokens []Token   // input tokens, or nil when Embeds is set
	Embeds []float32 // input embeddings [rows × Width], or nil when Tokens is set
	Pos    int       // position of the first row
	View   View
	Into   BlockID // block that takes the new keys and values
	At     int     // entries of Into to keep: rows are written from entry At on, later entries are dropped
	Want   Want
}

// Want says which results of a span are computed; the zero value asks for none.
type Want struct {
	All    bool // of every row; false: of the last row only
	Hidden bool // hidden states as they leave the final norm
	TopK   int  // the TopK best logits, all ties with the last of them included; 0: none
	Logits bool // the whole row of logits
}

// Output holds what a Span wanted, one entry per wanted row; a field that was not wanted is nil.
type Output struct {
	Hidden [][]float32 // [row][Width]
	Top    []Ranking   // [row]
	Logits [][]float32 // [row][Vocab]
}

// Ranking is the top of one row of logits, best first, equal logits by ascending token.
type Ranking struct {
	Tokens []Token
	Logits []float32
	LogSum float64 // log of the sum of exp over the whole vocabulary
}

// Thought is an agent about to reason: the hidden state its prompt left, and where its entries go.
type Thought struct {
	Hidden []float32 // h_0 [Width], as it leaves the final norm
	Pos    int       // position of the first latent row
	View   View      // as in Span
	Into   BlockID
	At     int // entries of Into to keep, as in Span
}

// KV is a copy of one block: Keys[layer] and Values[layer] are [Len × KVHeads × HeadDim].
type KV struct {
	Len          int
	Keys, Values [][]float32
}

// Stats counts a backend's memory and work.
type Stats struct {
	WeightBytes int64 // mapped weights
	BlockBytes  int64 // pages held by blocks
	PeakBytes   int64 // largest BlockBytes so far
	Rows        int64 // rows computed by Pass and Latent
	Threads     int
	Kernel      string // instruction set of the matrix products: "avx512", "avx2", "portable"
}
