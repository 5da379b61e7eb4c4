package lm

import (
	"math"
	"slices"
	"testing"
)

// naive finds the draft by trying every length and every place, newest first.
func naive(text []Token, sources [][]Token, limit int) ([]Token, int) {
	runs := append([][]Token{text}, slices.Clone(sources)...)
	slices.Reverse(runs[1:])
	for n := min(longestMatch, len(text)); n >= shortestMatch; n-- {
		suffix := text[len(text)-n:]
		for i, run := range runs {
			for end := len(run) - 1; end >= n; end-- {
				if !slices.Equal(run[end-n:end], suffix) {
					continue
				}
				tail := slices.Clone(run[end:])
				for i == 0 && len(tail) < limit { // the text repeats with this period
					tail = append(tail, tail...)
				}
				return tail[:min(len(tail), limit)], n
			}
		}
	}
	return nil, 0
}

func randomText(key Key, n, alphabet int) []Token {
	text := make([]Token, n)
	for i := range text {
		text[i] = Token(key.Uniform(uint64(i)) * float64(alphabet))
	}
	return text
}

func TestFindAgreesWithTryingEverything(t *testing.T) {
	found := map[int]int{}
	for i := range uint64(3000) {
		alphabet := 2 + int(i%9)
		text := randomText(Key{Run: i}, int(i%60), alphabet)
		sources := [][]Token{
			randomText(Key{Run: i, Swarm: 1}, int(i%90), alphabet),
			nil,
			randomText(Key{Run: i, Swarm: 2}, int(i*7%80), alphabet),
		}
		limit := int(i % 16)
		l := &lookup{sources: sources, text: text}
		want, match := naive(text, sources, min(limit, longestDraft))
		got := l.find(limit)
		if got.match != match || !slices.Equal(got.tokens, want) {
			t.Fatalf("text %v, sources %v, limit %d:\ngot %v after %d\nwant %v after %d", text, sources, limit, got.tokens, got.match, want, match)
		}
		found[match]++
	}
	for n := shortestMatch; n <= longestMatch; n++ {
		if found[n] == 0 {
			t.Errorf("no match of length %d among the cases", n)
		}
	}
}

func TestFindStopsAtTheEndOfASource(t *testing.T) {
	l := &lookup{text: []Token{9, 1, 2}, sources: [][]Token{{1, 2, 3}, {4, 5}}}
	if got := l.find(10); !slices.Equal(got.tokens, []Token{3}) {
		t.Errorf("drafted %v over the end of a source", got.tokens)
	}
	l.sources = [][]Token{{0, 1}, {2, 3, 4}} // a match would have to span the break
	if got := l.find(10); len(got.tokens) != 0 {
		t.Errorf("drafted %v from a match over a break", got.tokens)
	}
}

// bestRate tries every split of rows and returns the largest expected number of tokens per time.
func bestRate(lookups []*lookup, drafts []draft, limit int, cost float64) float64 {
	best := 0.0
	var try func(i, rows int, tokens float64)
	try = func(i, rows int, tokens float64) {
		if i == len(drafts) {
			best = max(best, tokens/(1+cost*float64(rows-1)))
			return
		}
		reach := 1.0
		try(i+1, rows, tokens)
		for j := range drafts[i].tokens {
			if reach *= lookups[i].chance(drafts[i], j); rows+j+1 > limit {
				break
			}
			tokens += reach
			try(i+1, rows+j+1, tokens)
		}
	}
	try(0, len(drafts), float64(len(drafts)))
	return best
}

func TestShareIsTheBestSplit(t *testing.T) {
	for i := range uint64(400) {
		key := Key{Run: i}
		lookups, drafts := make([]*lookup, 3), make([]draft, 3)
		for s := range lookups {
			lookups[s] = &lookup{}
			for n := range lookups[s].odds {
				tries := 10 * key.Uniform(uint64(100*s+n))
				lookups[s].odds[n] = odds{hits: tries * key.Uniform(uint64(1000+100*s+n)), tries: tries}
			}
			drafts[s] = draft{tokens: make([]Token, int(5*key.Uniform(uint64(2000+s)))), match: 2 + int(i%7)}
		}
		limit, cost := 3+int(i%10), []float64{0, 0.1, 0.3, 1}[i%4]
		counts := share(lookups, drafts, limit, cost)
		rows, tokens := 3, 3.0
		for s, n := range counts {
			rows += n
			reach := 1.0
			for j := range n {
				reach *= lookups[s].chance(drafts[s], j)
				tokens += reach
			}
		}
		if rows > limit {
			t.Fatalf("case %d: %d rows, limit %d", i, rows, limit)
		}
		got, want := tokens/(1+cost*float64(rows-1)), bestRate(lookups, drafts, limit, cost)
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf("case %d: split %v expects %v tokens per time, the best is %v", i, counts, got, want)
		}
	}
}

func TestOddsFollowWhatHappens(t *testing.T) {
	l, d := &lookup{}, draft{tokens: make([]Token, 4), match: 3}
	for range 30 {
		l.learn(d, 4, 4)
	}
	if p := l.chance(d, 0); p < 0.9 {
		t.Errorf("after 30 accepted drafts the chance is %v", p)
	}
	for range 30 {
		l.learn(d, 4, 0)
	}
	low := l.chance(d, 0)
	if low > 0.1 {
		t.Errorf("after 30 rejected drafts the chance is %v", low)
	}
	if other := (draft{tokens: d.tokens, match: 2}); l.chance(other, 0) != priorHits/priorTries {
		t.Errorf("matches of length 2 learned from longer ones: %v", l.chance(other, 0))
	}
	for range 60 {
		l.learn(d, 0, 0)
	}
	if p := l.chance(d, 0); p < 0.45 {
		t.Errorf("a draft that was not tried for long has chance %v still", p)
	}
}
