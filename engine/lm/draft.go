package lm

import "slices"

// Lengths of prompt-lookup drafts. On edited code n-gram drafts go on for three to five tokens in the mean, and on a
// program that is copied for dozens.
const (
	longestMatch  = 8  // tokens of the text's end that are looked up, at most
	shortestMatch = 2  // and at least
	longestDraft  = 14 // tokens drafted at once for one stream
)

// Drafter proposes how a text goes on by finding its last few tokens in texts that it may be copying: the
// problem, the parents, and what it wrote itself. It is immutable and may serve many streams at once.
type Drafter struct {
	sources [][]Token
}

// NewDrafter looks up in sources, given oldest first; it keeps the slices. A match never runs over the end of a
// source, so text on both sides of latent positions, which have no tokens, is given as two sources.
func NewDrafter(sources ...[]Token) *Drafter {
	return &Drafter{sources: sources}
}

// lookup is one stream's use of a Drafter: the text so far and how well drafts have been doing.
type lookup struct {
	sources [][]Token
	text    []Token // prompt, then output
	odds    [longestMatch + 1]odds
}

// odds is a decaying count of drafted tokens that followed a match of one length.
type odds struct {
	hits, tries float64
}

// Memory of the odds, and what is believed before anything was drafted: a half, or worth of one token.
const (
	oddsMemory = 0.9
	priorTries = 1.0
	priorHits  = 0.5
)

func (o odds) chance() float64 { return (o.hits + priorHits) / (o.tries + priorTries) }

func (o *odds) record(hit bool) {
	o.fade()
	o.tries++
	if hit {
		o.hits++
	}
}

// fade forgets a little, so that a length of match that failed is tried again after a while.
func (o *odds) fade() {
	o.hits *= oddsMemory
	o.tries *= oddsMemory
}

// draft is a proposal for the next tokens, with the chance that each is drawn if all before it were.
type draft struct {
	tokens []Token
	match  int // length of the match it follows
}

// find proposes up to limit tokens after the longest match of the text's end, the newest of equally long ones:
// the text itself first, then the sources from last to first. A scan takes microseconds where a step takes
// milliseconds, so there is no index to keep.
func (l *lookup) find(limit int) draft {
	at, match := lastMatch(l.text, l.text)
	tokens := repeat(l.text, at, min(limit, longestDraft))
	for _, source := range slices.Backward(l.sources) {
		if match == longestMatch {
			break
		}
		if end, n := lastMatch(source, l.text); n > match {
			tokens, match = source[end:min(len(source), end+min(limit, longestDraft))], n
		}
	}
	if match < shortestMatch {
		return draft{}
	}
	return draft{tokens: tokens, match: match}
}

// lastMatch finds the longest run of tokens before some end in text, 1 ≤ end < len(text), that equals the last
// tokens of suffix; of equally long ones the last. It returns that end and the length, at most longestMatch.
func lastMatch(text, suffix []Token) (end, length int) {
	if len(suffix) == 0 {
		return 0, 0
	}
	last := suffix[len(suffix)-1]
	for e := len(text) - 1; e > length; e-- {
		if text[e-1] != last {
			continue
		}
		n := 1
		for n < longestMatch && n < e && n < len(suffix) && text[e-1-n] == suffix[len(suffix)-1-n] {
			n++
		}
		if n > length {
			end, length = e, n
		}
		if length == longestMatch {
			break
		}
	}
	return end, length
}

// repeat copies n tokens of text from at on; past its end it goes on with what it has copied, since a text that
// repeats itself with period p matches p tokens before its end.
func repeat(text []Token, at, n int) []Token {
	tokens := make([]Token, n)
	for i := range tokens {
		if at+i < len(text) {
			tokens[i] = text[at+i]
		} else {
			tokens[i] = tokens[at+i-len(text)]
		}
	}
	return tokens
}

// chance is the estimated chance that token j of d is drawn when all before it were: each accepted token makes
// the match one longer.
func (l *lookup) chance(d draft, j int) float64 {
	return l.odds[min(d.match+j, longestMatch)].chance()
}

// learn records how a draft of which drafted tokens were tried went: the first accepted of them were drawn.
func (l *lookup) learn(d draft, drafted, accepted int) {
	if drafted == 0 && len(d.tokens) > 0 {
		l.odds[d.match].fade()
	}
	for j := range min(drafted, accepted+1) {
		l.odds[min(d.match+j, longestMatch)].record(j < accepted)
	}
}

// share hands out the draft rows of one step over the streams' lookups and drafts and returns how many tokens of
// each draft to try. With rowCost c, a step of r rows takes 1+c(r-1) times as long as one of a single row; rows are
// added, likeliest first, while they raise the expected number of tokens per time, up to limit rows in all.
func share(lookups []*lookup, drafts []draft, limit int, rowCost float64) []int {
	counts := make([]int, len(drafts))
	reach := make([]float64, len(drafts)) // chance that the next token of each draft is drawn
	for i, d := range drafts {
		if len(d.tokens) > 0 {
			reach[i] = lookups[i].chance(d, 0)
		}
	}
	rows := len(drafts)
	for tokens := float64(rows); rows < limit; rows++ {
		best := argmax(reach)
		if reach[best] == 0 || reach[best]*(1+rowCost*float64(rows-1)) <= rowCost*tokens {
			break
		}
		tokens += reach[best]
		counts[best]++
		if d := drafts[best]; counts[best] < len(d.tokens) {
			reach[best] *= lookups[best].chance(d, counts[best])
		} else {
			reach[best] = 0
		}
	}
	return counts
}

// argmax is the index of the largest element, the first of equal ones.
func argmax(xs []float64) int {
	best := 0
	for i, x := range xs {
		if x > xs[best] {
			best = i
		}
	}
	return best
}
