package session

import (
	"context"
	"runtime/pprof"
	"strconv"
	"sync"
	"unsafe"
)

// origins tells which cell a goroutine belongs to. A goroutine inherits the profiler's labels of the one that started
// it, whatever package did so: the only such thing in Go. It is safe for concurrent use; the zero value is ready.
type origins struct {
	mu     sync.Mutex
	cells  map[unsafe.Pointer]uint64 // label set → request
	marked []unsafe.Pointer          // oldest first
}

// maxOrigins is how many cells are told apart; goroutines of older ones count as the running cell's.
const maxOrigins = 1000

// mark makes the calling goroutine, and all that it starts from now on, belong to a request.
func (o *origins) mark(ctx context.Context, id uint64) {
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("cell", strconv.FormatUint(id, 10))))
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cells == nil {
		o.cells = map[unsafe.Pointer]uint64{}
	}
	if len(o.marked) == maxOrigins {
		delete(o.cells, o.marked[0])
		o.marked = o.marked[1:]
	}
	labels := goroutineLabels()
	o.cells[labels], o.marked = id, append(o.marked, labels)
}

// find returns the request that the calling goroutine belongs to, 0 if that is not known.
func (o *origins) find() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cells[goroutineLabels()]
}

// goroutineLabels returns the calling goroutine's label set. runtime/pprof can set but not read it; the run time keeps
// this name for packages like ours (go.dev/issue/67401).
//
//go:linkname goroutineLabels runtime/pprof.runtime_getProfLabel
func goroutineLabels() unsafe.Pointer
