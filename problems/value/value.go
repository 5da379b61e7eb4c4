// Package value is the plain data a candidate program returns: what the judge decodes from a frame and what
// verifiers read. It imports no sibling and deliberately knows no problem, no file format and no Python object.
//
// Reals is the one rule by which verifiers turn a Value into numbers.
package value

import "math/big"

// Value is one of Nil, Bool, *big.Int, *big.Rat, Float, Complex, String, List, Tuple, Set, Dict or *Array. Integers
// are always *big.Int, exact at any size; a Python Fraction is a *big.Rat.
type Value interface{}

// The concrete kinds of a Value beside *big.Int, *big.Rat and *Array.
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

// Array is a numpy array as it crossed the boundary: little-endian, C order, dtype from the allow-list. A numpy
// scalar is an Array of no dimensions.
type Array struct {
	DType string // "b1" "i1" "i2" "i4" "i8" "u1" "u2" "u4" "u8" "f2" "f4" "f8" "c8" "c16"
	Shape []int  // product × item size equals len(Data): checked by the decoder
	Data  []byte
}
