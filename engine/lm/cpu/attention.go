package cpu

import (
	"math"

	"skep/engine/lm/cpu/vec"
)

// cut is the number of keys after which the running softmax takes a maximum; cuts are counted from the start of each
// block, so they do not depend on the batch.
const cut = 16 * pageTokens

// groupRows bounds the query rows (rows × query heads of one key/value head) that go over the keys together.
const groupRows = 48

var minusInfinity = float32(math.Inf(-1))

// segment is a lm.Segment with its pages at hand.
type segment struct {
	pages []*page
	len   int
	shift int
}

// group is a few consecutive rows of one sequence in a chunk: the unit of work of attention, with one key/value head.
type group struct {
	seq   *sequence
	first int // row of the chunk
	row   int // row of the sequence
	rows  int
}

// attentionScratch holds the state of one group and head; R = rows × query heads of the key/value head.
type attentionScratch struct {
	q      []float32 // [R][Dh] rotated for the segment, scaled by 1/√Dh
	scores []float32 // [R][cut]
	out    []float32 // [R][Pad(Dh)] Σ exp(s-max)·v so far
	max    []float32 // [R]
	sum    []float32 // [R] Σ exp(s-max)
	see    []int     // [R] entries of the block in hand that the row attends to
}

func (s *attentionScratch) reset(r, dh int) {
	if len(s.max) < r {
		s.q, s.scores, s.out = make([]float32, r*dh), make([]float32, r*cut), make([]float32, r*vec.Pad(dh))
		s.max, s.sum, s.see = make([]float32, r), make([]float32, r), make([]int, r)
	}
	clear(s.out)
	clear(s.sum)
	for i := range s.max {
		s.max[i] = minusInfinity
	}
}

// attend fills acts.attended of the groups' rows, for all heads of a layer.
func (b *Backend) attend(layer int, groups []group) {
	heads := b.config.KVHeads
	b.parallel(len(groups)*heads, func(thread, i int) {
		b.attendHead(&b.scratch[thread].attention, layer, groups[i/heads], i%heads)
	})
}

// attendHead goes over the view's segments and then the sequence's own block, keeping a running softmax.
func (b *Backend) attendHead(s *attentionScratch, layer int, g group, head int) {
	dh, share := b.config.HeadDim, b.config.Heads/b.config.KVHeads
	r := g.rows * share
	s.reset(r, dh)
	own := segment{pages: g.seq.growth.pages, len: g.seq.growth.at + g.row + g.rows}
	for i := range r {
		s.see[i] = math.MaxInt
	}
	rotated := false
	shift := 0
	for n := range len(g.seq.view) + 1 {
		seg := own
		if n < len(g.seq.view) {
			seg = g.seq.view[n]
		} else {
			for i := range r {
				s.see[i] = g.seq.growth.at + g.row + i/share + 1
			}
		}
		if !rotated || seg.shift != shift {
			b.rotateQueries(s, g, head, seg.shift)
			rotated, shift = true, seg.shift
		}
		for at := 0; at < seg.len; at += cut {
			b.attendCut(s, layer, head, r, seg, at)
		}
	}
	for i := range r {
		dst := b.acts.attended.row(g.first + i/share)[(head*share+i%share)*dh:][:dh]
		for d, v := range s.out[i*vec.Pad(dh):][:dh] {
			dst[d] = v / s.sum[i]
		}
	}
}

// rotateQueries turns the group's queries to where a segment's keys were cached (R_{i-s} q · R_j k, engine/lm View).
func (b *Backend) rotateQueries(s *attentionScratch, g group, head, shift int) {
	dh, share := b.config.HeadDim, b.config.Heads/b.config.KVHeads
	scale := float32(1 / math.Sqrt(float64(dh)))
	for i := range g.rows * share {
		q := b.acts.q.row(g.first + i/share)[(head*share+i%share)*dh:]
		b.angles.rotate(s.q[i*dh:(i+1)*dh], q, g.seq.pos+g.row+i/share-shift, scale)
	}
}

// attendCut adds entries at … at+cut-1 of a segment to the running softmax of r query rows.
func (b *Backend) attendCut(s *attentionScratch, layer, head, r int, seg segment, at int) {
	dh, width := b.config.HeadDim, vec.Pad(b.config.HeadDim)
	n := min(cut, seg.len-at)
	pages := seg.pages[at/pageTokens:][:(n+pageTokens-1)/pageTokens]
	padded := len(pages) * pageTokens
	for i := range r {
		clear(s.scores[i*cut : i*cut+padded])
	}
	for p, page := range pages {
		b.ops.Panel(s.scores[p*pageTokens:], cut, s.q, dh, r, b.blocks.keys(page, layer, head), pageTokens, dh)
	}
	for i := range r {
		b.softmax(s, i, s.scores[i*cut:i*cut+padded], min(n, s.see[i]-at))
	}
	for p, page := range pages {
		values, k := b.blocks.values(page, layer, head), min(pageTokens, n-p*pageTokens)
		for c := 0; c < width; c += vec.Lanes {
			b.ops.Panel(s.out[c:], width, s.scores[p*pageTokens:], cut, r, values[c:], width, k)
		}
	}
}

// softmax turns the scores of row i into exp(s-max), of which the first see count, and rescales what came before.
func (b *Backend) softmax(s *attentionScratch, i int, scores []float32, see int) {
	if see <= 0 {
		clear(scores)
		return
	}
	for j := see; j < len(scores); j++ {
		scores[j] = minusInfinity
	}
	if m := b.ops.Max(scores); m > s.max[i] {
		correction := float32(math.Exp(float64(s.max[i]) - float64(m)))
		s.max[i] = m
		s.sum[i] *= correction
		width := vec.Pad(b.config.HeadDim)
		for d := range width {
			s.out[i*width+d] *= correction
		}
	}
	s.sum[i] += b.ops.ExpSum(scores, s.max[i])
}
