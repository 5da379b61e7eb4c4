package kernel

import (
	"slices"
	"sync"
)

// maxRemembered is how many execute requests are remembered for outputs that come after their end.
const maxRemembered = 1000

// executions are the execute requests of one session, so that outputs find the cell they belong to: also those of
// goroutines that outlive it. It is safe for concurrent use.
type executions struct {
	mu   sync.Mutex
	list []*request // ids ascend
}

// add remembers r as the running one. Its content is needed no more.
func (e *executions) add(r *request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.list) == maxRemembered {
		e.list = slices.Delete(e.list, 0, 1)
	}
	e.list = append(e.list, r)
}

// find returns the request with a session's id, or the last one if it is not known; nil before the first.
func (e *executions) find(id uint64) *request {
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ok := slices.BinarySearchFunc(e.list, id, func(r *request, id uint64) int { return int(int64(r.id) - int64(id)) })
	if !ok {
		at = len(e.list) - 1
	}
	if at < 0 {
		return nil
	}
	return e.list[at]
}

// clear forgets all: a new session counts from 1 again.
func (e *executions) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}
