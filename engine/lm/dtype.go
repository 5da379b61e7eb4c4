package lm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is the storage type of a tensor. The values are GGML's type numbers, as GGUF files carry them.
type DType uint32

const (
	F32  DType = 0
	F16  DType = 1
	Q4_0 DType = 2
	Q4_1 DType = 3
	Q5_0 DType = 6
	Q8_0 DType = 8
	Q4_K DType = 12
	Q5_K DType = 13
	Q6_K DType = 14
	BF16 DType = 30
)

// format says how a type stores its numbers: blocks of elems values in bytes bytes, decoded by floats.
type format struct {
	name         string
	elems, bytes int
	floats       func(dst []float32, block []byte) // decodes one block; len(dst) == elems, len(block) == bytes
}

var formats = map[DType]format{
	F32:  {"F32", 1, 4, floatF32},
	F16:  {"F16", 1, 2, floatF16},
	BF16: {"BF16", 1, 2, floatBF16},
	Q4_0: {"Q4_0", 32, 18, floatsQ4_0},
	Q4_1: {"Q4_1", 32, 20, floatsQ4_1},
	Q5_0: {"Q5_0", 32, 22, floatsQ5_0},
	Q8_0: {"Q8_0", 32, 34, floatsQ8_0},
	Q4_K: {"Q4_K", 256, 144, floatsQ4K},
	Q5_K: {"Q5_K", 256, 176, floatsQ5K},
	Q6_K: {"Q6_K", 256, 210, floatsQ6K},
}

// unread names GGML types that exist but that this package does not read, for the error message.
var unread = map[DType]string{
	7: "Q5_1", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
	19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64",
	28: "F64", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// String is the type's name in llama.cpp's spelling, also for types that are not read.
func (t DType) String() string {
	if f, ok := formats[t]; ok {
		return f.name
	}
	if name, ok := unread[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Block is the smallest piece of the type: how many values it holds and how many bytes they take.
// Both are 0 for a type that this package does not read.
func (t DType) Block() (elems, bytes int) {
	f := formats[t]
	return f.elems, f.bytes
}

// size is the number of bytes of rows×cols values, or an error when the type is not read, cols is not whole
// blocks, or the product does not fit.
func (t DType) size(rows, cols int) (int64, error) {
	elems, bytes := t.Block()
	switch {
	case elems == 0:
		return 0, fmt.Errorf("has type %s, which is not read (read are F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q4_K Q5_K Q6_K)", t)
	case cols%elems != 0:
		return 0, fmt.Errorf("has %d columns, not a multiple of the %d values of a %s block", cols, elems, t)
	}
	row := int64(cols/elems) * int64(bytes)
	if row != 0 && int64(rows) > math.MaxInt64/row {
		return 0, fmt.Errorf("has an impossible size of %d rows × %d columns", rows, cols)
	}
	return int64(rows) * row, nil
}

// Tensor is a matrix of the model file, row-major, or a vector. Data is the file's own bytes: read-only, and
// valid until Model.Close. It is unaligned: read multi-byte values by byte order, not by casting.
type Tensor struct {
	Name  string
	Type  DType
	Shape []int // rows, cols; a vector has its length only
	Data  []byte
}

// Rows is the number of rows, 1 for a vector.
func (t Tensor) Rows() int {
	if len(t.Shape) == 1 {
		return 1
	}
	return t.Shape[0]
}

// Cols is the number of values of one row.
func (t Tensor) Cols() int { return t.Shape[len(t.Shape)-1] }

// RowBytes is the number of bytes of one row in Data.
func (t Tensor) RowBytes() int {
	elems, bytes := t.Type.Block()
	return t.Cols() / elems * bytes
}

// Floats decodes rows row0 … row0+rows-1 into dst [rows × Cols], with the roundings of ggml's own reference. It is
// the slow, exact form that the CPU backend's assembly is tested against. Rows outside the tensor or a short dst
// panic. Safe for concurrent use.
func (t Tensor) Floats(dst []float32, row0, rows int) {
	f := formats[t.Type]
	src := t.Data[row0*t.RowBytes() : (row0+rows)*t.RowBytes()]
	dst = dst[:rows*t.Cols()]
	for len(src) > 0 {
		f.floats(dst[:f.elems], src[:f.bytes])
		dst, src = dst[f.elems:], src[f.bytes:]
	}
}

func floatF32(dst []float32, b []byte) { dst[0] = math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func floatF16(dst []float32, b []byte) { dst[0] = half(b) }

func floatBF16(dst []float32, b []byte) {
	dst[0] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}

// half decodes an IEEE 754 binary16 number from its two bytes.
func half(b []byte) float32 {
	h := uint32(b[0]) | uint32(b[1])<<8
	sign, exp, frac := h>>15<<31, h>>10&31, h&1023
	switch exp {
	case 0: // zero and subnormals: frac · 2⁻²⁴, exact in float32
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 31: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}
