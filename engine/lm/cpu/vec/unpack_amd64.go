package vec

// Decoders by GGML type number (engine/lm/dtype.go). Each takes at least one block.
var (
	unpackavx512 = unpackTable{
		1: unpackF16avx512, 2: unpackQ4_0avx512, 3: unpackQ4_1avx512, 6: unpackQ5_0avx512, 8: unpackQ8_0avx512,
		12: unpackQ4Kavx512, 13: unpackQ5Kavx512, 14: unpackQ6Kavx512, 30: unpackBF16avx512,
	}
	unpackavx2 = unpackTable{
		1: unpackF16avx2, 2: unpackQ4_0avx2, 3: unpackQ4_1avx2, 6: unpackQ5_0avx2, 8: unpackQ8_0avx2,
		12: unpackQ4Kavx2, 13: unpackQ5Kavx2, 14: unpackQ6Kavx2, 30: unpackBF16avx2,
	}
)

//go:noescape
func unpackF16avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackBF16avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4_0avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4_1avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ5_0avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ8_0avx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4Kavx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ5Kavx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ6Kavx512(dst *float32, src *byte, blocks int)

//go:noescape
func unpackF16avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackBF16avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4_0avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4_1avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ5_0avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ8_0avx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ4Kavx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ5Kavx2(dst *float32, src *byte, blocks int)

//go:noescape
func unpackQ6Kavx2(dst *float32, src *byte, blocks int)
