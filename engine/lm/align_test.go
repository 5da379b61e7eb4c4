package lm_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"skep/engine/lm"
	"skep/engine/lm/lmtest"
)

var alignShape = lm.Config{Arch: "llama", Layers: 1, Width: 72, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 16, RopeTheta: 1e4}

// rowsOf is a tensor in float64.
func rowsOf(t *testing.T, m *lm.Model, name string) *mat.Dense {
	t.Helper()
	tensor, err := m.Tensor(name, m.Config.Vocab, m.Config.Width)
	if err != nil {
		t.Fatal(err)
	}
	floats := make([]float32, m.Config.Vocab*m.Config.Width)
	tensor.Floats(floats, 0, m.Config.Vocab)
	d := mat.NewDense(m.Config.Vocab, m.Config.Width, nil)
	for i, x := range floats {
		d.Set(i/m.Config.Width, i%m.Config.Width, float64(x))
	}
	return d
}

// TestAlign compares W with the least squares solution by QR of [O; √ρ·I] W = [I; 0], which forms no Gram matrix.
func TestAlign(t *testing.T) {
	m := lmtest.Random(t, alignShape, lm.F32)
	v, d := m.Config.Vocab, m.Config.Width
	in, out := rowsOf(t, m, "token_embd.weight"), rowsOf(t, m, "output.weight")
	for _, rho := range []float64{lm.DefaultRho, 3} {
		left, right := mat.NewDense(v+d, d, nil), mat.NewDense(v+d, d, nil)
		left.Slice(0, v, 0, d).(*mat.Dense).Copy(out)
		right.Slice(0, v, 0, d).(*mat.Dense).Copy(in)
		for i := range d {
			left.Set(v+i, i, math.Sqrt(rho))
		}
		var qr mat.QR
		var want mat.Dense
		qr.Factorize(left)
		if err := qr.SolveTo(&want, false, right); err != nil {
			t.Fatal(err)
		}
		var done []int
		a, err := lm.Align(context.Background(), m, lm.AlignOptions{Rho: rho, NoCache: true, Progress: func(n, total int) { done = append(done, n, total) }})
		if err != nil {
			t.Fatal(err)
		}
		largest := mat.Max(&want)
		for i, x := range a.W {
			if y := want.At(i/d, i%d); math.Abs(float64(x)-y) > 1e-4*largest {
				t.Fatalf("ρ = %g: W[%d][%d] = %v, want %v", rho, i/d, i%d, x, y)
			}
		}
		if !slices.Equal(done, []int{v, v}) || a.Rows != v || a.Tied || a.Rho != rho {
			t.Errorf("progress %v, alignment of %d rows, tied %v, ρ %g", done, a.Rows, a.Tied, a.Rho)
		}
		checkGamma(t, a, in, v)
	}
}

func checkGamma(t *testing.T, a *lm.Alignment, in *mat.Dense, rows int) {
	t.Helper()
	sum := 0.0
	for i := range rows {
		sum += mat.Norm(in.RowView(i), 2)
	}
	if want := sum / float64(rows); math.Abs(float64(a.Gamma)-want) > 1e-6*want {
		t.Errorf("γ = %v, want %v", a.Gamma, want)
	}
}

func TestAlignTied(t *testing.T) {
	shape := alignShape
	shape.Tied = true
	m := lmtest.Random(t, shape, lm.F32)
	dir := t.TempDir()
	a, err := lm.Align(context.Background(), m, lm.AlignOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if !a.Tied || a.W != nil {
		t.Errorf("a tied model has W of %d numbers", len(a.W))
	}
	checkGamma(t, a, rowsOf(t, m, "token_embd.weight"), m.Config.Vocab)
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("a tied model left %v in the cache", files)
	}
}

// TestAlignCache reads back what was solved, and solves again what was damaged or made otherwise.
func TestAlignCache(t *testing.T) {
	m := lmtest.Random(t, alignShape, lm.F32)
	dir := filepath.Join(t.TempDir(), "new", "align")
	solved := 0
	align := func(o lm.AlignOptions) *lm.Alignment {
		t.Helper()
		o.Dir, o.Progress = dir, func(n, total int) { solved++ }
		a, err := lm.Align(context.Background(), m, o)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := align(lm.AlignOptions{})
	second := align(lm.AlignOptions{})
	if solved != 1 || !slices.Equal(first.W, second.W) || first.Gamma != second.Gamma || first.Rows != second.Rows || first.Rho != second.Rho {
		t.Fatalf("solved %d times; the cache gives %d rows, ρ %g, γ %v", solved, second.Rows, second.Rho, second.Gamma)
	}
	if align(lm.AlignOptions{Rho: 2}); solved != 2 {
		t.Fatalf("another ρ was solved %d times", solved-1)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("cache files %v, %v", files, err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { b[len(b)-5] ^= 1; return b },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { return append([]byte("{}"), b...) },
	} {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, damage(data), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		before := solved
		if again := align(lm.AlignOptions{}); solved != before+1 || !slices.Equal(first.W, again.W) {
			t.Fatal("a damaged cache file was used")
		}
		align(lm.AlignOptions{Rho: 2})
	}
}

// TestAlignPadding leaves embedding rows without a token out, unless they are asked for.
func TestAlignPadding(t *testing.T) {
	shape := alignShape
	shape.Vocab = 300
	m := lmtest.Random(t, shape, lm.F32)
	in := rowsOf(t, m, "token_embd.weight")
	for _, padding := range []bool{false, true} {
		a, err := lm.Align(context.Background(), m, lm.AlignOptions{NoCache: true, Padding: padding})
		if err != nil {
			t.Fatal(err)
		}
		want := 259 // 256 bytes, 3 special tokens
		if padding {
			want = 300
		}
		if a.Rows != want {
			t.Errorf("padding %v: %d rows, want %d", padding, a.Rows, want)
		}
		checkGamma(t, a, in, want)
	}
}

func TestAlignStops(t *testing.T) {
	m := lmtest.Random(t, alignShape, lm.F32)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := lm.Align(ctx, m, lm.AlignOptions{NoCache: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled alignment gave %v", err)
	}
}
