package lm

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"testing"
)

// readGzip returns the content of a gzipped file of testdata.
func readGzip(name string) ([]byte, error) {
	f, err := os.Open("testdata/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// gunzip is readGzip for a test that cannot go on without the file.
func gunzip(t testing.TB, name string) []byte {
	t.Helper()
	data, err := readGzip(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every type decodes random blocks to the same bits as gguf-py (testdata/make_blocks.py).
func TestFloatsAgainstGGUFPy(t *testing.T) {
	data := bytes.NewBuffer(gunzip(t, "blocks.bin.gz"))
	for _, kind := range []DType{F16, BF16, Q4_0, Q4_1, Q5_0, Q8_0, Q4_K, Q5_K, Q6_K} {
		elems, size := kind.Block()
		blocks := 24
		if elems == 1 {
			blocks = 512
		}
		matrix := Tensor{Name: kind.String(), Type: kind, Shape: []int{blocks, elems}, Data: data.Next(blocks * size)}
		want := Tensor{Type: F32, Shape: []int{blocks, elems}, Data: data.Next(blocks * elems * 4)}
		got, expected := make([]float32, blocks*elems), make([]float32, blocks*elems)
		matrix.Floats(got, 0, blocks)
		want.Floats(expected, 0, blocks)
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(expected[i]) {
				t.Fatalf("%s value %d: %g (%#x), gguf-py has %g (%#x)", kind, i,
					got[i], math.Float32bits(got[i]), expected[i], math.Float32bits(expected[i]))
			}
		}
		one := make([]float32, elems)
		matrix.Floats(one, 7, 1)
		if !bytes.Equal(rawFloats(one), rawFloats(got[7*elems:8*elems])) {
			t.Errorf("%s: row 7 alone differs from row 7 among all", kind)
		}
	}
	if data.Len() != 0 {
		t.Errorf("%d golden bytes left over", data.Len())
	}
}

func rawFloats(values []float32) []byte {
	var out []byte
	for _, v := range values {
		b := math.Float32bits(v)
		out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	return out
}
