package cpu

import (
	"fmt"
	"unsafe"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// matrix is a weight matrix [rows × cols] in the file's own type.
type matrix struct {
	tensor       lm.Tensor
	rows, cols   int
	elems, bytes int       // of a block of the type
	floats       []float32 // the file's bytes themselves, when they can be multiplied as they are; else nil
}

// layer holds one transformer layer's weights; nil vectors are absent in the model's family.
type layer struct {
	attnNorm, ffnNorm   []float32 // [D]
	q, k, v, o          *matrix
	qBias, kBias, vBias []float32
	qNorm, kNorm        []float32 // [Dh]
	gate, up, down      *matrix
}

// weights is a model ready to be multiplied.
type weights struct {
	embedding, head *matrix // the same when tied
	norm            []float32
	layers          []layer
	bytes           int64
}

// loader collects tensors until the first error.
type loader struct {
	model *lm.Model
	bytes int64
	err   error
}

func loadWeights(m *lm.Model) (weights, error) {
	l, c := &loader{model: m}, m.Config
	w := weights{embedding: l.matrix("token_embd.weight", c.Vocab, c.Width), norm: l.vector("output_norm.weight", c.Width)}
	if w.head = w.embedding; !c.Tied {
		w.head = l.matrix("output.weight", c.Vocab, c.Width)
	}
	for i := range c.Layers {
		w.layers = append(w.layers, l.layer(fmt.Sprintf("blk.%d.", i), c))
	}
	w.bytes = l.bytes
	return w, l.err
}

func (l *loader) layer(prefix string, c lm.Config) layer {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	out := layer{
		attnNorm: l.vector(prefix+"attn_norm.weight", c.Width),
		ffnNorm:  l.vector(prefix+"ffn_norm.weight", c.Width),
		q:        l.matrix(prefix+"attn_q.weight", q, c.Width),
		k:        l.matrix(prefix+"attn_k.weight", kv, c.Width),
		v:        l.matrix(prefix+"attn_v.weight", kv, c.Width),
		o:        l.matrix(prefix+"attn_output.weight", c.Width, q),
		gate:     l.matrix(prefix+"ffn_gate.weight", c.FFN, c.Width),
		up:       l.matrix(prefix+"ffn_up.weight", c.FFN, c.Width),
		down:     l.matrix(prefix+"ffn_down.weight", c.Width, c.FFN),
	}
	if c.QKVBias {
		out.qBias, out.kBias, out.vBias = l.vector(prefix+"attn_q.bias", q), l.vector(prefix+"attn_k.bias", kv), l.vector(prefix+"attn_v.bias", kv)
	}
	if c.QKNorm {
		out.qNorm, out.kNorm = l.vector(prefix+"attn_q_norm.weight", c.HeadDim), l.vector(prefix+"attn_k_norm.weight", c.HeadDim)
	}
	return out
}

func (l *loader) tensor(name string, shape ...int) (lm.Tensor, bool) {
	if l.err != nil {
		return lm.Tensor{}, false
	}
	t, err := l.model.Tensor(name, shape...)
	l.err = err
	l.bytes += int64(len(t.Data))
	return t, err == nil
}

func (l *loader) vector(name string, n int) []float32 {
	t, ok := l.tensor(name, n)
	if !ok {
		return nil
	}
	v := make([]float32, n)
	t.Floats(v, 0, 1)
	return v
}

func (l *loader) matrix(name string, rows, cols int) *matrix {
	t, ok := l.tensor(name, rows, cols)
	if !ok {
		return nil
	}
	m := &matrix{tensor: t, rows: rows, cols: cols}
	m.elems, m.bytes = t.Type.Block()
	if t.Type == lm.F32 && cols%vec.Lanes == 0 && littleEndian && uintptr(unsafe.Pointer(&t.Data[0]))%4 == 0 {
		m.floats = unsafe.Slice((*float32)(unsafe.Pointer(&t.Data[0])), rows*cols)
	}
	return m
}

// littleEndian tells whether the file's numbers can be read in place.
var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()

// part gives rows row0 … row0+n-1, columns k … k+cols-1 as floats, each row padded with zeros to vec.Pad(cols), and
// their stride. buffer has room for n rows of vec.MaxK+vec.Lanes. The floats lie in buffer or, read-only, in the file. k is a multiple of vec.MaxK.
func (m *matrix) part(ops *vec.Ops, buffer []float32, row0, n, k, cols int) ([]float32, int) {
	if m.floats != nil {
		return m.floats[row0*m.cols+k:], m.cols
	}
	stride := vec.Pad(cols)
	if stride%vec.MaxK == 0 {
		stride += vec.Lanes // rows a whole page apart would fall into the same lines of the cache
	}
	rowBytes := m.cols / m.elems * m.bytes
	if stride == m.cols { // whole rows without padding: one run
		m.decode(ops, buffer, m.tensor.Data[row0*rowBytes:(row0+n)*rowBytes])
		return buffer, stride
	}
	for r := range n {
		at := (row0+r)*rowBytes + k/m.elems*m.bytes
		m.decode(ops, buffer[r*stride:], m.tensor.Data[at:at+cols/m.elems*m.bytes])
		clear(buffer[r*stride+cols : (r+1)*stride])
	}
	return buffer, stride
}

// decode turns whole blocks into floats.
func (m *matrix) decode(ops *vec.Ops, dst []float32, blocks []byte) {
	if !ops.Unpack(uint32(m.tensor.Type), dst, blocks, m.elems, m.bytes) {
		n := len(blocks) / m.bytes * m.elems
		lm.Tensor{Type: m.tensor.Type, Shape: []int{1, n}, Data: blocks}.Floats(dst, 0, 1)
	}
}

// row decodes one whole row into dst [cols].
func (m *matrix) row(dst []float32, row int) { m.tensor.Floats(dst, row, 1) }
