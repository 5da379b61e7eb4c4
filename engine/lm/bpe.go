package lm

import (
	"container/heap"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Byte-level byte-pair encoding: a word starts as its bytes, one token each, and the adjacent pair of the best rank is
// merged until no pair has a rank.

// bpe holds the vocabulary and the merges. Read-only once built.
type bpe struct {
	pieces []string         // the bytes of each token; "" of a token that stands for no text
	ids    map[string]Token // of ordinary tokens, by bytes
	merges map[pair]merge
	bytes  [256]Token // the token of each byte; noToken where the vocabulary has none
	unk    Token      // stands for a byte without a token; noToken: such a byte is left out, as Hugging Face does
	whole  bool       // a word that is itself a token is not merged up from bytes (ignore_merges)
}

const noToken Token = -1

type pair struct{ left, right Token }

type merge struct {
	rank int
	into Token
}

// newBPE builds the encoder. words[i] is token i in the byte alphabet, "" for none; each merge is two words with a
// space between them, best first.
func newBPE(words []string, merges []string) (*bpe, error) {
	b := &bpe{pieces: make([]string, len(words)), ids: make(map[string]Token, len(words)), unk: noToken}
	byWord := make(map[string]Token, len(words))
	for i, word := range words {
		if word == "" {
			continue
		}
		piece, ok := bytesOf(word)
		if !ok {
			return nil, fmt.Errorf("%w: token %d, %q, is not written in the byte alphabet", ErrModel, i, word)
		}
		b.pieces[i] = piece
		b.ids[piece], byWord[word] = Token(i), Token(i)
	}
	for i := range b.bytes {
		b.bytes[i] = noToken
		if token, ok := b.ids[string([]byte{byte(i)})]; ok {
			b.bytes[i] = token
		}
	}
	b.merges = make(map[pair]merge, len(merges))
	for rank, line := range merges {
		left, right, _ := strings.Cut(line, " ")
		l, okL := byWord[left]
		r, okR := byWord[right]
		into, ok := byWord[left+right]
		if !okL || !okR || !ok {
			return nil, fmt.Errorf("%w: merge %d, %q, names a token that the vocabulary lacks", ErrModel, rank, line)
		}
		b.merges[pair{l, r}] = merge{rank, into}
	}
	return b, nil
}

// encode appends the tokens of one word to out.
func (b *bpe) encode(out []Token, word string) []Token {
	if token, ok := b.ids[word]; ok && (b.whole || len(word) == 1) {
		return append(out, token)
	}
	w := merging{bpe: b, symbols: make([]symbol, 0, len(word))}
	for i := range len(word) {
		token := b.bytes[word[i]]
		if token == noToken {
			token = b.unk
		}
		if token != noToken {
			n := len(w.symbols)
			w.symbols = append(w.symbols, symbol{token, n - 1, n + 1})
		}
	}
	w.run()
	for i := 0; i < len(w.symbols); i = w.symbols[i].next {
		out = append(out, w.symbols[i].token)
	}
	return out
}

// merging is the state of one word: a linked list of symbols and a heap of the pairs that could merge.
type merging struct {
	*bpe
	symbols []symbol
	queue   candidates
}

type symbol struct {
	token      Token // noToken once merged into its left neighbour
	prev, next int   // -1 and len(symbols) at the ends
}

type candidate struct {
	merge
	at int // the left symbol
}

func (w *merging) run() {
	for i := range w.symbols {
		w.consider(i)
	}
	for len(w.queue) > 0 {
		best := heap.Pop(&w.queue).(candidate)
		left := &w.symbols[best.at]
		if left.token == noToken || left.next == len(w.symbols) {
			continue
		}
		right := &w.symbols[left.next]
		if w.merges[pair{left.token, right.token}].into != best.into || !w.mergeable(best.at) {
			continue // one of the two has been merged with another since
		}
		left.token, right.token = best.into, noToken
		left.next = right.next
		if left.next < len(w.symbols) {
			w.symbols[left.next].prev = best.at
		}
		w.consider(left.prev)
		w.consider(best.at)
	}
}

func (w *merging) mergeable(i int) bool {
	_, ok := w.merges[pair{w.symbols[i].token, w.symbols[w.symbols[i].next].token}]
	return ok
}

// consider queues the pair whose left symbol is i, if there is such a pair and it has a rank.
func (w *merging) consider(i int) {
	if i < 0 || w.symbols[i].next >= len(w.symbols) {
		return
	}
	if m, ok := w.merges[pair{w.symbols[i].token, w.symbols[w.symbols[i].next].token}]; ok {
		heap.Push(&w.queue, candidate{m, i})
	}
}

// candidates is a heap: best rank first, then leftmost.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// runeBytes is the byte alphabet of GPT-2: printable bytes of Latin-1 stand for themselves, the other 68 for U+0100 on.
var runeBytes = func() map[rune]byte {
	alphabet := make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		switch {
		case '!' <= b && b <= '~', 0xa1 <= b && b <= 0xac, 0xae <= b:
			alphabet[rune(b)] = byte(b)
		default:
			alphabet[next] = byte(b)
			next++
		}
	}
	return alphabet
}()

// bytesOf turns a word of the byte alphabet into the bytes it stands for; false when it holds another character.
func bytesOf(word string) (string, bool) {
	out := make([]byte, 0, utf8.RuneCountInString(word))
	for _, r := range word {
		b, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}
