// Package vec has the float32 routines that a forward pass spends its time in, in three versions: AVX-512, AVX2 with
// FMA, and portable Go. It knows numbers and strides; it knows no model, layer, head or thread.
//
// A result never depends on how many rows a call has: every output is one accumulator of 16 lanes that runs over k in
// steps of 16 (Product), or four chains over k modulo 4 (Panel), followed by a fixed tree of sums. The two assembly
// versions therefore give the same bits; portable Go gives them too where the compiler fuses x*y+z.
//
// All operands are padded with zeros to a multiple of 16 floats where a comment says so, so no routine has a tail.
// Everything here is safe for concurrent use on disjoint outputs.
package vec

//go:generate go run ./gen

import "fmt"

// Lanes is the number of floats that an accumulator holds, and the unit of padding.
const Lanes = 16

// MaxK is the longest run of k that a caller should give to Product in one call: longer rows are cut there, so that
// the rows of a tile stay in the first-level cache and rounding errors stay small.
const MaxK = 1024

// Pad rounds n up to a multiple of Lanes.
func Pad(n int) int { return (n + Lanes - 1) &^ (Lanes - 1) }

// tileFunc adds products to a few rows of dst; strides are in bytes.
type tileFunc func(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride int, k int)

// unpackTable has block decoders by GGML type number; nil: none.
type unpackTable [32]func(dst *float32, src *byte, blocks int)

// Ops is one version of the routines.
type Ops struct {
	Name         string     // "avx512", "avx2" or "portable"
	tile1, tile4 []tileFunc // by number of rows: one or four weight rows
	tile8        tileFunc   // one row, eight weight rows; nil: none
	panel        []tileFunc // by number of rows
	expSum       func(s *float32, n int, max float32) float32
	siluMul      func(gate, up *float32, n int)
	maximum      func(s *float32, n int) float32
	unpack       unpackTable
}

// Names are the versions that this machine can run, best first.
func Names() []string {
	var names []string
	for _, o := range available() {
		names = append(names, o.Name)
	}
	return append(names, portable.Name)
}

// For returns the version of that name, the best one for "". It fails when this machine can't run it.
func For(name string) (*Ops, error) {
	for _, o := range append(available(), &portable) {
		if name == "" || name == o.Name {
			return o, nil
		}
	}
	return nil, fmt.Errorf("vec: instruction set %q is not one that this machine runs: %v", name, Names())
}

// Product adds x·wᵀ to dst: dst[r][j] += Σ_k x[r][k]·w[j][k] for r < rows, j < n. Strides count floats. k is a
// multiple of Lanes; rows of x and w are padded with zeros to it.
func (o *Ops) Product(dst []float32, dstStride int, x []float32, xStride, rows int, w []float32, wStride, n, k int) {
	if rows == 0 || n == 0 || k == 0 {
		return
	}
	_ = dst[(rows-1)*dstStride+n-1]
	_ = x[(rows-1)*xStride+k-1]
	_ = w[(n-1)*wStride+k-1]
	tile := tileRows(rows, len(o.tile4)-1)
	for r := 0; r < rows; r += tile {
		tile = min(tile, rows-r)
		j := 0
		for ; tile == 1 && o.tile8 != nil && j+8 <= n; j += 8 {
			o.tile8(&dst[r*dstStride+j], dstStride*4, &x[r*xStride], xStride*4, &w[j*wStride], wStride*4, k)
		}
		for ; j+4 <= n; j += 4 {
			o.tile4[tile](&dst[r*dstStride+j], dstStride*4, &x[r*xStride], xStride*4, &w[j*wStride], wStride*4, k)
		}
		for ; j < n; j++ {
			o.tile1[tile](&dst[r*dstStride+j], dstStride*4, &x[r*xStride], xStride*4, &w[j*wStride], wStride*4, k)
		}
	}
}

// Panel adds a·b to 16 columns of dst: dst[r][c] += Σ_k a[r][k]·b[k][c] for r < rows, c < Lanes. Strides count floats; k is
// any number ≥ 0.
func (o *Ops) Panel(dst []float32, dstStride int, a []float32, aStride, rows int, b []float32, bStride, k int) {
	if rows == 0 || k == 0 {
		return
	}
	_ = dst[(rows-1)*dstStride+Lanes-1]
	_ = a[(rows-1)*aStride+k-1]
	_ = b[(k-1)*bStride+Lanes-1]
	tile := tileRows(rows, len(o.panel)-1)
	for r := 0; r < rows; r += tile {
		tile = min(tile, rows-r)
		o.panel[tile](&dst[r*dstStride], dstStride*4, &a[r*aStride], aStride*4, &b[0], bStride*4, k)
	}
}

// tileRows cuts rows into the fewest tiles of at most most rows, as even as they can be: 7 rows are 4 and 3, not 6 and a
// lone one that leaves the multipliers waiting.
func tileRows(rows, most int) int {
	tiles := (rows + most - 1) / most
	return (rows + tiles - 1) / tiles
}

// Dot is Σ a[k]·b[k]; the lengths are equal and a multiple of Lanes.
func (o *Ops) Dot(a, b []float32) float32 {
	var sum [1]float32
	o.Product(sum[:], 1, a, len(a), 1, b, len(b), 1, len(a))
	return sum[0]
}

// ExpSum replaces every s by exp(s-max), 0 where s-max < -87, and returns the sum. len(s) is a multiple of Lanes.
// The relative error of an exponential is below 3e-7; NaN stays NaN.
func (o *Ops) ExpSum(s []float32, max float32) float32 {
	if len(s) == 0 {
		return 0
	}
	return o.expSum(&s[0], len(s)&^(Lanes-1), max)
}

// SiluMul replaces gate by silu(gate)·up, silu(g) = g/(1+exp(-g)). The lengths are equal and a multiple of Lanes.
func (o *Ops) SiluMul(gate, up []float32) {
	if len(gate) == 0 {
		return
	}
	_ = up[len(gate)-1]
	o.siluMul(&gate[0], &up[0], len(gate)&^(Lanes-1))
}

// Max is the largest of s; len(s) is a positive multiple of Lanes.
func (o *Ops) Max(s []float32) float32 { return o.maximum(&s[0], len(s)&^(Lanes-1)) }

// Unpack decodes whole blocks of a GGML type (by its number, as in GGUF files) into dst and reports whether it can.
// The values are bit for bit those of ggml's reference.
func (o *Ops) Unpack(ggml uint32, dst []float32, src []byte, elems, bytes int) bool {
	if ggml >= uint32(len(o.unpack)) || o.unpack[ggml] == nil {
		return false
	}
	if blocks := len(src) / bytes; blocks > 0 {
		_ = dst[blocks*elems-1]
		o.unpack[ggml](&dst[0], &src[0], blocks)
	}
	return true
}
