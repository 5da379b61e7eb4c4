package engine

import (
	"context"
	"time"
)

// Sink receives progress of long work. The notebook session, the terminal and the JSON lines of skep run each
// implement it. Calls come from one goroutine at a time and must return quickly.
type Sink interface {
	Progress(Event)
}

// Event is one step of long work, enough to draw a bar per swarm.
type Event struct {
	Round int           // 0 outside a round
	Stage string        // "open", "form", "read", "reason", "filter", "transfer", "write", "tune", "evaluate", "commit", "ask"
	Swarm int           // index in the round, -1: the whole round
	Done  int           // finished units
	Total int           // units in all, 0: unknown
	Unit  string        // "levels", "steps", "characters", "edits", "programs", …
	Text  string        // what there is to read: the text written so far, an outcome, a best score
	Took  time.Duration // since the stage began
}

type sinkKey struct{}

// WithSink returns a context whose long work reports to s.
func WithSink(ctx context.Context, s Sink) context.Context {
	return context.WithValue(ctx, sinkKey{}, s)
}

// report sends e to the sink of ctx, if there is one.
func report(ctx context.Context, e Event) {
	if s, ok := ctx.Value(sinkKey{}).(Sink); ok {
		s.Progress(e)
	}
}
