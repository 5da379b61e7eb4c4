package cpu

import (
	"math"

	"skep/engine/lm"
)

// angles holds the cosines and sines of the positions that a chunk rotates to: Eq. 1's R_i. They are computed in
// float64, so that R_{i-s} q · R_j k and R_i q · R_{j+s} k differ by float32 rounding only, at any position.
type angles struct {
	frequencies []float64 // [Dh/2] radians a position
	interleaved bool
	at          map[int]int // position → offset in table
	table       []float32   // [position][cos Dh/2, sin Dh/2]
}

func newAngles(c lm.Config) angles {
	a := angles{interleaved: c.RopeInterleaved, at: map[int]int{}}
	for i := range c.HeadDim / 2 {
		a.frequencies = append(a.frequencies, math.Pow(c.RopeTheta, -2*float64(i)/float64(c.HeadDim)))
	}
	return a
}

// reset forgets the positions of the chunk before.
func (a *angles) reset() {
	clear(a.at)
	a.table = a.table[:0]
}

// add makes a position known.
func (a *angles) add(position int) {
	if _, ok := a.at[position]; ok {
		return
	}
	a.at[position] = len(a.table)
	half := len(a.frequencies)
	a.table = append(a.table, make([]float32, 2*half)...)
	entry := a.table[len(a.table)-2*half:]
	for i, f := range a.frequencies {
		sin, cos := math.Sincos(float64(position) * f)
		entry[i], entry[half+i] = float32(cos), float32(sin)
	}
}

// rotate writes R_position·v·scale to dst, both [Dh]; they may be the same slice. Safe for concurrent use once the
// positions are added.
func (a *angles) rotate(dst, v []float32, position int, scale float32) {
	half := len(a.frequencies)
	entry := a.table[a.at[position]:]
	cos, sin := entry[:half], entry[half:2*half]
	if a.interleaved {
		for i, c := range cos {
			x, y := v[2*i]*scale, v[2*i+1]*scale
			dst[2*i], dst[2*i+1] = x*c-y*sin[i], x*sin[i]+y*c
		}
		return
	}
	lowIn, highIn, low, high := v[:half], v[half:2*half], dst[:half], dst[half:2*half]
	for i, c := range cos {
		x, y := lowIn[i]*scale, highIn[i]*scale
		low[i], high[i] = x*c-y*sin[i], x*sin[i]+y*c
	}
}
