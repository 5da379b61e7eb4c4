package lm

import "math/bits"

// Key names one sequence of random draws. Two keys that differ in any field give unrelated sequences, and the
// draw at one output index depends on nothing but the key and that index: not on the batch, on drafts, on
// threads, nor on how many draws were made before. The zero Key is valid.
type Key struct {
	Run       uint64 // the run's seed
	Swarm     uint64 // which writer of the run, numbered over all its rounds
	Replicate uint64 // which sample of that writer
}

// Uniform returns the draw at output index i, a multiple of 2⁻⁵³ in [0, 1).
//
// It is the first word of Philox4x64-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011)
// with key (Run, 0) and counter (i, Replicate, Swarm, 0). The generator is a bijection of the counter, so
// no two places of a run share a block of it.
func (k Key) Uniform(i uint64) float64 {
	words := philox([4]uint64{i, k.Replicate, k.Swarm, 0}, [2]uint64{k.Run, 0})
	return float64(words[0]>>11) / (1 << 53)
}

// philox is ten rounds of Philox4x64; the constants are those of the paper.
func philox(counter [4]uint64, key [2]uint64) [4]uint64 {
	const (
		multiply0, multiply1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
		weyl0, weyl1         = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
	)
	for range 10 {
		high0, low0 := bits.Mul64(multiply0, counter[0])
		high1, low1 := bits.Mul64(multiply1, counter[2])
		counter = [4]uint64{high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return counter
}
