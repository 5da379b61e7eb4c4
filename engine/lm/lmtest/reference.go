package lmtest

import (
	"fmt"
	"math"
	"testing"

	"skep/engine/lm"
)

// Reference is a second, slow forward pass in float64, written for reading: one row at a time, flat attention over
// explicit entries. It keeps keys before rotation and rotates query and key to their own absolute positions, where a
// Backend rotates the query alone by the difference.
type Reference struct {
	Config lm.Config
	t      testing.TB
	model  *lm.Model
	cache  map[string][][]float64
}

// Entry is one cached position: for each layer the key before rotation and the value, [Hkv·Dh].
type Entry struct {
	Pos          int // where it is seen
	Keys, Values [][]float64
}

// Moved returns entries seen shift positions later.
func Moved(entries []Entry, shift int) []Entry {
	var out []Entry
	for _, e := range entries {
		e.Pos += shift
		out = append(out, e)
	}
	return out
}

// NewReference reads a model's weights as they are needed.
func NewReference(t testing.TB, m *lm.Model) *Reference {
	return &Reference{Config: m.Config, t: t, model: m, cache: map[string][][]float64{}}
}

// weights is a tensor as rows; a vector is one row.
func (r *Reference) weights(name string, shape ...int) [][]float64 {
	if w, ok := r.cache[name]; ok {
		return w
	}
	tensor, err := r.model.Tensor(name, shape...)
	if err != nil {
		r.t.Fatal(err)
	}
	floats := make([]float32, tensor.Rows()*tensor.Cols())
	tensor.Floats(floats, 0, tensor.Rows())
	w := make([][]float64, tensor.Rows())
	for i := range w {
		w[i] = widen(floats[i*tensor.Cols() : (i+1)*tensor.Cols()])
	}
	r.cache[name] = w
	return w
}

// Embedding is the input of a token.
func (r *Reference) Embedding(token lm.Token) []float64 {
	return r.weights("token_embd.weight", r.Config.Vocab, r.Config.Width)[token]
}

// Row computes one row at a position that attends to the entries seen, and returns its hidden state after the final
// norm and its own entry.
func (r *Reference) Row(input []float64, pos int, seen []Entry) (hidden []float64, own Entry) {
	c := r.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	x := append([]float64(nil), input...)
	own.Pos = pos
	for l := range c.Layers {
		at := fmt.Sprintf("blk.%d.", l)
		h := r.norm(x, at+"attn_norm.weight")
		query := r.project(h, at+"attn_q", c.QKVBias, q, c.Width)
		key := r.project(h, at+"attn_k", c.QKVBias, kv, c.Width)
		value := r.project(h, at+"attn_v", c.QKVBias, kv, c.Width)
		if c.QKNorm {
			r.headNorms(query, at+"attn_q_norm.weight")
			r.headNorms(key, at+"attn_k_norm.weight")
		}
		own.Keys, own.Values = append(own.Keys, key), append(own.Values, value)
		add(x, r.project(r.attend(query, l, pos, append(append([]Entry(nil), seen...), own)), at+"attn_output", false, c.Width, q))
		h = r.norm(x, at+"ffn_norm.weight")
		gate := r.project(h, at+"ffn_gate", false, c.FFN, c.Width)
		for i, up := range r.project(h, at+"ffn_up", false, c.FFN, c.Width) {
			gate[i] *= up / (1 + math.Exp(-gate[i]))
		}
		add(x, r.project(gate, at+"ffn_down", false, c.Width, c.FFN))
	}
	return r.norm(x, "output_norm.weight"), own
}

// Logits applies the output head to a hidden state.
func (r *Reference) Logits(hidden []float64) []float64 {
	name := "output"
	if r.Config.Tied {
		name = "token_embd"
	}
	return r.project(hidden, name, false, r.Config.Vocab, r.Config.Width)
}

func (r *Reference) attend(query []float64, layer, pos int, seen []Entry) []float64 {
	c := r.Config
	out := make([]float64, len(query))
	for head := range c.Heads {
		from := head / (c.Heads / c.KVHeads) * c.HeadDim
		q := r.Rotated(query[head*c.HeadDim:][:c.HeadDim], pos)
		scores, sum := make([]float64, len(seen)), 0.0
		for i, e := range seen {
			scores[i] = math.Exp(dot(q, r.Rotated(e.Keys[layer][from:][:c.HeadDim], e.Pos)) / math.Sqrt(float64(c.HeadDim)))
			sum += scores[i]
		}
		for i, e := range seen {
			for d := range c.HeadDim {
				out[head*c.HeadDim+d] += scores[i] / sum * e.Values[layer][from+d]
			}
		}
	}
	return out
}

// Rotated is one head's query or key rotated to a position.
func (r *Reference) Rotated(v []float64, pos int) []float64 {
	c, out := r.Config, make([]float64, len(v))
	for i := range c.HeadDim / 2 {
		sin, cos := math.Sincos(float64(pos) / math.Pow(c.RopeTheta, float64(2*i)/float64(c.HeadDim)))
		a, b := i, i+c.HeadDim/2
		if c.RopeInterleaved {
			a, b = 2*i, 2*i+1
		}
		out[a], out[b] = v[a]*cos-v[b]*sin, v[a]*sin+v[b]*cos
	}
	return out
}

func (r *Reference) project(x []float64, name string, bias bool, rows, cols int) []float64 {
	out := make([]float64, rows)
	for i, row := range r.weights(name+".weight", rows, cols) {
		out[i] = dot(row, x)
	}
	if bias {
		add(out, r.weights(name+".bias", rows)[0])
	}
	return out
}

func (r *Reference) norm(x []float64, name string) []float64 {
	out := make([]float64, len(x))
	scale := 1 / math.Sqrt(dot(x, x)/float64(len(x))+r.Config.NormEps)
	for i, w := range r.weights(name, len(x))[0] {
		out[i] = x[i] * scale * w
	}
	return out
}

func (r *Reference) headNorms(x []float64, name string) {
	for dh := r.Config.HeadDim; len(x) > 0; x = x[dh:] {
		copy(x, r.norm(x[:dh], name))
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func add(dst, src []float64) {
	for i, x := range src {
		dst[i] += x
	}
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
