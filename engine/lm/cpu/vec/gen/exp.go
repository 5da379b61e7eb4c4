package main

import (
	"fmt"
	"math"
)

// The exponential: exp(x) = 2^n · exp(r), n = round(x/ln 2), |r| ≤ ln 2 / 2, exp(r) by the polynomial of Cephes' expf
// (S. Moshier, netlib; relative error 2e-7). Below low the result is 0, above high it stays at exp(high).
var constants = []struct {
	name  string
	value float32
}{
	{"low", -87}, {"high", 88}, {"log2e", math.Log2E},
	{"ln2hi", 0.693359375}, {"ln2lo", -2.12194440e-4}, // ln 2 in two parts: n·ln2hi is exact
	{"p0", 1.9875691500e-4}, {"p1", 1.3981999507e-3}, {"p2", 8.3334519073e-3},
	{"p3", 4.1665795894e-2}, {"p4", 1.6666665459e-1}, {"p5", 5.0000001201e-1}, {"one", 1},
}

func (s isa) constants(w *writer) {
	fmt.Fprintln(w)
	for n, c := range constants {
		fmt.Fprintf(w, "DATA exp%s<>+%d(SB)/4, $0x%08x // %s = %v\n", s.name, n*4, math.Float32bits(c.value), c.name, c.value)
	}
	fmt.Fprintf(w, "GLOBL exp%s<>(SB), RODATA|NOPTR, $%d\n", s.name, len(constants)*4)
}

// constant loads the named constant into every lane of register n.
func (s isa) constant(w *writer, name string, n int) {
	for i, c := range constants {
		if c.name == name {
			w.op("VBROADCASTSS exp%s<>+%d(SB), %s", s.name, i*4, s.r(n))
			return
		}
	}
	panic("gen: no constant " + name)
}

// exp replaces register 0 by its exponential; registers 1 to 4 are scratch.
func (s isa) exp(w *writer) {
	x, t, n, r, p := s.r(0), s.r(1), s.r(2), s.r(3), s.r(4)
	s.constant(w, "low", 1)
	w.op("VMAXPS %s, %s, %s", x, t, r) // x second: NaN stays NaN
	s.constant(w, "high", 1)
	w.op("VMINPS %s, %s, %s", r, t, r)
	s.constant(w, "log2e", 1)
	w.op("VMULPS %s, %s, %s", t, r, n)
	if s.halves == 1 {
		w.op("VRNDSCALEPS $8, %s, %s", n, n)
	} else {
		w.op("VROUNDPS $8, %s, %s", n, n)
	}
	s.constant(w, "ln2hi", 1)
	w.op("VFNMADD231PS %s, %s, %s", t, n, r)
	s.constant(w, "ln2lo", 1)
	w.op("VFNMADD231PS %s, %s, %s", t, n, r)
	s.constant(w, "p0", 4)
	for _, c := range []string{"p1", "p2", "p3", "p4", "p5"} {
		s.constant(w, c, 1)
		w.op("VFMADD213PS %s, %s, %s", t, r, p)
	}
	w.op("VMULPS %s, %s, %s", r, p, p)
	s.constant(w, "one", 1)
	w.op("VFMADD213PS %s, %s, %s", r, r, p) // p·r² + r
	w.op("VADDPS %s, %s, %s", t, p, p)
	w.op("VCVTPS2DQ %s, %s", n, n)
	w.op("VPSLLD $23, %s, %s", n, n)
	w.op("VPADDD %s, %s, %s", n, p, p)
	s.constant(w, "low", 1)
	if s.halves == 1 {
		w.op("VCMPPS $5, %s, %s, K1", t, x) // not less than, true for NaN
		w.op("VMOVAPS.Z %s, K1, %s", p, x)
		return
	}
	w.op("VCMPPS $5, %s, %s, %s", t, x, t)
	w.op("VANDPS %s, %s, %s", t, p, x)
}

// sumRegister leaves in X5 lane 0 the sum of the 16 lanes held in register 5 (and 6 for AVX2), by the tree of tiles.
func (s isa) sumRegister(w *writer, op string) {
	if s.halves == 1 {
		w.op("VEXTRACTF64X4 $1, Z5, Y6")
	}
	w.op("%s Y6, Y5, Y5", op)
	w.op("VEXTRACTF128 $1, Y5, X6")
	w.op("%s X6, X5, X5", op)
	w.op("VSHUFPS $0x4e, X5, X5, X6")
	w.op("%s X6, X5, X5", op)
	w.op("VSHUFPS $0xb1, X5, X5, X6")
	w.op("%s X6, X5, X5", op)
}

// expSum writes exp(s - max) over s and returns its sum; n is a multiple of 16.
func (s isa) expSum(w *writer) {
	fmt.Fprintf(w, "\n// func expSum%s(s *float32, n int, max float32) float32\n", s.name)
	fmt.Fprintf(w, "TEXT ·expSum%s(SB), NOSPLIT, $0-28\n", s.name)
	w.op("MOVQ s+0(FP), SI")
	w.op("MOVQ n+8(FP), CX")
	w.op("VBROADCASTSS max+16(FP), %s", s.r(7))
	w.op("VXORPS %s, %s, %s", s.r(5), s.r(5), s.r(5))
	w.op("VXORPS %s, %s, %s", s.r(6), s.r(6), s.r(6))
	w.op("SHRQ $4, CX")
	w.op("JZ done")
	w.label("loop")
	for half := range s.halves {
		w.op("VMOVUPS %d(SI), %s", half*s.bytes, s.r(0))
		w.op("VSUBPS %s, %s, %s", s.r(7), s.r(0), s.r(0))
		s.exp(w)
		w.op("VMOVUPS %s, %d(SI)", s.r(0), half*s.bytes)
		w.op("VADDPS %s, %s, %s", s.r(0), s.r(5+half), s.r(5+half))
	}
	w.op("ADDQ $64, SI")
	w.op("DECQ CX")
	w.op("JNZ loop")
	w.label("done")
	s.sumRegister(w, "VADDPS")
	w.op("VMOVSS X5, ret+24(FP)")
	w.op("VZEROUPPER")
	w.op("RET")
}

// siluMul writes gate/(1+exp(-gate))·up over gate; n is a multiple of 16.
func (s isa) siluMul(w *writer) {
	fmt.Fprintf(w, "\n// func siluMul%s(gate, up *float32, n int)\n", s.name)
	fmt.Fprintf(w, "TEXT ·siluMul%s(SB), NOSPLIT, $0-24\n", s.name)
	w.op("MOVQ gate+0(FP), SI")
	w.op("MOVQ up+8(FP), DX")
	w.op("MOVQ n+16(FP), CX")
	s.constant(w, "one", 8)
	w.op("SHRQ $4, CX")
	w.op("JZ done")
	w.label("loop")
	for half := range s.halves {
		w.op("VMOVUPS %d(SI), %s", half*s.bytes, s.r(7))
		w.op("VXORPS %s, %s, %s", s.r(0), s.r(0), s.r(0))
		w.op("VSUBPS %s, %s, %s", s.r(7), s.r(0), s.r(0))
		s.exp(w)
		w.op("VADDPS %s, %s, %s", s.r(8), s.r(0), s.r(0))
		w.op("VDIVPS %s, %s, %s", s.r(0), s.r(7), s.r(7))
		w.op("VMULPS %d(DX), %s, %s", half*s.bytes, s.r(7), s.r(7))
		w.op("VMOVUPS %s, %d(SI)", s.r(7), half*s.bytes)
	}
	w.op("ADDQ $64, SI")
	w.op("ADDQ $64, DX")
	w.op("DECQ CX")
	w.op("JNZ loop")
	w.label("done")
	w.op("VZEROUPPER")
	w.op("RET")
}

// max returns the largest of n floats, n a positive multiple of 16.
func (s isa) max(w *writer) {
	fmt.Fprintf(w, "\n// func maximum%s(s *float32, n int) float32\n", s.name)
	fmt.Fprintf(w, "TEXT ·maximum%s(SB), NOSPLIT, $0-20\n", s.name)
	w.op("MOVQ s+0(FP), SI")
	w.op("MOVQ n+8(FP), CX")
	w.op("VMOVUPS (SI), %s", s.r(5))
	if s.halves == 2 {
		w.op("VMOVUPS %d(SI), %s", s.bytes, s.r(6))
	}
	w.op("SHRQ $4, CX")
	w.label("loop")
	for half := range s.halves {
		w.op("VMAXPS %d(SI), %s, %s", half*s.bytes, s.r(5+half), s.r(5+half))
	}
	w.op("ADDQ $64, SI")
	w.op("DECQ CX")
	w.op("JNZ loop")
	s.sumRegister(w, "VMAXPS")
	w.op("VMOVSS X5, ret+16(FP)")
	w.op("VZEROUPPER")
	w.op("RET")
}

// declarations writes the Go side: prototypes and one table per instruction set.
func declarations(w *writer) {
	fmt.Fprintf(w, "// Code generated by vec/gen. DO NOT EDIT.\n\npackage vec\n")
	for _, s := range isas {
		fmt.Fprintln(w)
		for _, weights := range []int{1, 4} {
			for rows := 1; rows <= s.rows; rows++ {
				fmt.Fprintf(w, "//go:noescape\nfunc tile%dx%d%s(dst *float32, dstStride int, x *float32, xStride int, w *float32, wStride int, k int)\n\n", weights, rows, s.name)
			}
		}
		fmt.Fprintf(w, "//go:noescape\nfunc tile8x1%s(dst *float32, dstStride int, x *float32, xStride int, w *float32, wStride int, k int)\n\n", s.name)
		for rows := 1; rows <= s.rows; rows++ {
			fmt.Fprintf(w, "//go:noescape\nfunc panel%d%s(dst *float32, dstStride int, a *float32, aStride int, b *float32, bStride int, k int)\n\n", rows, s.name)
		}
		fmt.Fprintf(w, "//go:noescape\nfunc expSum%s(s *float32, n int, max float32) float32\n\n", s.name)
		fmt.Fprintf(w, "//go:noescape\nfunc siluMul%s(gate, up *float32, n int)\n\n", s.name)
		fmt.Fprintf(w, "//go:noescape\nfunc maximum%s(s *float32, n int) float32\n\n", s.name)
		fmt.Fprintf(w, "var ops%s = Ops{\n\tName: %q,\n", s.name, s.name)
		for _, weights := range []int{1, 4} {
			fmt.Fprintf(w, "\ttile%d: []tileFunc{nil", weights)
			for rows := 1; rows <= s.rows; rows++ {
				fmt.Fprintf(w, ", tile%dx%d%s", weights, rows, s.name)
			}
			fmt.Fprintln(w, "},")
		}
		fmt.Fprintf(w, "\ttile8: tile8x1%s,\n", s.name)
		fmt.Fprintf(w, "\tpanel: []tileFunc{nil")
		for rows := 1; rows <= s.rows; rows++ {
			fmt.Fprintf(w, ", panel%d%s", rows, s.name)
		}
		fmt.Fprintf(w, "},\n\texpSum: expSum%s,\n\tsiluMul: siluMul%s,\n\tmaximum: maximum%s,\n\tunpack: unpack%s,\n}\n", s.name, s.name, s.name, s.name)
	}
}
