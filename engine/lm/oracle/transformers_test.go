package oracle

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"skep/engine/lm"
	"skep/engine/lm/cpu"
)

// cases are those of dump.py in its order, each stored in one of the types that safetensors files come in.
var cases = []struct {
	name  string
	seed  uint64
	dtype string
}{
	{"llama", 1, "F32"}, {"llama-untied", 2, "BF16"}, {"qwen2", 3, "F16"}, {"qwen3", 4, "BF16"}, {"qwen3-wide", 5, "F32"},
}

// eachCase runs a test on every case: a model opened from a folder and run on the CPU, and the dump.
func eachCase(t *testing.T, test func(t *testing.T, b lm.Backend, dump map[string]array)) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, _ := open(t, writeModel(t, c.name, c.seed, c.dtype))
			test(t, b, readArrays(t, filepath.Join("testdata", "transformers", c.name, "expected.safetensors")))
		})
	}
}

func open(t *testing.T, path string) (lm.Backend, *lm.Alignment) {
	t.Helper()
	m, err := lm.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	// dump.py's models use all rows of their vocabulary, their tokenizer only the first.
	a, err := lm.Align(t.Context(), m, lm.AlignOptions{Padding: true, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := cpu.New(m, cpu.Options{Alignment: a})
	if err != nil {
		t.Fatal(err)
	}
	return b, a
}

func pass(t *testing.T, b lm.Backend, span lm.Span) lm.Output {
	t.Helper()
	outputs, err := b.Pass(t.Context(), []lm.Span{span})
	if err != nil {
		t.Fatal(err)
	}
	return outputs[0]
}

// near compares numbers with an absolute tolerance and reports the largest difference.
func near(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	worst, at := 0.0, 0
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("%s: number %d of %d is %v, want %v: %.1e apart, tolerance %.0e", what, at, len(got), got[at], want[at], worst, tolerance)
	} else {
		t.Logf("%s: at most %.1e apart, tolerance %.0e", what, worst, tolerance)
	}
}

func nearRows(t *testing.T, what string, got, want [][]float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range got {
		near(t, fmt.Sprintf("%s, row %d", what, i), got[i], want[i], tolerance)
	}
}

// nearKV compares a block with dumped keys and values of every layer.
func nearKV(t *testing.T, b lm.Backend, block lm.BlockID, dump map[string]array, prefix string) {
	t.Helper()
	kv, err := b.Snapshot(block)
	if err != nil {
		t.Fatal(err)
	}
	for layer := range b.Config().Layers {
		near(t, fmt.Sprintf("%s keys of layer %d", prefix, layer), kv.Keys[layer], dump[fmt.Sprintf("%s.k%d", prefix, layer)].floats, 1e-5)
		near(t, fmt.Sprintf("%s values of layer %d", prefix, layer), kv.Values[layer], dump[fmt.Sprintf("%s.v%d", prefix, layer)].floats, 1e-5)
	}
}

func TestForwardPass(t *testing.T) {
	eachCase(t, checkForward)
	t.Run("as save_pretrained wrote it", func(t *testing.T) {
		folder := t.TempDir()
		for _, file := range []string{"llama/config.json", "llama/model.safetensors", "tokenizer.json"} {
			data, err := os.ReadFile(filepath.Join("testdata", "transformers", file))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, filepath.Base(file)), data)
		}
		b, _ := open(t, folder)
		checkForward(t, b, readArrays(t, "testdata/transformers/llama/expected.safetensors"))
	})
}

func checkForward(t *testing.T, b lm.Backend, dump map[string]array) {
	block := b.New()
	out := pass(t, b, lm.Span{Tokens: dump["tokens"].tokens(), Into: block, Want: lm.Want{All: true, Hidden: true, Logits: true}})
	nearRows(t, "hidden", out.Hidden, dump["hidden"].rows(), 2e-5)
	for i, row := range []int{0, 1, 7, 19} { // ROWS of dump.py
		near(t, fmt.Sprintf("logits, row %d", row), out.Logits[row], dump["logits"].rows()[i], 1e-4)
	}
	nearKV(t, b, block, dump, "near")
}

// At high positions Transformers' own angles are off by up to 1e-3, since it rounds position × frequency to fp32; the
// reference is its forward pass with angles in fp64.
func TestHighPositions(t *testing.T) {
	eachCase(t, func(t *testing.T, b lm.Backend, dump map[string]array) {
		for _, pos := range []int{4095, 20000} {
			block, prefix := b.New(), fmt.Sprintf("far%d", pos)
			out := pass(t, b, lm.Span{Tokens: dump["tokens"].tokens()[:5], Pos: pos, Into: block, Want: lm.Want{All: true, Hidden: true}})
			nearRows(t, prefix+" hidden", out.Hidden, dump[prefix+".hidden"].rows(), 2e-5)
			nearKV(t, b, block, dump, prefix)
		}
	})
}

func cosine(a, b []float32) float64 {
	dot, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	return dot / math.Sqrt(aa*bb)
}

// TestLatentSteps feeds the dump's own inputs e_t (teacher forcing), then lets the backend make them itself.
func TestLatentSteps(t *testing.T) {
	eachCase(t, func(t *testing.T, b lm.Backend, dump map[string]array) {
		tokens, want := dump["tokens"].tokens(), dump["latent.hidden"].rows()
		block := b.New()
		h0 := pass(t, b, lm.Span{Tokens: tokens, Into: block, Want: lm.Want{Hidden: true}}).Hidden[0]
		free, err := b.Fork(block, len(tokens))
		if err != nil {
			t.Fatal(err)
		}
		for step, e := range dump["latent.inputs"].rows() {
			at := len(tokens) + step
			h := pass(t, b, lm.Span{Embeds: e, Pos: at, Into: block, At: at, Want: lm.Want{Hidden: true}}).Hidden[0]
			if c := cosine(h, want[step]); !(c >= 1-1e-6) {
				t.Errorf("step %d, teacher-forced: cosine 1 - %.1e", step, 1-c)
			}
		}
		thought := lm.Thought{Hidden: h0, Pos: len(tokens), Into: free, At: len(tokens)}
		steps, err := b.Latent(t.Context(), []lm.Thought{thought}, len(want), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) != 1 || len(steps[0]) != len(want) {
			t.Fatalf("%d thoughts came back, or not %d steps", len(steps), len(want))
		}
		for step, h := range steps[0] {
			if c := cosine(h, want[step]); !(c >= 1-1e-4) {
				t.Errorf("step %d, on its own: cosine 1 - %.1e", step, 1-c)
			}
		}
	})
}

// TestAlignment compares W_a and γ (Eq. 2) with a solve in fp64.
func TestAlignment(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, a := open(t, writeModel(t, c.name, c.seed, c.dtype))
			dump := readArrays(t, filepath.Join("testdata", "transformers", c.name, "expected.safetensors"))
			if gamma := dump["gamma"].floats[0]; math.Abs(float64(a.Gamma/gamma)-1) > 1e-6 {
				t.Errorf("gamma %v, want %v", a.Gamma, gamma)
			}
			want, untied := dump["alignment"]
			if a.Tied == untied {
				t.Fatalf("tied: %v", a.Tied)
			}
			if !untied {
				return
			}
			largest := 0.0
			for _, w := range want.floats {
				largest = max(largest, math.Abs(float64(w)))
			}
			near(t, "W", a.W, want.floats, 1e-4*largest)
		})
	}
}

// TestSummarizerView builds the view of Eq. 6 from blocks that stay where they were cached, and compares it with a
// concatenated cache whose keys were rotated in place.
func TestSummarizerView(t *testing.T) {
	eachCase(t, func(t *testing.T, b lm.Backend, dump map[string]array) {
		if _, ok := dump["sum.prob"]; !ok {
			return // dump.py leaves one case out
		}
		prob := read(t, b, nil, 0, dump["sum.prob"].tokens())
		shared := lm.View{prob.at(0)}
		parents := []cached{
			read(t, b, shared, prob.length, dump["sum.parent0"].tokens()),
			read(t, b, shared, prob.length, dump["sum.parent1"].tokens()),
		}
		starts := dump["sum.starts"].ints
		view := lm.View{prob.at(0)}
		for j := range 3 {
			parent := parents[j%2]
			agent := read(t, b, lm.View{prob.at(0), parent.at(parent.start)}, parent.start+parent.length, dump[fmt.Sprintf("sum.focus%d", j)].tokens())
			agent = agent.think(t, b, lm.View{prob.at(0), parent.at(parent.start)}, dump[fmt.Sprintf("sum.inputs%d", j)].floats)
			view = append(view, agent.at(int(starts[j])))
		}
		for q, parent := range parents {
			view = append(view, parent.at(int(starts[3+q])))
		}
		at, own := int(dump["sum.at"].ints[0]), b.New()
		instruction := dump["sum.instruction"].tokens()
		want := lm.Want{All: true, Hidden: true, Logits: true}
		first := pass(t, b, lm.Span{Tokens: instruction, Pos: at, View: view, Into: own, Want: want})
		hidden, logits := first.Hidden, first.Logits[len(instruction)-1:]
		for i, token := range dump["sum.writing"].tokens() {
			n := len(instruction) + i
			next := pass(t, b, lm.Span{Tokens: []lm.Token{token}, Pos: at + n, View: view, Into: own, At: n, Want: want})
			hidden, logits = append(hidden, next.Hidden...), append(logits, next.Logits...)
		}
		nearRows(t, "hidden", hidden, dump["sum.hidden"].rows(), 2e-5)
		nearRows(t, "logits", logits, dump["sum.logits"].rows(), 1e-4)
	})
}

// cached is a block and where it was cached.
type cached struct {
	block         lm.BlockID
	start, length int
}

// at sees the block from position start on.
func (c cached) at(start int) lm.Segment {
	return lm.Segment{Block: c.block, Len: c.length, Shift: start - c.start}
}

func read(t *testing.T, b lm.Backend, view lm.View, pos int, tokens []lm.Token) cached {
	t.Helper()
	c := cached{b.New(), pos, len(tokens)}
	pass(t, b, lm.Span{Tokens: tokens, Pos: pos, View: view, Into: c.block})
	return c
}

// think appends rows of embeddings one by one, as latent steps do.
func (c cached) think(t *testing.T, b lm.Backend, view lm.View, embeds []float32) cached {
	t.Helper()
	for width := b.Config().Width; len(embeds) > 0; embeds = embeds[width:] {
		pass(t, b, lm.Span{Embeds: embeds[:width], Pos: c.start + c.length, View: view, Into: c.block, At: c.length})
		c.length++
	}
	return c
}

func TestKeyedDrawsAreNumpys(t *testing.T) {
	var cases []struct {
		Run, Index, Replicate, Swarm uint64
		Words                        [4]uint64
	}
	readJSON(t, "testdata/transformers/philox.json", &cases)
	for _, c := range cases {
		got := lm.Key{Run: c.Run, Swarm: c.Swarm, Replicate: c.Replicate}.Uniform(c.Index)
		if want := math.Ldexp(float64(c.Words[0]>>11), -53); got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
}

func TestDistributionIsThatOfTheWarpers(t *testing.T) {
	var cases []struct {
		Logits, Probabilities []float64
		Temperature, P        float64
		K                     int
	}
	readJSON(t, "testdata/transformers/sampling.json", &cases)
	for i, c := range cases {
		logits := make([]float32, len(c.Logits))
		for j, x := range c.Logits {
			logits[j] = float32(x)
		}
		s := lm.Sampling{Temperature: c.Temperature, TopK: c.K, TopP: c.P}
		tokens, probs, err := s.Distribution(lm.Rank(logits, s.TopK))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(logits))
		for j, token := range tokens {
			got[token] = probs[j]
		}
		cut := logits[tokens[len(tokens)-1]] // among tokens tied here, which stay is the sort's choice in torch
		kept := 0
		for token, want := range c.Probabilities {
			if want > 0 {
				kept++
			}
			if math.Abs(got[token]-want) > 1e-12 && logits[token] != cut {
				t.Errorf("case %d: token %d has %v, want %v", i, token, got[token], want)
			}
		}
		if kept != len(tokens) {
			t.Errorf("case %d: %d tokens stay, want %d", i, len(tokens), kept)
		}
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
