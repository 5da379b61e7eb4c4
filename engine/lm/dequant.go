package lm

// Block decoders of the quantised GGUF types. Layouts: ggml-common.h of llama.cpp; tested bit for bit against
// gguf-py. A product is converted to float32 before it is added, so that no platform fuses the two roundings.

// floatsQ4_0: scale f16, then 32 nibbles; value i is the low nibble of byte i, value 16+i the high one, minus 8.
func floatsQ4_0(dst []float32, b []byte) {
	d, qs := half(b), b[2:]
	for i, q := range qs {
		dst[i] = d * float32(int(q&15)-8)
		dst[16+i] = d * float32(int(q>>4)-8)
	}
}

// floatsQ4_1: scale f16, minimum f16, then nibbles as in Q4_0.
func floatsQ4_1(dst []float32, b []byte) {
	d, m, qs := half(b), half(b[2:]), b[4:]
	for i, q := range qs {
		dst[i] = float32(d*float32(q&15)) + m
		dst[16+i] = float32(d*float32(q>>4)) + m
	}
}

// floatsQ5_0: scale f16, 32 fifth bits, nibbles as in Q4_0; values are centred on 16.
func floatsQ5_0(dst []float32, b []byte) {
	d, qs := half(b), b[6:]
	high := uint32(b[2]) | uint32(b[3])<<8 | uint32(b[4])<<16 | uint32(b[5])<<24
	for i, q := range qs {
		low, top := int(q&15)|int(high>>i&1)<<4, int(q>>4)|int(high>>(16+i)&1)<<4
		dst[i] = d * float32(low-16)
		dst[16+i] = d * float32(top-16)
	}
}

// floatsQ8_0: scale f16, 32 signed bytes.
func floatsQ8_0(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:] {
		dst[i] = d * float32(int8(q))
	}
}

// scaleMin unpacks the j-th 6-bit scale and minimum of the 12 bytes that Q4_K and Q5_K share.
func scaleMin(s []byte, j int) (scale, min float32) {
	if j < 4 {
		return float32(s[j] & 63), float32(s[j+4] & 63)
	}
	return float32(s[j+4]&15 | s[j-4]>>6<<4), float32(s[j+4]>>4 | s[j]>>6<<4)
}

// floatsQ4K: scale f16, scale of the minimums f16, 12 packed bytes, 128 bytes of nibbles: each run of 32 bytes holds
// 64 values, low nibbles first.
func floatsQ4K(dst []float32, b []byte) {
	d, dmin, scales, qs := half(b), half(b[2:]), b[4:16], b[16:]
	for j := range 8 {
		scale, min := scaleMin(scales, j)
		step, base := d*scale, dmin*min
		shift := 4 * (j & 1)
		for i, q := range qs[j/2*32:][:32] {
			dst[32*j+i] = float32(step*float32(q>>shift&15)) - base
		}
	}
}

// floatsQ5K: as Q4_K with 32 bytes of fifth bits before the nibbles; bit j of byte i belongs to value 32j+i.
func floatsQ5K(dst []float32, b []byte) {
	d, dmin, scales, high, qs := half(b), half(b[2:]), b[4:16], b[16:48], b[48:]
	for j := range 8 {
		scale, min := scaleMin(scales, j)
		step, base := d*scale, dmin*min
		shift := 4 * (j & 1)
		for i, q := range qs[j/2*32:][:32] {
			v := q>>shift&15 | high[i]>>j&1<<4
			dst[32*j+i] = float32(step*float32(v)) - base
		}
	}
}

// floatsQ6K: 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, scale f16. Each half of the block holds
// 128 values: four runs of 32 that share the same 32 bytes of bit pairs.
func floatsQ6K(dst []float32, b []byte) {
	low, high, scales, d := b[:128], b[128:192], b[192:208], half(b[208:])
	for v := range 256 {
		part, run, i := v/128, v/32%4, v%32
		nibble := low[64*part+32*(run&1)+i] >> (4 * (run / 2)) & 15
		pair := high[32*part+i] >> (2 * run) & 3
		step := d * float32(int8(scales[v/16]))
		dst[v] = step * float32(int(nibble|pair<<4)-32)
	}
}
