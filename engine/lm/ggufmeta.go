package lm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Typed access to GGUF metadata. A missing key or another type is an error that names the key.

func (g *gguf) value(key string) (ggufValue, error) {
	v, ok := g.meta[key]
	if !ok {
		return v, fmt.Errorf("%w: metadata key %q is missing", ErrModel, key)
	}
	return v, nil
}

func (g *gguf) string(key string) (string, error) {
	v, err := g.value(key)
	if err != nil {
		return "", err
	}
	if v.array || v.kind != ggufString {
		return "", fmt.Errorf("%w: metadata %q is not a string", ErrModel, key)
	}
	return string(v.raw[8:]), nil
}

// int returns a whole number of any width.
func (g *gguf) int(key string) (int, error) {
	v, err := g.value(key)
	if err != nil {
		return 0, err
	}
	if v.array {
		return 0, fmt.Errorf("%w: metadata %q is an array of %d values, not one number", ErrModel, key, v.n)
	}
	n, ok := v.integer()
	if !ok {
		return 0, fmt.Errorf("%w: metadata %q is not a whole number in range", ErrModel, key)
	}
	return n, nil
}

// integer decodes a single whole number; false for other types and for numbers that no size or token can have.
func (v ggufValue) integer() (int, bool) {
	var n int64
	switch le := binary.LittleEndian; v.kind {
	case ggufUint8:
		n = int64(v.raw[0])
	case ggufInt8:
		n = int64(int8(v.raw[0]))
	case ggufUint16:
		n = int64(le.Uint16(v.raw))
	case ggufInt16:
		n = int64(int16(le.Uint16(v.raw)))
	case ggufUint32:
		n = int64(le.Uint32(v.raw))
	case ggufInt32:
		n = int64(int32(le.Uint32(v.raw)))
	case ggufUint64, ggufInt64:
		n = int64(le.Uint64(v.raw))
	default:
		return 0, false
	}
	return int(n), -math.MaxInt32 <= n && n <= math.MaxInt32
}

func (g *gguf) float(key string) (float64, error) {
	v, err := g.value(key)
	switch {
	case err != nil:
		return 0, err
	case !v.array && v.kind == ggufFloat32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.raw))), nil
	case !v.array && v.kind == ggufFloat64:
		return math.Float64frombits(binary.LittleEndian.Uint64(v.raw)), nil
	}
	return 0, fmt.Errorf("%w: metadata %q is not a floating-point number", ErrModel, key)
}

// bool returns the value of an optional flag, false when it is absent.
func (g *gguf) bool(key string) (bool, error) {
	v, ok := g.meta[key]
	if !ok {
		return false, nil
	}
	if v.array || v.kind != ggufBool {
		return false, fmt.Errorf("%w: metadata %q is not a flag", ErrModel, key)
	}
	return v.raw[0] != 0, nil
}

func (g *gguf) strings(key string) ([]string, error) {
	v, err := g.value(key)
	if err != nil {
		return nil, err
	}
	if !v.array || v.kind != ggufString {
		return nil, fmt.Errorf("%w: metadata %q is not a list of strings", ErrModel, key)
	}
	all := make([]string, v.n)
	for i, raw := 0, v.raw; i < v.n; i++ {
		n := binary.LittleEndian.Uint64(raw)
		all[i], raw = string(raw[8:8+n]), raw[8+n:]
	}
	return all, nil
}

func (g *gguf) ints(key string) ([]int, error) {
	v, err := g.value(key)
	if err != nil {
		return nil, err
	}
	width := ggufWidth[v.kind]
	all := make([]int, v.n)
	for i := range all {
		one := ggufValue{kind: v.kind, raw: v.raw[i*width:]}
		n, ok := one.integer()
		if !v.array || !ok {
			return nil, fmt.Errorf("%w: metadata %q is not a list of whole numbers", ErrModel, key)
		}
		all[i] = n
	}
	return all, nil
}

// config reads the shape of the model. Keys that change the computation in a way that is not implemented are errors.
func (g *gguf) config() (Config, error) {
	arch, err := g.string("general.architecture")
	if err != nil {
		return Config{}, err
	}
	c, err := newConfig(arch)
	if err != nil {
		return c, err
	}
	if err := g.refuseUnknown(arch); err != nil {
		return c, err
	}
	c.RopeInterleaved = arch == "llama" // llama.cpp's converter permutes q and k of llama files
	read := func(field *int, key string) {
		if err == nil {
			*field, err = g.int(arch + "." + key)
		}
	}
	read(&c.Layers, "block_count")
	read(&c.Width, "embedding_length")
	read(&c.FFN, "feed_forward_length")
	read(&c.Heads, "attention.head_count")
	read(&c.KVHeads, "attention.head_count_kv")
	read(&c.Context, "context_length")
	if _, ok := g.meta[arch+".vocab_size"]; ok {
		read(&c.Vocab, "vocab_size")
	}
	if err == nil {
		c.RopeTheta, err = g.float(arch + ".rope.freq_base")
	}
	if err == nil {
		c.NormEps, err = g.float(arch + ".attention.layer_norm_rms_epsilon")
	}
	if err == nil {
		c.HeadDim, err = g.headDim(arch, c)
	}
	return c, err
}

// headDim is key_length where the file gives it; else the format defines it as the width divided among the heads.
func (g *gguf) headDim(arch string, c Config) (int, error) {
	dim := 0
	if c.Heads > 0 && c.Width%c.Heads == 0 {
		dim = c.Width / c.Heads
	}
	for _, key := range []string{".attention.key_length", ".attention.value_length", ".rope.dimension_count"} {
		if _, ok := g.meta[arch+key]; !ok {
			continue
		}
		n, err := g.int(arch + key)
		if err != nil {
			return 0, err
		}
		if key == ".attention.key_length" {
			dim = n
		}
		if n != dim {
			return 0, fmt.Errorf("%w: %s is %d, but heads are %d wide: different widths are not supported",
				ErrModel, arch+key, n, dim)
		}
	}
	return dim, nil
}

// ggufUsed are the rope, attention and expert keys that config understands.
var ggufUsed = map[string]bool{
	"attention.head_count": true, "attention.head_count_kv": true, "attention.layer_norm_rms_epsilon": true,
	"attention.key_length": true, "attention.value_length": true, "rope.freq_base": true, "rope.dimension_count": true,
}

// refuseUnknown rejects a file whose keys ask for another rotation, attention or feed-forward than we compute.
func (g *gguf) refuseUnknown(arch string) error {
	for _, key := range slices.Sorted(maps.Keys(g.meta)) {
		v := g.meta[key]
		name, ours := strings.CutPrefix(key, arch+".")
		matters := strings.HasPrefix(name, "rope.") || strings.HasPrefix(name, "attention.") || strings.HasPrefix(name, "expert")
		if !ours || !matters || ggufUsed[name] {
			continue
		}
		if n, ok := v.integer(); ok && n == 0 { // "no experts", "no sliding window"
			continue
		}
		if s, err := g.string(key); err == nil && s == "none" { // rope.scaling.type
			continue
		}
		return fmt.Errorf("%w: metadata %q asks for something that is not implemented", ErrModel, key)
	}
	return nil
}
