package kernel

import (
	"context"
	"sync"
)

// queue holds shell requests that wait for the running one. It is safe for concurrent use.
type queue struct {
	mu    sync.Mutex
	items []*request
	ready chan struct{} // holds a token while items may be waiting
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) put(r *request) {
	q.mu.Lock()
	q.items = append(q.items, r)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take waits for the next request; false when ctx ends.
func (q *queue) take(ctx context.Context) (*request, bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			r := q.items[0]
			q.items = q.items[1:]
			q.mu.Unlock()
			return r, true
		}
		q.mu.Unlock()
		select {
		case <-q.ready:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// abort marks the execute requests that wait now: a cell before them failed.
func (q *queue) abort() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.items {
		r.aborted = r.msg.Header.MsgType == "execute_request"
	}
}
