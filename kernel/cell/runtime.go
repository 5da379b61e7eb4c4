package cell

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// stopped is the panic value that ends an interrupted cell; failed ends one with an error.
type (
	stopped struct{}
	failed  struct {
		err        error
		cell, line int
	}
)

// run is one cell under way.
type run struct {
	cell      int
	ctx       context.Context
	stop      *uint32 // read by the interpreter as a *bool
	values    []any
	line      atomic.Int32 // of the statement under way
	recovered any          // what the cell panicked with
}

// runtime is what lowered cells call. It is safe for concurrent use: goroutines of earlier cells keep calling it.
type runtimeCalls struct {
	stderr io.Writer

	mu      sync.Mutex
	runs    map[int]*run // by cell number
	current *run
	wake    chan struct{} // closed to end the sleeps of all cells
}

func newRuntime(stderr io.Writer) *runtimeCalls {
	return &runtimeCalls{stderr: stderr, runs: map[int]*run{}, wake: make(chan struct{})}
}

// begin makes a run the current one.
func (rt *runtimeCalls) begin(ctx context.Context, cell int) *run {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r := &run{cell: cell, ctx: ctx, stop: new(uint32)}
	if old := rt.runs[cell]; old != nil {
		r.stop = old.stop // the cell's earlier functions test this flag
		atomic.StoreUint32(r.stop, 0)
	}
	rt.runs[cell] = r
	rt.current = r
	return r
}

// call runs a cell's function.
func (rt *runtimeCalls) call(cell int, f func()) {
	rt.of(cell).recovered = guard(f)
}

func (rt *runtimeCalls) of(cell int) *run {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.runs[cell]
}

// stopAll sets (1) or clears (0) the flags of all cells but one, and wakes what sleeps.
func (rt *runtimeCalls) stopAll(stop uint32, but *run) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if stop == 1 {
		close(rt.wake)
	} else {
		rt.wake = make(chan struct{})
	}
	for _, r := range rt.runs {
		if r != but {
			atomic.StoreUint32(r.stop, stop)
		}
	}
}

// symbols is the package rt__ of the interpreter.
func (rt *runtimeCalls) symbols() map[string]reflect.Value {
	return map[string]reflect.Value{
		"Flag":    reflect.ValueOf(func(cell int) *bool { return (*bool)(unsafe.Pointer(rt.of(cell).stop)) }),
		"Polled":  reflect.ValueOf(func(cell int) bool { return atomic.LoadUint32(rt.of(cell).stop) != 0 }),
		"Stopped": reflect.ValueOf(func() { panic(stopped{}) }),
		"Line":    reflect.ValueOf(func(cell, line int) { rt.of(cell).line.Store(int32(line)) }),
		"Run":     reflect.ValueOf(rt.call),
		"Ctx":     reflect.ValueOf(rt.ctx),
		"SleepIn": reflect.ValueOf(rt.sleepIn),
		"Check":   reflect.ValueOf(check),
		"Result":  reflect.ValueOf(rt.result),
		"GoPanic": reflect.ValueOf(rt.goPanic),
	}
}

// ctx is the variable ctx of cells: the context of the cell that runs now.
func (rt *runtimeCalls) ctx() context.Context {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.current.ctx
}

// sleepIn returns the time.Sleep of one cell; it ends with the cell's context, or when all cells are stopped.
func (rt *runtimeCalls) sleepIn(cell int) func(time.Duration) {
	return func(d time.Duration) {
		rt.mu.Lock()
		ctx, wake := rt.runs[cell].ctx, rt.wake
		rt.mu.Unlock()
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			panic(stopped{})
		case <-wake:
			panic(stopped{})
		}
	}
}

// check fails the cell with a non-nil error.
func check(err error, cell, line int) {
	if err != nil {
		panic(failed{err, cell, line})
	}
}

func (rt *runtimeCalls) result(cell int, v any) {
	r := rt.of(cell)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r.values = append(r.values, v)
}

// goPanic shows the panic of a goroutine that a cell started; it would else end the process.
func (rt *runtimeCalls) goPanic(cell int, v any) {
	switch v := v.(type) {
	case stopped:
	case failed:
		fmt.Fprintf(rt.stderr, "error in a goroutine of %s, line %d: %v\n", cellName(v.cell), v.line, v.err)
	default:
		fmt.Fprintf(rt.stderr, "panic in a goroutine of %s: %v\n", cellName(cell), panicText(v))
	}
}

// guard runs f and returns what it panicked with.
func guard(f func()) (recovered any) {
	defer func() { recovered = recover() }()
	f()
	return nil
}
