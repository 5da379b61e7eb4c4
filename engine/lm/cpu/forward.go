package cpu

import (
	"context"
	"math"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// sequence is a span on its way through the layers.
type sequence struct {
	tokens []lm.Token
	embeds []float32 // [rows × D] when tokens is nil
	rows   int
	pos    int // of row 0
	view   []segment
	growth *growth
	want   lm.Want
	out    lm.Output
	index  int // of the span, for messages
}

// wants tells whether anything is asked of a row.
func (s *sequence) wants(row int) bool {
	asked := s.want.Hidden || s.want.Logits || s.want.TopK > 0
	return asked && (s.want.All || row == s.rows-1)
}

// activations are the buffers of one chunk of rows.
type activations struct {
	x           rows // [T, D] the residual stream
	h           rows // [T, D] normed
	q, k, v     rows // [T, Hq·Dh], [T, Hkv·Dh] twice
	attended    rows // [T, Hq·Dh]
	gate, up    rows // [T, F]
	logits      rows // [headRows, V]
	room, heads int  // rows that there is room for
}

func newRows(n, cols int) rows {
	stride := vec.Pad(cols)
	return rows{make([]float32, n*stride), stride}
}

// reserve makes room for n rows.
func (a *activations) reserve(c lm.Config, n int) {
	if n <= a.room {
		return
	}
	a.room = n
	a.x, a.h = newRows(n, c.Width), newRows(n, c.Width)
	a.q, a.attended = newRows(n, c.Heads*c.HeadDim), newRows(n, c.Heads*c.HeadDim)
	a.k, a.v = newRows(n, c.KVHeads*c.HeadDim), newRows(n, c.KVHeads*c.HeadDim)
	a.gate, a.up = newRows(n, c.FFN), newRows(n, c.FFN)
}

// forward takes all rows of the sequences through the model, some at a time, and fills the sequences' outputs.
func (b *Backend) forward(ctx context.Context, all []*sequence) error {
	for chunk := (chunk{}); chunk.next(all, b.rows, b.config); {
		if err := b.layers(ctx, chunk.groups); err != nil {
			return err
		}
		if err := b.outputs(ctx, chunk.groups); err != nil {
			return err
		}
		b.done += int64(chunk.rows)
	}
	return nil
}

// chunk cuts the rows of sequences, in order, into runs that go through the layers together.
type chunk struct {
	groups   []group
	rows     int
	seq, row int // where the next chunk starts
}

// next moves on to the next chunk of at most most rows and tells whether there is one.
func (c *chunk) next(all []*sequence, most int, config lm.Config) bool {
	c.groups, c.rows = nil, 0
	perGroup := max(1, groupRows*config.KVHeads/config.Heads)
	for c.seq < len(all) && c.rows < most {
		seq := all[c.seq]
		n := min(perGroup, seq.rows-c.row, most-c.rows)
		c.groups = append(c.groups, group{seq: seq, first: c.rows, row: c.row, rows: n})
		c.rows += n
		if c.row += n; c.row == seq.rows {
			c.seq, c.row = c.seq+1, 0
		}
	}
	return c.rows > 0
}

// layers computes the residual stream of a chunk in acts.x and writes its keys and values.
func (b *Backend) layers(ctx context.Context, groups []group) error {
	a, n := &b.acts, 0
	for _, g := range groups {
		n += g.rows
	}
	a.reserve(b.config, n)
	b.embed(groups)
	b.addAngles(groups)
	for i := range b.weights.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		w := &b.weights.layers[i]
		b.norm(a.h, a.x, n, w.attnNorm)
		b.multiply(n, term{dst: a.q, x: a.h, w: w.q, bias: w.qBias}, term{dst: a.k, x: a.h, w: w.k, bias: w.kBias}, term{dst: a.v, x: a.h, w: w.v, bias: w.vBias})
		b.store(i, groups)
		b.attend(i, groups)
		b.multiply(n, term{dst: a.x, x: a.attended, w: w.o, add: true})
		b.norm(a.h, a.x, n, w.ffnNorm)
		b.multiply(n, term{dst: a.gate, x: a.h, w: w.gate}, term{dst: a.up, x: a.h, w: w.up})
		b.perRow(n, func(r int) { b.ops.SiluMul(a.gate.row(r), a.up.row(r)) })
		b.multiply(n, term{dst: a.x, x: a.gate, w: w.down, add: true})
	}
	return nil
}

// embed fills the residual stream with the rows' inputs.
func (b *Backend) embed(groups []group) {
	for _, g := range groups {
		for i := range g.rows {
			dst := b.acts.x.row(g.first + i)[:b.config.Width]
			if g.seq.tokens != nil {
				b.weights.embedding.row(dst, int(g.seq.tokens[g.row+i]))
			} else {
				copy(dst, g.seq.embeds[(g.row+i)*b.config.Width:])
			}
		}
	}
}

// addAngles prepares every rotation that the chunk needs.
func (b *Backend) addAngles(groups []group) {
	b.angles.reset()
	for _, g := range groups {
		for i := range g.rows {
			position := g.seq.pos + g.row + i
			b.angles.add(position)
			for _, s := range g.seq.view {
				b.angles.add(position - s.shift)
			}
		}
	}
}

// perRow calls f for each of n rows, on all threads when that pays.
func (b *Backend) perRow(n int, f func(row int)) {
	if n < 8 {
		for r := range n {
			f(r)
		}
		return
	}
	const run = 8
	b.parallel((n+run-1)/run, func(_, i int) {
		for r := i * run; r < min(n, (i+1)*run); r++ {
			f(r)
		}
	})
}

// norm writes the RMS norm of n rows of x, times weight, to dst.
func (b *Backend) norm(dst, x rows, n int, weight []float32) {
	b.perRow(n, func(r int) { b.rmsNorm(dst.row(r), x.row(r), weight) })
}

// rmsNorm normalises x, which has len(weight) values and then zeros up to a multiple of vec.Lanes. dst may be x.
func (b *Backend) rmsNorm(dst, x, weight []float32) {
	mean := float64(b.ops.Dot(x, x)) / float64(len(weight))
	scale := float32(1 / math.Sqrt(mean+b.config.NormEps))
	for i, w := range weight {
		dst[i] = x[i] * scale * w
	}
}

// store finishes a chunk's queries and keys and puts keys and values in the pages. Queries are rotated by attention.
func (b *Backend) store(i int, groups []group) {
	w, a, dh := &b.weights.layers[i], &b.acts, b.config.HeadDim
	b.parallel(len(groups), func(_, n int) {
		g := groups[n]
		for r := range g.rows {
			q, k, v := a.q.row(g.first+r), a.k.row(g.first+r), a.v.row(g.first+r)
			b.headNorms(q, w.qNorm, b.config.Heads)
			b.headNorms(k, w.kNorm, b.config.KVHeads)
			entry := g.seq.growth.at + g.row + r
			page := g.seq.growth.pages[entry/pageTokens]
			for head := range b.config.KVHeads {
				key := k[head*dh : (head+1)*dh]
				b.angles.rotate(key, key, g.seq.pos+g.row+r, 1)
				b.blocks.write(page, i, head, entry%pageTokens, key, v[head*dh:(head+1)*dh])
			}
		}
	})
}

// headNorms applies Qwen3's norm to each head of x; a nil weight does nothing.
func (b *Backend) headNorms(x, weight []float32, heads int) {
	if weight == nil {
		return
	}
	dh := b.config.HeadDim
	padded := make([]float32, vec.Pad(dh))
	for head := range heads {
		copy(padded, x[head*dh:(head+1)*dh])
		b.rmsNorm(x[head*dh:], padded, weight)
	}
}
