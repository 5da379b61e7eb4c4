package lm

import (
	"math"
	"testing"
)

// The known answers are those of Random123's kat_vectors file for philox4x64 with 10 rounds.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = math.MaxUint64
	for _, c := range []struct {
		counter [4]uint64
		key     [2]uint64
		want    [4]uint64
	}{
		{want: [4]uint64{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}},
		{[4]uint64{ones, ones, ones, ones}, [2]uint64{ones, ones},
			[4]uint64{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}},
		{[4]uint64{0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
			[2]uint64{0x452821e638d01377, 0xbe5466cf34e90c6c},
			[4]uint64{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestUniformDependsOnEveryField(t *testing.T) {
	base := Key{Run: 1, Swarm: 2, Replicate: 3}
	seen := map[float64]string{base.Uniform(4): "base"}
	for name, u := range map[string]float64{
		"run": Key{2, 2, 3}.Uniform(4), "swarm": Key{1, 3, 3}.Uniform(4), "replicate": Key{1, 2, 4}.Uniform(4),
		"index": base.Uniform(5), "swapped": Key{1, 3, 2}.Uniform(4),
	} {
		if other, twice := seen[u]; twice {
			t.Errorf("%s gives the draw of %s", name, other)
		}
		seen[u] = name
		if u < 0 || u >= 1 {
			t.Errorf("%s: %v is not in [0, 1)", name, u)
		}
	}
}
