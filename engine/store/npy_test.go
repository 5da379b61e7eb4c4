package store

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sevenths(n int) []float32 {
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)/7 - 1
	}
	return data
}

// The committed files are numpy's: what we write must be the same bytes, and read as the same numbers.
func TestNPYEqualsNumpy(t *testing.T) {
	halves := sevenths(24)
	for i, x := range halves {
		halves[i] = fromHalf(toHalf(x))
	}
	for _, c := range []struct {
		file, dtype string
		shape       []int
		data, read  []float32
	}{
		{"means.npy", singleFloat, []int{3, 4}, sevenths(12), sevenths(12)},
		{"margins.npy", singleFloat, []int{3}, []float32{0.5, float32(math.Inf(1)), float32(math.Copysign(0, -1))}, nil},
		{"trajectories.npy", halfFloat, []int{2, 3, 4}, sevenths(24), halves},
		{"scalar.npy", singleFloat, nil, []float32{3.25}, nil},
		{"empty.npy", halfFloat, []int{0, 5}, []float32{}, nil},
	} {
		want := golden(t, c.file)
		var b bytes.Buffer
		if err := writeNPY(&b, c.dtype, c.shape, c.data); err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s: %v\ngot  %q\nwant %q", c.file, err, b.Bytes(), want)
		}
		if c.read == nil {
			c.read = c.data
		}
		shape, data, err := readNPY(bytes.NewReader(want), int64(len(want)))
		if err != nil || !reflect.DeepEqual(shape, c.shape) || !reflect.DeepEqual(data, c.read) {
			t.Errorf("%s read as %v %v, %v", c.file, shape, data, err)
		}
	}
}

func TestHalfEqualsNumpy(t *testing.T) {
	in, out := golden(t, "half_single.npy"), golden(t, "half_rounded.npy")
	_, singles, err := readNPY(bytes.NewReader(in), int64(len(in)))
	if err != nil || len(singles) < 10_000 {
		t.Fatal(len(singles), err)
	}
	var b bytes.Buffer
	if err := writeNPY(&b, halfFloat, []int{len(singles)}, singles); err != nil {
		t.Fatal(err)
	}
	if got := b.Bytes(); !bytes.Equal(got, out) {
		for i, x := range singles {
			at := len(out) - 2*len(singles) + 2*i
			if !bytes.Equal(got[at:at+2], out[at:at+2]) {
				t.Fatalf("%g (%#x) becomes % x, numpy's is % x", x, math.Float32bits(x), got[at:at+2], out[at:at+2])
			}
		}
	}
}

// Every float16 is a float32, and comes back as itself. The value is checked with the formula of IEEE 754.
func TestEveryHalf(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		x := fromHalf(h)
		exp, frac := int(h>>10&31), float64(h&1023)
		want := math.Ldexp(1+frac/1024, exp-15)
		if exp == 0 {
			want = math.Ldexp(frac/1024, -14)
		}
		if exp == 31 {
			want = math.Inf(1)
		}
		if h>>15 == 1 {
			want = -want
		}
		nan := exp == 31 && frac != 0
		if nan != math.IsNaN(float64(x)) || !nan && (float64(x) != want || math.Signbit(float64(x)) != (h>>15 == 1)) {
			t.Fatalf("%#x is %g, want %g", h, x, want)
		}
		if back := toHalf(x); back != h {
			t.Fatalf("%#x comes back as %#x", h, back)
		}
	}
	if h := toHalf(math.Float32frombits(0x7f800001)); h&0x3ff == 0 {
		t.Errorf("a NaN became %#x", h)
	}
}

// Whatever the bytes, the reader answers or refuses, and never reserves more than the file holds.
func FuzzReadNPY(f *testing.F) {
	for _, name := range []string{"means.npy", "margins.npy", "trajectories.npy", "scalar.npy", "empty.npy"} {
		f.Add(golden(f, name))
	}
	for _, shape := range []string{"(9223372036854775807, 4)", "(4611686018427387904, 4)", "(-1,)", "(0, 9223372036854775807)", "(1e3,)", "(3, 4,,)"} {
		f.Add(bytes.Replace(golden(f, "means.npy"), []byte("(3, 4)"), []byte(shape), 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		shape, data, err := readNPY(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		if n != len(data) || 2*n > len(b) {
			t.Errorf("%d bytes read as shape %v with %d numbers", len(b), shape, len(data))
		}
	})
}
