// Package value is the plain data a candidate program returns: what the judge decodes from a frame and what
// verifiers read. It imports no sibling and deliberately knows no problem, no file format and no Python object.
package value

import "math/big"

// Value is one of Nil, Bool, *big.Int, Float, Complex, String, List, Tuple, Set, Dict or *Array. Integers are
// always *big.Int, exact at any size.
type Value interface{}

// The concrete kinds of a Value beside *big.Int and *Array.
type (
	Nil     struct{}
	Bool    bool
	Float   float64 // may be NaN or infinite: verifiers must check
	Complex complex128
	String  string
	List    []Value
	Tuple   []Value
	Set     []Value
	Dict    map[string]Value
)

// Int is a convenience for tests and verifiers.
func Int(i int64) *big.Int { return big.NewInt(i) }

// Array is a numpy array as it crossed the boundary: little-endian, C order, dtype from the allow-list.
type Array struct {
	DType string // "b1" "i1" "i2" "i4" "i8" "u1" "u2" "u4" "u8" "f2" "f4" "f8" "c8" "c16"
	Shape []int  // product checked against len(Data) by the decoder
	Data  []byte
}
