package lm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"skep/engine/lm/cpu/vec"
)

// DefaultRho is the ridge of W_a where none is given; it is LatentMAS' (commit 1430ad6).
const DefaultRho = 1e-5

// Alignment turns a hidden state back into an input embedding: e = γ·hW/‖hW‖ (Eq. 2, arXiv 2611.08483), W being the
// transpose of the paper's W_a. It is read-only.
type Alignment struct {
	Tied  bool      // output head and input embedding are one matrix: W is the identity up to Rho, and left out
	Gamma float32   // mean norm of the rows of the input embedding
	W     []float32 // [Width × Width], row-major: row i is what h[i] adds; nil when Tied
	Rho   float64   // ridge that W was solved with
	Rows  int       // rows of the vocabulary that went into it
}

// AlignOptions sets up Align; the zero value is the default.
type AlignOptions struct {
	Rho      float64               // ridge; 0 means DefaultRho
	Padding  bool                  // also use embedding rows above the tokenizer's tokens (LatentMAS leaves them out)
	Dir      string                // cache folder; "" means the folder "align" of CacheDir
	NoCache  bool                  // neither read nor write the cache
	Progress func(done, total int) // vocabulary rows read; may be nil
}

// Align returns the model's alignment: W minimises Σ_v ‖out_v·W - in_v‖² + ρ‖W‖² over the rows of the output head and
// the input embedding, that is W = (OᵀO + ρI)⁻¹ OᵀI. Solving takes seconds for a 0.5 B model and minutes for 8 B;
// the result is kept in the cache under the model's hash. A cache that can't be written is no error. Fails with
// ctx.Err(), or when OᵀO + ρI is not positive definite in float64.
func Align(ctx context.Context, m *Model, o AlignOptions) (*Alignment, error) {
	if o.Rho == 0 {
		o.Rho = DefaultRho
	}
	rows := m.Config.Vocab
	if !o.Padding {
		rows = tokenRows(m)
	}
	cache, err := newAlignCache(m, o, rows)
	if err != nil {
		return nil, fmt.Errorf("lm: Align: %w", err)
	}
	if a := cache.load(); a != nil {
		return a, nil
	}
	a, err := align(ctx, m, o, rows)
	if err != nil {
		return nil, fmt.Errorf("lm: Align: %w", err)
	}
	cache.save(a)
	return a, nil
}

// tokenRows is the number of embedding rows that stand for tokens: converters pad the embedding, and GGUF files the
// vocabulary too, with tokens that decode to nothing (Qwen2.5: 151,665 of 151,936 are left).
func tokenRows(m *Model) int {
	rows := m.Config.Vocab
	if m.Tokenizer == nil {
		return rows
	}
	rows = min(rows, m.Tokenizer.Len())
	for rows > 1 && m.Tokenizer.Decode([]Token{Token(rows - 1)}) == "" {
		rows--
	}
	return rows
}

func align(ctx context.Context, m *Model, o AlignOptions, rows int) (*Alignment, error) {
	in, err := m.Tensor("token_embd.weight", m.Config.Vocab, m.Config.Width)
	if err != nil {
		return nil, err
	}
	sums := newAlignSums(m.Config.Width, !m.Config.Tied)
	out := in
	if !m.Config.Tied {
		if out, err = m.Tensor("output.weight", m.Config.Vocab, m.Config.Width); err != nil {
			return nil, err
		}
	}
	for row := 0; row < rows; row += alignRows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sums.add(in, out, row, min(alignRows, rows-row))
		if o.Progress != nil {
			o.Progress(min(row+alignRows, rows), rows)
		}
	}
	a := &Alignment{Tied: m.Config.Tied, Gamma: float32(sums.norms / float64(rows)), Rho: o.Rho, Rows: rows}
	if !a.Tied {
		a.W, err = sums.solve(o.Rho)
	}
	return a, err
}

// alignRows is the number of vocabulary rows that are summed in float32 before the sum moves to float64.
const alignRows = 1024

// alignTile is the number of rows and columns of the Gram matrices that one thread sums at a time.
const alignTile = 64

// alignSums are the sums over the vocabulary.
type alignSums struct {
	ops         *vec.Ops
	width       int
	norms       float64   // Σ‖in_v‖
	gram, cross []float64 // OᵀO and OᵀI, [D × D]; nil when tied
	in, out     []float32 // [D][alignRows]: the rows in hand as columns
}

func newAlignSums(width int, matrices bool) *alignSums {
	ops, err := vec.For("")
	if err != nil {
		panic(err) // "" names the best version, and there is always one
	}
	s := &alignSums{ops: ops, width: width, in: make([]float32, width*alignRows)}
	if matrices {
		s.out, s.gram, s.cross = make([]float32, width*alignRows), make([]float64, width*width), make([]float64, width*width)
	}
	return s
}

// add sums n ≤ alignRows rows from row on.
func (s *alignSums) add(in, out Tensor, row, n int) {
	s.norms += s.columns(s.in, in, row, n)
	if s.gram == nil {
		return
	}
	s.columns(s.out, out, row, n)
	tiles := (s.width + alignTile - 1) / alignTile
	inParallel(tiles*tiles, func(i int) { s.tile(i/tiles*alignTile, i%tiles*alignTile) })
}

// columns decodes rows into the columns of dst, the rest of it 0, and returns the sum of their norms.
func (s *alignSums) columns(dst []float32, t Tensor, row, n int) float64 {
	const run = 64
	norms := make([]float64, alignRows)
	inParallel(alignRows/run, func(i int) {
		values := make([]float32, s.width)
		for v := i * run; v < (i+1)*run; v++ {
			if clear(values); v < n {
				t.Floats(values, row+v, 1)
			}
			for d, x := range values {
				dst[d*alignRows+v] = x
				norms[v] += float64(x) * float64(x)
			}
		}
	})
	sum := 0.0
	for _, square := range norms {
		sum += math.Sqrt(square)
	}
	return sum
}

// tile adds the rows in hand to one tile of both matrices.
func (s *alignSums) tile(i0, j0 int) {
	rows, cols := min(alignTile, s.width-i0), min(alignTile, s.width-j0)
	left := s.out[i0*alignRows:]
	for _, m := range []struct {
		sum   []float64
		right []float32
	}{{s.gram, s.out}, {s.cross, s.in}} {
		var part [alignTile * alignTile]float32
		s.ops.Product(part[:], alignTile, left, alignRows, rows, m.right[j0*alignRows:], alignRows, cols, alignRows)
		for i := range rows {
			for j := range cols {
				m.sum[(i0+i)*s.width+j0+j] += float64(part[i*alignTile+j])
			}
		}
	}
}

// solve returns (OᵀO + ρI)⁻¹ OᵀI by Cholesky's factorisation in float64.
func (s *alignSums) solve(rho float64) ([]float32, error) {
	for i := range s.width {
		s.gram[i*s.width+i] += rho
	}
	var factor mat.Cholesky
	if !factor.Factorize(mat.NewSymDense(s.width, s.gram)) {
		return nil, fmt.Errorf("the output head's Gram matrix plus ρ = %g is not positive definite: give a larger Rho", rho)
	}
	var w mat.Dense
	if err := factor.SolveTo(&w, mat.NewDense(s.width, s.width, s.cross)); err != nil {
		var badly mat.Condition // a warning: the solution is there
		if !errors.As(err, &badly) {
			return nil, err
		}
	}
	out := make([]float32, s.width*s.width)
	for i := range out {
		out[i] = float32(w.At(i/s.width, i%s.width))
	}
	return out, nil
}

// inParallel calls f for every i < n from as many goroutines as can run.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	all.Wait()
}
