package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// Reals reads v as real 64-bit numbers of the given shape, row-major; an empty shape is one number. It is the only
// cast there is, and an explicit one:
//
//   - an array of dtype f8, or of dtype i8 or Python integers where each is at most 2⁵³ in size and so exact in float64;
//   - lists and tuples, nested as the shape says, whose entries are floats, such integers or such arrays.
//
// Booleans, complex numbers, strings, sets, fractions and arrays of other widths are refused, and nothing is
// broadcast. NaN and infinities pass: they are numbers of the right type, and their meaning is the caller's to judge.
// The error names the place: "radii[3] is complex". At most the product of shape entries are visited.
func Reals(name string, v Value, shape ...int) ([]float64, error) {
	size := 1
	for _, n := range shape {
		size *= n
	}
	return appendReals(make([]float64, 0, size), name, v, shape)
}

func appendReals(dst []float64, name string, v Value, shape []int) ([]float64, error) {
	switch v := v.(type) {
	case *Array:
		return appendArray(dst, name, v, shape)
	case List:
		return appendRows(dst, name, v, shape)
	case Tuple:
		return appendRows(dst, name, v, shape)
	}
	if len(shape) > 0 {
		return nil, fmt.Errorf("%s is %s, want %s", name, Describe(v), shapeText(shape))
	}
	switch v := v.(type) {
	case Float:
		return append(dst, float64(v)), nil
	case *big.Int:
		if !v.IsInt64() || !exact(v.Int64()) {
			return nil, fmt.Errorf("%s is an integer beyond 2^53, not exact as a 64-bit float", name)
		}
		return append(dst, float64(v.Int64())), nil
	default:
		return nil, fmt.Errorf("%s is %s, want a real 64-bit number", name, Describe(v))
	}
}

func appendRows(dst []float64, name string, rows []Value, shape []int) ([]float64, error) {
	if len(shape) == 0 {
		return nil, fmt.Errorf("%s is a sequence of %d, want one number", name, len(rows))
	}
	if len(rows) != shape[0] {
		return nil, fmt.Errorf("%s has %d entries, want %s", name, len(rows), shapeText(shape))
	}
	var err error
	for i, row := range rows {
		if dst, err = appendReals(dst, name+"["+strconv.Itoa(i)+"]", row, shape[1:]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

func appendArray(dst []float64, name string, a *Array, shape []int) ([]float64, error) {
	if a.DType != "f8" && a.DType != "i8" {
		return nil, fmt.Errorf("%s is %s, want float64", name, Describe(a))
	}
	same := len(a.Shape) == len(shape)
	for i := 0; same && i < len(shape); i++ {
		same = a.Shape[i] == shape[i]
	}
	if !same {
		return nil, fmt.Errorf("%s has shape %s, want %s", name, shapeText(a.Shape), shapeText(shape))
	}
	for i := 0; i+8 <= len(a.Data); i += 8 {
		bits := binary.LittleEndian.Uint64(a.Data[i:])
		if a.DType == "f8" {
			dst = append(dst, math.Float64frombits(bits))
			continue
		}
		if !exact(int64(bits)) {
			return nil, fmt.Errorf("%s holds %d, beyond 2^53 and not exact as a 64-bit float", name, int64(bits))
		}
		dst = append(dst, float64(int64(bits)))
	}
	return dst, nil
}

// exact says whether every integer up to the size of i is exact in float64.
func exact(i int64) bool { return -1<<53 <= i && i <= 1<<53 }

// Describe names the kind of a value for an error message: "a complex number", "an array of float32, shape (26, 2)".
func Describe(v Value) string {
	switch v := v.(type) {
	case nil, Nil:
		return "None"
	case Bool:
		return "a boolean"
	case *big.Int:
		return "an integer"
	case *big.Rat:
		return "a fraction"
	case Float:
		return "a float"
	case Complex:
		return "a complex number"
	case String:
		return "a string"
	case List:
		return fmt.Sprintf("a list of %d", len(v))
	case Tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case Set:
		return fmt.Sprintf("a set of %d", len(v))
	case Dict:
		return fmt.Sprintf("a dict of %d", len(v))
	case *Array:
		return fmt.Sprintf("an array of %s, shape %s", dtypeNames[v.DType], shapeText(v.Shape))
	default:
		return fmt.Sprintf("a %T", v)
	}
}

var dtypeNames = map[string]string{
	"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
	"u4": "uint32", "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64",
	"c16": "complex128",
}

// shapeText writes a shape as numpy does: (26, 2), (26,), ().
func shapeText(shape []int) string {
	text := "("
	for i, n := range shape {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(n)
	}
	if len(shape) == 1 {
		text += ","
	}
	return text + ")"
}
