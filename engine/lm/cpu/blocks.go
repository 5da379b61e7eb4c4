package cpu

import (
	"fmt"
	"math"

	"skep/engine/lm"
	"skep/engine/lm/cpu/vec"
)

// pageTokens is the number of entries of a page; it is also the number of keys that attention scores at once.
const pageTokens = vec.Lanes

// page holds pageTokens entries of all layers. For layer l and key/value head h its data has, at offset(l, h), the keys
// [Dh][pageTokens] (one entry a column, rotated to its cached position), then the values [pageTokens][Pad(Dh)].
type page struct {
	refs int // blocks that hold it, and the call in progress
	data []float32
}

// block is a run of entries on pages; pages after the first may be shared with other blocks.
type block struct {
	pages []*page
	len   int
}

// blocks owns the pages of a Backend.
type blocks struct {
	config     lm.Config
	headFloats int // of one layer and head in a page
	pageFloats int
	byID       map[lm.BlockID]*block
	last       lm.BlockID
	free       []*page
	used, peak int
	limit      int  // pages
	poison     bool // tests: fill freed pages with NaN
}

func newBlocks(c lm.Config, maxBytes int64) blocks {
	head := pageTokens * (c.HeadDim + vec.Pad(c.HeadDim))
	floats := head * c.KVHeads * c.Layers
	return blocks{
		config: c, headFloats: head, pageFloats: floats, byID: map[lm.BlockID]*block{},
		limit: int(maxBytes / int64(4*floats)),
	}
}

func (s *blocks) bytes() int64     { return int64(s.used) * int64(s.pageFloats) * 4 }
func (s *blocks) peakBytes() int64 { return int64(s.peak) * int64(s.pageFloats) * 4 }

// keys and values are one head's part of a page.
func (s *blocks) keys(p *page, layer, head int) []float32 {
	at := (layer*s.config.KVHeads + head) * s.headFloats
	return p.data[at : at+pageTokens*s.config.HeadDim]
}

func (s *blocks) values(p *page, layer, head int) []float32 {
	at := (layer*s.config.KVHeads+head)*s.headFloats + pageTokens*s.config.HeadDim
	return p.data[at : at+pageTokens*vec.Pad(s.config.HeadDim)]
}

// take returns a page held once; grow has made sure that there is one. What it holds is not read before it is written.
func (s *blocks) take() *page {
	s.used++
	s.peak = max(s.peak, s.used)
	if n := len(s.free); n > 0 {
		p := s.free[n-1]
		s.free = s.free[:n-1]
		p.refs = 1
		return p
	}
	return &page{refs: 1, data: make([]float32, s.pageFloats)}
}

func (s *blocks) drop(pages []*page) {
	for _, p := range pages {
		if p.refs--; p.refs > 0 {
			continue
		}
		s.used--
		if s.poison {
			for i := range p.data {
				p.data[i] = float32(math.NaN())
			}
		}
		s.free = append(s.free, p)
	}
}

func hold(pages []*page) []*page {
	for _, p := range pages {
		p.refs++
	}
	return append([]*page(nil), pages...)
}

func (s *blocks) find(id lm.BlockID) (*block, error) {
	if b := s.byID[id]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%w: block %d was never made or has been freed", lm.ErrNoBlock, id)
}

// growth is what a call does to one block: it keeps at entries and adds rows. Nothing shows until commit.
type growth struct {
	block    *block
	at, rows int
	pages    []*page
}

// pagesNeeded counts the pages that g takes: new ones, and a copy of the last kept one if that can't be written in
// place because it is shared or holds entries that a failed call must not lose.
func (g *growth) pagesNeeded() int {
	n := (g.at+g.rows+pageTokens-1)/pageTokens - g.at/pageTokens
	if g.inPlace() {
		n--
	}
	return n
}

// inPlace tells whether the page that takes entry at is written where it is.
func (g *growth) inPlace() bool {
	return g.at%pageTokens != 0 && g.at == g.block.len && g.block.pages[g.at/pageTokens].refs == 1
}

// grow gives every growth its pages, or none of them any (lm.ErrOutOfMemory).
func (s *blocks) grow(all []*growth) error {
	need, tokens := 0, 0
	for _, g := range all {
		need += g.pagesNeeded()
		tokens += g.rows
	}
	if free := s.limit - s.used; need > free {
		return fmt.Errorf("%w: %d more tokens need %d pages of %d tokens, %d are free of %d (%d MiB): about %d tokens fit; free blocks or raise MaxBytes",
			lm.ErrOutOfMemory, tokens, need, pageTokens, max(free, 0), s.limit, int64(s.limit)*int64(s.pageFloats)*4>>20, max(free, 0)*pageTokens)
	}
	for _, g := range all {
		inPlace := g.inPlace()
		full := g.at / pageTokens
		g.pages = hold(g.block.pages[:full])
		if g.at%pageTokens != 0 {
			last := g.block.pages[full]
			if inPlace {
				g.pages = append(g.pages, hold([]*page{last})...)
			} else {
				p := s.take()
				copy(p.data, last.data)
				g.pages = append(g.pages, p)
			}
		}
		for len(g.pages)*pageTokens < g.at+g.rows {
			g.pages = append(g.pages, s.take())
		}
	}
	return nil
}

// commit makes the growths the blocks' state; cancel forgets them.
func (s *blocks) commit(all []*growth) {
	for _, g := range all {
		g.block.pages, g.pages = g.pages, g.block.pages
		g.block.len = g.at + g.rows
	}
	s.cancel(all)
}

func (s *blocks) cancel(all []*growth) {
	for _, g := range all {
		s.drop(g.pages)
		g.pages = nil
	}
}

// New returns an empty block.
func (b *Backend) New() lm.BlockID {
	b.blocks.last++
	b.blocks.byID[b.blocks.last] = &block{}
	return b.blocks.last
}

// Fork returns a new block with the first n entries of from; their pages are shared until one of the two writes.
func (b *Backend) Fork(from lm.BlockID, n int) (lm.BlockID, error) {
	old, err := b.blocks.find(from)
	if err != nil {
		return 0, fmt.Errorf("cpu: Fork: %w", err)
	}
	if n < 0 || n > old.len {
		return 0, fmt.Errorf("cpu: Fork: %w: %d entries of block %d, which has %d", lm.ErrBadSpan, n, from, old.len)
	}
	id := b.New()
	*b.blocks.byID[id] = block{pages: hold(old.pages[:(n+pageTokens-1)/pageTokens]), len: n}
	return id, nil
}

// Free gives blocks back; ids that name no block are ignored.
func (b *Backend) Free(ids ...lm.BlockID) {
	for _, id := range ids {
		if old := b.blocks.byID[id]; old != nil {
			b.blocks.drop(old.pages)
			delete(b.blocks.byID, id)
		}
	}
}

// Snapshot copies a block's keys and values.
func (b *Backend) Snapshot(id lm.BlockID) (lm.KV, error) {
	from, err := b.blocks.find(id)
	if err != nil {
		return lm.KV{}, fmt.Errorf("cpu: Snapshot: %w", err)
	}
	c := b.config
	kv := lm.KV{Len: from.len}
	for layer := range c.Layers {
		keys, values := make([]float32, from.len*c.KVHeads*c.HeadDim), make([]float32, from.len*c.KVHeads*c.HeadDim)
		for head := range c.KVHeads {
			for entry := range from.len {
				at := (entry*c.KVHeads + head) * c.HeadDim
				b.blocks.read(from.pages[entry/pageTokens], layer, head, entry%pageTokens, keys[at:at+c.HeadDim], values[at:at+c.HeadDim])
			}
		}
		kv.Keys, kv.Values = append(kv.Keys, keys), append(kv.Values, values)
	}
	return kv, nil
}

// read copies one entry's key and value of a head out of a page.
func (s *blocks) read(p *page, layer, head, slot int, key, value []float32) {
	panel := s.keys(p, layer, head)
	for d := range key {
		key[d] = panel[d*pageTokens+slot]
	}
	copy(value, s.values(p, layer, head)[slot*vec.Pad(s.config.HeadDim):])
}

// write stores one entry's key and value of a head in a page.
func (s *blocks) write(p *page, layer, head, slot int, key, value []float32) {
	panel := s.keys(p, layer, head)
	for d, v := range key {
		panel[d*pageTokens+slot] = v
	}
	copy(s.values(p, layer, head)[slot*vec.Pad(s.config.HeadDim):], value)
}
