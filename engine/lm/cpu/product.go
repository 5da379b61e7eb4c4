package cpu

import "skep/engine/lm/cpu/vec"

// rows is a matrix of activations: row r is data[r*stride : r*stride+cols], and what is between cols and stride is 0.
type rows struct {
	data   []float32
	stride int
}

func (r rows) row(i int) []float32 { return r.data[i*r.stride : (i+1)*r.stride] }

// term is one product of a step: dst = bias + x·wᵀ, or dst += x·wᵀ when add is set. A nil bias is 0.
type term struct {
	dst, x rows
	w      *matrix
	bias   []float32
	add    bool
}

// scratch is what one thread works in.
type scratch struct {
	weights   []float32 // decoded weights of one piece
	attention attentionScratch
}

// Weight rows that are decoded at a time: few for a small batch, so that they stay in the first-level cache; more for
// a large one, so that a row of activations is read less often.
const (
	smallPiece, largePiece = 8, 32
	smallBatch             = 12
)

// maxRun is the most weight rows that a thread takes at a time. They lie side by side in the file, so what it fetches
// ahead of its decoding is its own; with two threads taking pieces in turn, each fetches the other's too.
const maxRun = 128

// multiply computes the terms for n rows, which must not depend on each other, in runs spread over the threads.
func (b *Backend) multiply(n int, terms ...term) {
	piece, all := smallPiece, 0
	if n > smallBatch {
		piece = largePiece
	}
	for _, t := range terms {
		all += t.w.rows
	}
	run := min(maxRun, max(all/(8*b.threads), 1))
	run = (run + piece - 1) / piece * piece
	runs := 0
	for _, t := range terms {
		runs += (t.w.rows + run - 1) / run
	}
	b.parallel(runs, func(thread, i int) {
		for _, t := range terms {
			if count := (t.w.rows + run - 1) / run; i >= count {
				i -= count
				continue
			}
			for row, end := i*run, min((i+1)*run, t.w.rows); row < end; row += piece {
				b.piece(thread, n, t, row, min(piece, end-row))
			}
			return
		}
	})
}

// piece computes columns row0 … row0+width-1 of a term's dst.
func (b *Backend) piece(thread, n int, t term, row0, width int) {
	t.start(n, row0, width)
	s := &b.scratch[thread]
	if s.weights == nil {
		s.weights = make([]float32, largePiece*(vec.MaxK+vec.Lanes))
	}
	for k := 0; k < t.w.cols; k += vec.MaxK {
		cols := min(vec.MaxK, t.w.cols-k)
		w, stride := t.w.part(b.ops, s.weights, row0, width, k, cols)
		b.ops.Product(t.dst.data[row0:], t.dst.stride, t.x.data[k:], t.x.stride, n, w, stride, width, vec.Pad(cols))
	}
}

// start gives the piece of dst the value that products are added to.
func (t term) start(n, row0, width int) {
	if t.add {
		return
	}
	for r := range n {
		dst := t.dst.row(r)[row0 : row0+width]
		if t.bias == nil {
			clear(dst)
		} else {
			copy(dst, t.bias[row0:])
		}
	}
}

// parallel calls f(thread, i) for every i < n, each once, from all threads of the call in progress.
func (b *Backend) parallel(n int, f func(thread, i int)) { b.crew.run(n, f) }

// together runs one call of the interface with a crew of its own.
func (b *Backend) together(f func() error) error {
	b.crew = startCrew(b.threads)
	defer b.crew.stop()
	return f()
}
