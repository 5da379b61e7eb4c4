package lm

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Detokenizer turns tokens into text and knows which of them end a text. *Tokenizer is one. Decode of a run of
// tokens must be the concatenation, byte for byte, of Decode of its parts.
type Detokenizer interface {
	Decode(tokens []Token) string
	Stops() []Token
}

// Stream is one text to write.
type Stream struct {
	// Prompt is passed first, into Prompt.Into; its Want is ignored. Decode appends what it writes to the same block.
	Prompt Span
	Sampling
	Key
	Draft *Drafter // nil: no drafts. Drafts change the time it takes, never the text.
}

// Generation is what a stream wrote.
type Generation struct {
	Tokens   []Token       // without the stop token
	Text     string        // valid UTF-8: each byte that is part of no character becomes U+FFFD
	Reason   string        // why it ended: ReasonStop, ReasonLength, ReasonStopped, or "" when Decode was cut short
	Steps    int           // passes it took part in, the prompt's included
	Drafted  int           // draft tokens tried
	Accepted int           // draft tokens that were drawn
	Took     time.Duration // from the end of the prompts' pass to its last token
}

// Why a stream ended.
const (
	ReasonStop    = "stop"    // it drew a stop token
	ReasonLength  = "length"  // it reached MaxNew tokens or the end of the model's context
	ReasonStopped = "stopped" // its Stop function said so
)

// Decoder writes texts with one model. Its fields are set before Run and not changed during it.
type Decoder struct {
	Backend Backend
	Text    Detokenizer
	OnText  func(stream int, text string) // called on Run's goroutine with each piece of whole characters; may be nil

	// Rows bounds the rows of one pass, drafts included, once the prompts are read; 0 means DefaultRows. Every
	// stream has at least one row whatever it says.
	Rows int
	// RowCost is the time of one more row as a share of a one-row pass; it decides how many drafts are worth
	// trying. 0 means DefaultRowCost; a negative value means free, as below a GPU's roofline.
	RowCost float64
}

// Defaults of Decoder.
const (
	DefaultRows    = 128  // about where an H200's products stop being bound by memory: 788 TFLOP/s over 4.3 TB/s
	DefaultRowCost = 0.17 // engine/lm/cpu on two cores with AVX-512, both small models: 16 rows take 3.5 times as long as one
)

// Decode writes all streams together with the default Decoder.
func Decode(ctx context.Context, b Backend, text Detokenizer, streams []Stream, onText func(stream int, text string)) ([]Generation, error) {
	return Decoder{Backend: b, Text: text, OnText: onText}.Run(ctx, streams)
}

// Run writes all streams together, each until it ends; the i-th result is that of the i-th stream. Each text is
// what its stream gives alone, with or without drafts, whatever runs beside it.
//
// A stream's block then holds the prompt and its tokens, the last one maybe not, and maybe rejected drafts behind: to
// go on from token i, pass it again with At = Prompt.At + prompt rows + i. When ctx ends or a pass fails, Run returns what was written
// so far with the error; unfinished streams have no Reason. Bad settings (ErrBadSampling, ErrBadSpan) are
// reported before anything is computed, ErrNotFinite when a pass gives NaN.
func (d Decoder) Run(ctx context.Context, streams []Stream) ([]Generation, error) {
	writers, err := d.begin(streams)
	if err != nil {
		return nil, err
	}
	live := slices.Clone(writers)
	for len(live) > 0 {
		if err := ctx.Err(); err != nil {
			return generations(writers), fmt.Errorf("lm: decode: %w", err)
		}
		outputs, err := d.Backend.Pass(ctx, d.spans(live))
		if err != nil {
			return generations(writers), fmt.Errorf("lm: decode: %w", err)
		}
		for i, w := range live {
			if err := w.take(outputs[i]); err != nil {
				return generations(writers), fmt.Errorf("lm: decode: stream %d: %w", slices.Index(writers, w), err)
			}
		}
		live = slices.DeleteFunc(live, (*writer).ended)
	}
	return generations(writers), nil
}

// generations collects what the writers have so far.
func generations(writers []*writer) []Generation {
	result := make([]Generation, len(writers))
	for i, w := range writers {
		result[i] = w.result
		result[i].Text = w.written.String()
	}
	return result
}

// begin checks the streams and makes their writers.
func (d Decoder) begin(streams []Stream) ([]*writer, error) {
	writers := make([]*writer, len(streams))
	for i, s := range streams {
		w, err := newWriter(s, d.Backend.Config())
		if err != nil {
			return nil, fmt.Errorf("lm: decode: stream %d: %w", i, err)
		}
		w.text, w.stops = d.Text, d.Text.Stops()
		if d.OnText != nil {
			w.onText = func(text string) { d.OnText(i, text) }
		}
		writers[i] = w
	}
	return writers, nil
}

// spans is the next pass: each live stream's next rows, with the drafts that are worth trying.
func (d Decoder) spans(live []*writer) []Span {
	drafts := make([]draft, len(live))
	lookups := make([]*lookup, len(live))
	for i, w := range live {
		lookups[i] = w.lookup
		if w.lookup != nil && !w.reading() {
			drafts[i] = w.lookup.find(w.room - len(w.result.Tokens) - 1)
		}
	}
	counts := share(lookups, drafts, d.rowLimit(), d.rowCost())
	spans := make([]Span, len(live))
	for i, w := range live {
		w.propose(drafts[i], counts[i])
		spans[i] = w.next
	}
	return spans
}

func (d Decoder) rowLimit() int {
	if d.Rows == 0 {
		return DefaultRows
	}
	return d.Rows
}

func (d Decoder) rowCost() float64 {
	if d.RowCost == 0 {
		return DefaultRowCost
	}
	return max(d.RowCost, 0)
}
