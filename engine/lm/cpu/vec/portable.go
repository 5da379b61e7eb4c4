package vec

import (
	"math"
	"unsafe"
)

// portable is the plain Go version, for machines without AVX2; it follows the lanes and trees of the assembly.
var portable = Ops{
	Name:    "portable",
	tile1:   []tileFunc{nil, tileGo(1)},
	tile4:   []tileFunc{nil, tileGo(4)},
	panel:   []tileFunc{nil, panelGo},
	expSum:  expSumGo,
	siluMul: siluMulGo,
	maximum: maximumGo,
}

// tileGo returns the product of one row with so many weight rows.
func tileGo(weights int) tileFunc {
	return func(dst *float32, dstStride int, x *float32, xStride int, w *float32, wStride int, k int) {
		row, out := unsafe.Slice(x, k), unsafe.Slice(dst, weights)
		all := unsafe.Slice(w, (weights-1)*wStride/4+k)
		for j := range out {
			out[j] += dotGo(row, all[j*wStride/4:][:k])
		}
	}
}

// dotGo is a dot product in Lanes accumulators; len(a) is a multiple of Lanes.
func dotGo(a, b []float32) float32 {
	var lanes [Lanes]float32
	for len(a) >= Lanes && len(b) >= Lanes {
		for i := range lanes {
			lanes[i] += a[i] * b[i]
		}
		a, b = a[Lanes:], b[Lanes:]
	}
	return sumLanes(&lanes)
}

// sumLanes is the tree of the assembly's tiles: within groups of four lanes first, then over the groups.
func sumLanes(lanes *[Lanes]float32) float32 {
	var group [4]float32
	for g := range group {
		l := lanes[4*g:]
		group[g] = (l[0] + l[2]) + (l[1] + l[3])
	}
	return (group[0] + group[2]) + (group[1] + group[3])
}

// panelGo is the product of one row with 16 columns in four chains.
func panelGo(dst *float32, _ int, a *float32, _ int, b *float32, bStride int, k int) {
	row, out := unsafe.Slice(a, k), unsafe.Slice(dst, Lanes)
	all := unsafe.Slice(b, (k-1)*bStride/4+Lanes)
	var chains [4][Lanes]float32
	for i, scale := range row {
		chain := &chains[i%4]
		for c, v := range all[i*bStride/4:][:Lanes] {
			chain[c] += scale * v
		}
	}
	for c := range out {
		out[c] += (chains[0][c] + chains[1][c]) + (chains[2][c] + chains[3][c])
	}
}

func expSumGo(s *float32, n int, max float32) float32 {
	var lanes [Lanes]float32
	for i, v := range unsafe.Slice(s, n) {
		e := float32(0)
		if !(v-max < -87) {
			e = float32(math.Exp(float64(v - max)))
		}
		unsafe.Slice(s, n)[i] = e
		lanes[i%Lanes] += e
	}
	return sumLanes(&lanes)
}

func siluMulGo(gate, up *float32, n int) {
	g, u := unsafe.Slice(gate, n), unsafe.Slice(up, n)
	for i, v := range g {
		g[i] = v / (1 + float32(math.Exp(float64(-v)))) * u[i]
	}
}

func maximumGo(s *float32, n int) float32 {
	values := unsafe.Slice(s, n)
	best := values[0]
	for _, v := range values {
		best = max(best, v)
	}
	return best
}
