package value

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func words(w ...uint64) []byte {
	var b []byte
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func TestReals(t *testing.T) {
	pair := &Array{DType: "f8", Shape: []int{2}, Data: words(math.Float64bits(1.5), math.Float64bits(math.Inf(-1)))}
	cases := []struct {
		v     Value
		shape []int
		want  []float64
	}{
		{Float(2.5), nil, []float64{2.5}},
		{Int(-7), nil, []float64{-7}},
		{&Array{DType: "f8", Shape: []int{}, Data: words(math.Float64bits(3))}, nil, []float64{3}},
		{&Array{DType: "i8", Shape: []int{2}, Data: words(1<<53, uint64(math.MaxUint64))}, []int{2}, []float64{1 << 53, -1}},
		{pair, []int{2}, []float64{1.5, math.Inf(-1)}},
		{List{pair, Tuple{Int(1), Float(2)}}, []int{2, 2}, []float64{1.5, math.Inf(-1), 1, 2}},
		{List{}, []int{0}, []float64{}},
	}
	for _, test := range cases {
		got, err := Reals("x", test.v, test.shape...)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%v as %v: %v %v, want %v", test.v, test.shape, got, err, test.want)
		}
	}
}

func TestRealsRefuses(t *testing.T) {
	cases := []struct {
		v     Value
		shape []int
		want  string
	}{
		{Bool(true), nil, "x is a boolean"},
		{Nil{}, nil, "x is None"},
		{big.NewRat(1, 2), nil, "x is a fraction"},
		{Int(1<<53 + 1), nil, "beyond 2^53"},
		{&Array{DType: "i8", Shape: []int{1}, Data: words(1<<53 + 1)}, []int{1}, "holds 9007199254740993"},
		{&Array{DType: "u8", Shape: []int{1}, Data: words(1)}, []int{1}, "an array of uint64"},
		{&Array{DType: "f8", Shape: []int{1}, Data: words(0)}, nil, "shape (1,), want ()"},
		{List{Float(1)}, nil, "a sequence of 1"},
		{List{Float(1)}, []int{2}, "has 1 entries, want (2,)"},
		{List{List{Float(1)}, List{String("2")}}, []int{2, 1}, "x[1][0] is a string"},
		{Float(1), []int{1}, "x is a float, want (1,)"},
		{Dict{}, []int{0}, "x is a dict of 0"},
	}
	for _, test := range cases {
		if _, err := Reals("x", test.v, test.shape...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v as %v: %v, want %q", test.v, test.shape, err, test.want)
		}
	}
}
