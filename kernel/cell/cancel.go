package cell

import (
	"errors"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/traefik/yaegi/interp"
)

// canceller is yaegi's own way to stop a program, without EvalWithContext, which returns before the program has ended
// and leaves every closure made before it silently returning zero values. It reaches the fields that EvalWithContext
// sets (v0.16.1).
type canceller struct {
	id   *uint64        // frames of another id stop
	done *chan struct{} // ends blocked channel operations
}

func newCanceller(i *interp.Interpreter) (*canceller, error) {
	v := reflect.ValueOf(i).Elem()
	id, done, cancelChan := v.FieldByName("id"), v.FieldByName("done"), v.FieldByName("cancelChan")
	if !id.IsValid() || id.Kind() != reflect.Uint64 || !done.IsValid() || done.Type() != reflect.TypeFor[chan struct{}]() || !cancelChan.IsValid() || cancelChan.Kind() != reflect.Bool {
		return nil, errors.New("cell: this yaegi is not v0.16.1: its interpreter has other fields")
	}
	*(*bool)(unsafe.Pointer(cancelChan.UnsafeAddr())) = true // channel operations are compiled so that they can end
	return &canceller{(*uint64)(unsafe.Pointer(id.UnsafeAddr())), (*chan struct{})(unsafe.Pointer(done.UnsafeAddr()))}, nil
}

// prepare is called before a program starts.
func (c *canceller) prepare() { *c.done = make(chan struct{}) }

// stop stops what runs. restore must be called when it has ended, or is given up: it makes closures and goroutines of
// earlier programs good again.
func (c *canceller) stop() (restore func()) {
	id := atomic.AddUint64(c.id, 1)
	close(*c.done)
	return func() { atomic.StoreUint64(c.id, id-1) }
}
