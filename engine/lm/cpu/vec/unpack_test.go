package vec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// TestUnpack compares every assembly decoder with lm's, bit for bit, on random bytes, NaN scales included.
func TestUnpack(t *testing.T) {
	types := []lm.DType{lm.F16, lm.BF16, lm.Q4_0, lm.Q4_1, lm.Q5_0, lm.Q8_0, lm.Q4_K, lm.Q5_K, lm.Q6_K}
	for _, name := range vec.Names() {
		ops, err := vec.For(name)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(9, 9))
		for _, kind := range types {
			elems, bytes := kind.Block()
			for _, blocks := range []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40} {
				src := make([]byte, blocks*bytes)
				for i := range src {
					src[i] = byte(rng.Uint32())
				}
				got, want := make([]float32, blocks*elems+1), make([]float32, blocks*elems+1)
				got[blocks*elems], want[blocks*elems] = 7, 7 // what follows stays
				if !ops.Unpack(uint32(kind), got, src, elems, bytes) {
					if name != "portable" {
						t.Errorf("%s has no decoder of %s", name, kind)
					}
					break
				}
				lm.Tensor{Type: kind, Shape: []int{1, blocks * elems}, Data: src}.Floats(want, 0, 1)
				for i := range want {
					a, b := math.Float32bits(got[i]), math.Float32bits(want[i])
					if a != b && (got[i] == got[i] || want[i] == want[i]) {
						t.Fatalf("%s, %s, %d blocks: value %d is %v, want %v", name, kind, blocks, i, got[i], want[i])
					}
				}
			}
		}
	}
}
