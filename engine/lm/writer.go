package lm

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// writer is one stream being written: what it has, and the rows of its next pass.
type writer struct {
	stream Stream
	room   int // most new tokens
	text   Detokenizer
	stops  []Token
	onText func(text string) // may be nil
	lookup *lookup           // nil: no drafts

	next  Span    // rows of the next pass: the prompt, then the last token and its drafts
	rows  int     // rows of next that stand for sure, before any draft
	draft []Token // the last rows of next
	found draft   // what draft was cut from

	result  Generation
	start   time.Time // when the prompt had been read
	written strings.Builder
	partial string // bytes of a character that the next token may complete
}

// newWriter checks a stream against the model's shape.
func newWriter(s Stream, config Config) (*writer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	rows, err := promptRows(s.Prompt, config.Width)
	if err != nil {
		return nil, err
	}
	w := &writer{stream: s, next: s.Prompt, rows: rows, room: s.MaxNew}
	w.next.Want = s.want()
	// The last token drawn is never passed, so there is room for one more than there are positions left.
	if end := s.Prompt.Pos + rows; config.Context > 0 {
		room := config.Context - end + 1
		if room < 1 {
			return nil, fmt.Errorf("%w: the prompt ends at position %d of a context of %d: shorten it", ErrBadSpan, end, config.Context)
		}
		if w.room == 0 || room < w.room {
			w.room = room
		}
	}
	if w.room == 0 {
		return nil, fmt.Errorf("%w: MaxNew is 0 and the model names no context to fill", ErrBadSampling)
	}
	if s.Draft != nil {
		w.lookup = &lookup{sources: s.Draft.sources, text: slices.Clone(s.Prompt.Tokens)}
	}
	return w, nil
}

// promptRows counts the rows of a prompt, which has at least one.
func promptRows(s Span, width int) (int, error) {
	switch {
	case (len(s.Tokens) == 0) == (len(s.Embeds) == 0):
		return 0, fmt.Errorf("%w: a prompt has tokens or embeddings, got %d tokens and %d embedding values", ErrBadSpan, len(s.Tokens), len(s.Embeds))
	case len(s.Tokens) > 0:
		return len(s.Tokens), nil
	case len(s.Embeds)%max(width, 1) != 0:
		return 0, fmt.Errorf("%w: %d embedding values are not rows of width %d", ErrBadSpan, len(s.Embeds), width)
	}
	return len(s.Embeds) / width, nil
}

// reading tells whether the prompt has still to be passed.
func (w *writer) reading() bool { return w.start.IsZero() }

// ended tells whether the stream is finished.
func (w *writer) ended() bool { return w.result.Reason != "" }

// propose adds the first n tokens of d to the next rows.
func (w *writer) propose(d draft, n int) {
	w.found, w.draft = d, d.tokens[:n]
	if n > 0 {
		w.next.Tokens = append(w.next.Tokens, w.draft...)
		w.next.Want.All = true
	}
}

// take draws a token from each row of a pass until one differs from its draft: a row stands only if every draft
// token before it was drawn. Then it sets the rows of the next pass.
func (w *writer) take(out Output) error {
	if w.reading() {
		w.start = time.Now()
	}
	accepted, token := 0, Token(0)
	for row := 0; row <= len(w.draft) && row == accepted && !w.ended(); row++ {
		var err error
		if token, err = w.draw(out, row); err != nil {
			return fmt.Errorf("token %d: %w", len(w.result.Tokens), err)
		}
		if row < len(w.draft) && token == w.draft[row] {
			accepted++
		}
		w.write(token)
	}
	w.account(accepted)
	if !w.ended() {
		w.advance(accepted, token)
	}
	return nil
}

// draw picks the next token from a row of the pass.
func (w *writer) draw(out Output, row int) (Token, error) {
	var ranking Ranking
	if w.next.Want.Logits {
		ranking = Rank(out.Logits[row], 0)
	} else {
		ranking = out.Top[row]
	}
	return w.stream.Draw(ranking, w.stream.Uniform(uint64(len(w.result.Tokens))))
}

// account counts the pass and lets the lookup learn from it.
func (w *writer) account(accepted int) {
	w.result.Steps++
	w.result.Drafted += len(w.draft)
	w.result.Accepted += accepted
	w.result.Took = time.Since(w.start)
	if w.lookup != nil {
		w.lookup.learn(w.found, len(w.draft), accepted)
	}
}

// advance makes the next pass a single row, token, behind the rows that stand.
func (w *writer) advance(accepted int, token Token) {
	stand := w.rows + accepted
	w.next = Span{
		Tokens: []Token{token}, Pos: w.next.Pos + stand, View: w.next.View,
		Into: w.next.Into, At: w.next.At + stand, Want: w.stream.want(),
	}
	w.rows = 1
}

// write adds a drawn token to the text and ends the stream where it must.
func (w *writer) write(token Token) {
	if slices.Contains(w.stops, token) {
		w.end(ReasonStop)
		return
	}
	w.result.Tokens = append(w.result.Tokens, token)
	if w.lookup != nil {
		w.lookup.text = append(w.lookup.text, token)
	}
	piece, partial := wholeCharacters(w.partial + w.text.Decode([]Token{token}))
	w.partial = partial
	w.emit(piece)
	switch {
	case w.stream.Stop != nil && piece != "" && w.stream.Stop(w.written.String()):
		w.end(ReasonStopped)
	case len(w.result.Tokens) == w.room:
		w.end(ReasonLength)
	}
}

// emit adds a piece to the text and hands it on.
func (w *writer) emit(piece string) {
	w.written.WriteString(piece)
	if w.onText != nil && piece != "" {
		w.onText(piece)
	}
}

// end closes the text; bytes that no token completed become U+FFFD.
func (w *writer) end(reason string) {
	w.result.Reason = reason
	w.emit(valid(w.partial))
	w.partial = ""
}

// wholeCharacters splits bytes before an unfinished last character.
func wholeCharacters(s string) (whole, partial string) {
	cut := len(s)
	for back := 1; back < utf8.UTFMax && back <= len(s); back++ {
		if utf8.RuneStart(s[len(s)-back]) {
			if !utf8.FullRuneInString(s[len(s)-back:]) {
				cut = len(s) - back
			}
			break
		}
	}
	return valid(s[:cut]), s[cut:]
}

// valid replaces each byte that is part of no character by U+FFFD: byte by byte, so that it does not matter where
// tokens cut the text.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
