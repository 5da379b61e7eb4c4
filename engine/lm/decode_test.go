package lm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// toy is a Backend whose logits are a hash of everything a row attends to: any wrong row, position or leftover entry
// changes the text. It favours one successor of each pair of tokens, so that texts repeat themselves.
type toy struct {
	Backend // nil: methods that Decode has no use for
	blocks  map[BlockID][]entry
	passes  int
	broken  int              // the pass from which on logits are NaN, 0: never
	onPass  func(passes int) // called before each pass
}

// entry is one cached position.
type entry struct {
	token Token
	pos   int
}

const (
	toyVocab   = 24
	toyContext = 400
)

func newToy() *toy { return &toy{blocks: map[BlockID][]entry{1: nil}} }

func (b *toy) Config() Config { return Config{Vocab: toyVocab, Context: toyContext, Width: 2} }

func (b *toy) New() BlockID {
	id := BlockID(len(b.blocks) + 1)
	b.blocks[id] = nil
	return id
}

func (b *toy) Pass(ctx context.Context, spans []Span) ([]Output, error) {
	b.passes++
	if b.onPass != nil {
		b.onPass(b.passes)
	}
	outputs := make([]Output, len(spans))
	for i, s := range spans {
		if s.At > len(b.blocks[s.Into]) {
			return nil, fmt.Errorf("%w: At %d of a block of %d", ErrBadSpan, s.At, len(b.blocks[s.Into]))
		}
		var seen []entry
		for _, segment := range s.View {
			for _, e := range b.blocks[segment.Block][:segment.Len] {
				seen = append(seen, entry{e.token, e.pos + segment.Shift})
			}
		}
		block := b.blocks[s.Into][:s.At]
		for r, token := range s.Tokens {
			block = append(block, entry{token, s.Pos + r})
			if r == len(s.Tokens)-1 || s.Want.All {
				logits := toyLogits(append(slices.Clone(seen), block...))
				if b.broken > 0 && b.passes >= b.broken {
					logits[3] = float32(math.NaN())
				}
				if s.Want.Logits {
					outputs[i].Logits = append(outputs[i].Logits, logits)
				} else {
					outputs[i].Top = append(outputs[i].Top, Rank(logits, s.Want.TopK))
				}
			}
		}
		b.blocks[s.Into] = block
	}
	return outputs, nil
}

func toyLogits(context []entry) []float32 {
	all := fnv.New64a()
	for _, e := range context {
		fmt.Fprint(all, e.token, e.pos, ";")
	}
	last := context[len(context)-1].token
	before := last
	if len(context) > 1 {
		before = context[len(context)-2].token
	}
	logits := make([]float32, toyVocab)
	for t := range logits {
		logits[t] = float32(2 * Key{Run: all.Sum64()}.Uniform(uint64(t)))
	}
	logits[(7*int(last)+3*int(before)+5)%toyVocab] += 3
	return logits
}

// toyText maps tokens to bytes, some of which are only parts of characters.
type toyText struct{}

var toyPieces = []string{
	"a", "b", " c", "\n", "é", "\xe4", "\xb8\xad", "\xf0\x9f", "\x99\x82", "\xff", "word ", "x=1", "def ", "(", ")", "0.5", "1", "2",
	"\xc3", "\xa9", "世", "🙂", "end", "<stop>",
}

func (toyText) Decode(tokens []Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(toyPieces[t])
	}
	return b.String()
}

func (toyText) Stops() []Token { return []Token{23} }

// plainly writes a stream token by token, straight from the toy's rule: the oracle of the decode loop.
func plainly(t *testing.T, s Stream, seen []entry) ([]Token, string) {
	t.Helper()
	context := slices.Clone(seen)
	for i, token := range s.Prompt.Tokens {
		context = append(context, entry{token, s.Prompt.Pos + i})
	}
	var tokens []Token
	for i := 0; ; i++ {
		token, err := s.Draw(Rank(toyLogits(context), 0), s.Uniform(uint64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if token == 23 {
			return tokens, ReasonStop
		}
		tokens = append(tokens, token)
		if s.Stop != nil && s.Stop(toyText{}.Decode(tokens)) {
			return tokens, ReasonStopped
		}
		if len(tokens) == s.MaxNew {
			return tokens, ReasonLength
		}
		pos := context[len(context)-1].pos + 1
		context = append(context, entry{token, pos})
	}
}

// toyStreams makes n streams that share a view of one block, with settings of all kinds.
func toyStreams(b *toy, seed uint64, n int, drafts bool) ([]Stream, [][]entry) {
	shared := b.New()
	for i, token := range randomText(Key{Run: seed}, 6, 20) {
		b.blocks[shared] = append(b.blocks[shared], entry{token, i})
	}
	var streams []Stream
	var views [][]entry
	for i := range n {
		key := Key{Run: seed, Swarm: uint64(i)}
		s := Stream{Key: key, Sampling: Sampling{
			Temperature: []float64{0, 0.3, 0.7, 1}[(int(seed)+i)%4], TopK: []int{0, 5, 20}[(int(seed)+2*i)%3],
			TopP: []float64{0, 0.95}[i%2], MaxNew: 30 + 10*i,
		}}
		view := View{{Block: shared, Len: 4, Shift: i}}
		s.Prompt = Span{Tokens: randomText(key, 3+i, 20), Pos: 10 + i, View: view, Into: b.New(), Want: Want{All: true, Hidden: true}}
		if i%3 == 2 {
			s.Stop = func(text string) bool { return strings.Count(text, "1") >= 3 }
		}
		if drafts {
			s.Draft = NewDrafter(randomText(key, 40, 20), toySource(key))
		}
		streams = append(streams, s)
		var seen []entry
		for _, e := range b.blocks[shared][:4] {
			seen = append(seen, entry{e.token, e.pos + i})
		}
		views = append(views, seen)
	}
	return streams, views
}

// toySource is a text that the toy likes to continue.
func toySource(key Key) []Token {
	text := randomText(key, 2, 20)
	for len(text) < 60 {
		n := len(text)
		text = append(text, Token((7*int(text[n-1])+3*int(text[n-2])+5)%toyVocab))
	}
	return text
}

func TestTextIsTheSameWithAndWithoutDrafts(t *testing.T) {
	drafted, accepted, saved := 0, 0, 0
	for seed := range uint64(60) {
		for _, d := range []Decoder{{}, {Rows: 6, RowCost: -1}, {RowCost: 0.05}} {
			for _, drafts := range []bool{false, true} {
				b := newToy()
				streams, views := toyStreams(b, seed, 1+int(seed%4), drafts)
				d.Backend, d.Text = b, toyText{}
				results, err := d.Run(t.Context(), streams)
				if err != nil {
					t.Fatal(err)
				}
				for i, got := range results {
					tokens, reason := plainly(t, streams[i], views[i])
					if !slices.Equal(got.Tokens, tokens) || got.Reason != reason {
						t.Fatalf("seed %d stream %d drafts %v: %v %q\nwant %v %q", seed, i, drafts, got.Tokens, got.Reason, tokens, reason)
					}
					if got.Text != string([]rune(toyText{}.Decode(tokens))) {
						t.Fatalf("seed %d stream %d: text %q of %v", seed, i, got.Text, tokens)
					}
					drafted, accepted = drafted+got.Drafted, accepted+got.Accepted
					saved += len(tokens) - got.Steps
					checkLeftBehind(t, b.blocks[streams[i].Prompt.Into], streams[i], tokens)
				}
			}
		}
	}
	if accepted < 500 || accepted == drafted {
		t.Errorf("%d of %d drafts were accepted: the test saw no real speculation", accepted, drafted)
	}
	t.Logf("%d of %d draft tokens accepted, %d passes saved", accepted, drafted, saved)
}

// checkLeftBehind compares a stream's block with what Run promises to leave there.
func checkLeftBehind(t *testing.T, block []entry, s Stream, tokens []Token) {
	t.Helper()
	want := append(slices.Clone(s.Prompt.Tokens), tokens...)
	if n := len(s.Prompt.Tokens) + len(tokens) - 1; n > 0 {
		want = want[:n]
	}
	for i, token := range want {
		if i >= len(block) || block[i] != (entry{token, s.Prompt.Pos + i}) {
			t.Fatalf("block %v, want tokens %v from position %d", block, want, s.Prompt.Pos)
		}
	}
}

func TestPiecesAreWholeCharactersAndMakeTheText(t *testing.T) {
	split := 0
	for seed := range uint64(40) {
		b := newToy()
		streams, _ := toyStreams(b, seed, 3, true)
		pieces := make([]string, len(streams))
		results, err := Decode(t.Context(), b, toyText{}, streams, func(i int, piece string) {
			if piece == "" || !utf8.ValidString(piece) {
				t.Errorf("seed %d: piece %q", seed, piece)
			}
			pieces[i] += piece
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if pieces[i] != r.Text {
				t.Errorf("seed %d stream %d: pieces %q, text %q", seed, i, pieces[i], r.Text)
			}
			if strings.Contains(r.Text, "中") || strings.Contains(r.Text, "🙂") {
				split++
			}
		}
	}
	if split == 0 {
		t.Error("no text joined a character from two tokens")
	}
}

func TestCancelReturnsWhatIsWritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newToy()
	b.onPass = func(n int) {
		if n == 5 {
			cancel()
		}
	}
	stream := Stream{Prompt: Span{Tokens: []Token{1, 2}, Into: 1}, Sampling: Sampling{MaxNew: 50}}
	results, err := Decode(ctx, b, toyText{}, []Stream{stream}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if len(results) != 1 || len(results[0].Tokens) != 5 || results[0].Reason != "" || results[0].Text == "" {
		t.Errorf("after five passes: %+v", results)
	}
}

func TestBrokenPassIsReported(t *testing.T) {
	b := newToy()
	b.broken = 3
	good := Stream{Prompt: Span{Tokens: []Token{1, 2}, Into: 1}, Sampling: Sampling{MaxNew: 2}}
	results, err := Decode(t.Context(), b, toyText{}, []Stream{good, {Prompt: Span{Tokens: []Token{4}, Into: b.New()}}}, nil)
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "stream 1") {
		t.Errorf("error %v", err)
	}
	if len(results) != 2 || results[0].Reason != ReasonLength || len(results[1].Tokens) != 2 {
		t.Errorf("results %+v", results)
	}
}

func TestBadStreamsAreRefusedBeforeAnyPass(t *testing.T) {
	prompt := Span{Tokens: []Token{1}, Into: 1}
	for name, c := range map[string]struct {
		stream Stream
		want   error
	}{
		"negative temperature": {Stream{Prompt: prompt, Sampling: Sampling{Temperature: -1}}, ErrBadSampling},
		"NaN temperature":      {Stream{Prompt: prompt, Sampling: Sampling{Temperature: math.NaN()}}, ErrBadSampling},
		"top-p above 1":        {Stream{Prompt: prompt, Sampling: Sampling{TopP: 1.5}}, ErrBadSampling},
		"negative top-k":       {Stream{Prompt: prompt, Sampling: Sampling{TopK: -2}}, ErrBadSampling},
		"negative length":      {Stream{Prompt: prompt, Sampling: Sampling{MaxNew: -2}}, ErrBadSampling},
		"no prompt":            {Stream{Prompt: Span{Into: 1}}, ErrBadSpan},
		"half an embedding":    {Stream{Prompt: Span{Embeds: make([]float32, 3), Into: 1}}, ErrBadSpan},
		"tokens and embedding": {Stream{Prompt: Span{Tokens: []Token{1}, Embeds: make([]float32, 2), Into: 1}}, ErrBadSpan},
		"no room":              {Stream{Prompt: Span{Tokens: []Token{1, 2}, Pos: toyContext - 1, Into: 1}}, ErrBadSpan},
	} {
		b := newToy()
		if _, err := Decode(t.Context(), b, toyText{}, []Stream{c.stream}, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v", name, err)
		}
		if b.passes > 0 {
			t.Errorf("%s: a pass ran", name)
		}
	}
}

func TestContextBoundsTheLength(t *testing.T) {
	for _, drafts := range []bool{false, true} {
		b := newToy()
		s := Stream{Prompt: Span{Tokens: []Token{1, 2, 3}, Pos: toyContext - 13, Into: 1}, Sampling: Sampling{MaxNew: 100}}
		if drafts {
			s.Draft = NewDrafter(toySource(Key{}))
		}
		results, err := Decode(t.Context(), b, toyText{}, []Stream{s}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := results[0]; len(r.Tokens) != 11 || r.Reason != ReasonLength {
			t.Errorf("with 10 positions left: %d tokens, reason %q", len(r.Tokens), r.Reason)
		}
		if last := b.blocks[1][len(b.blocks[1])-1].pos; last >= toyContext {
			t.Errorf("a row stood at position %d of a context of %d", last, toyContext)
		}
	}
}
