package vm

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"unsafe"
)

// ErrStopped ends a stopped execution.
var ErrStopped = errors.New("vm: the execution was stopped")

var errStackOverflow = errors.New("stack overflow: calls nest too deep (a recursion without end?)")

// stopped and fatal are panics that the program cannot recover from.
type (
	stopped struct{}
	fatal   struct{ err error }
)

// Fatal ends the execution of the program that calls the compiled function it is called in. The program's deferred calls
// run, but cannot recover. [Machine.Call] returns err.
func Fatal(err error) { panic(&fatal{err}) }

// Panic is a panic that the program did not recover from.
type Panic struct {
	Value any     // of a run-time error a runtime.Error
	Trace []Frame // outermost first, at the moment of the panic
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unwrap returns the panic's value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// failure turns what ended a thread into the error that the caller gets.
func (t *thread) failure(v any) error {
	trace := t.origin
	if trace == nil {
		trace = t.trace()
	}
	switch v := v.(type) {
	case stopped:
		return ErrStopped
	case *Unsupported:
		return v
	case *fatal:
		if v.err == errStackOverflow {
			return &Panic{v.err, trace}
		}
		return v.err
	}
	return &Panic{v, trace}
}

// runtimeError is a run-time error of the program that no fault of the machine itself raises.
type runtimeError string

func (e runtimeError) Error() string { return "runtime error: " + string(e) }
func (runtimeError) RuntimeError()   {}

// nilDereference and outOfRange panic as Go does, by doing it.
func nilDereference() {
	var p *int
	_ = *p
}

func outOfRange(i, length int) { _ = make([]struct{}, length)[i] }

// assertionError has the layout of runtime.TypeAssertionError, which nobody else can make.
type assertionError struct {
	iface, concrete, asserted unsafe.Pointer
	missing                   string
}

func typePointer(t reflect.Type) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1] }

// failedAssertion is the error of x.(T).
func failedAssertion(iface reflect.Type, v reflect.Value, asserted reflect.Type) error {
	e := &assertionError{iface: typePointer(iface), asserted: typePointer(asserted)}
	if v.IsValid() {
		e.concrete = typePointer(v.Type())
		for i := 0; asserted.Kind() == reflect.Interface && i < asserted.NumMethod(); i++ {
			if _, ok := v.Type().MethodByName(asserted.Method(i).Name); !ok {
				e.missing = asserted.Method(i).Name
				break
			}
		}
	}
	return (*runtime.TypeAssertionError)(unsafe.Pointer(e))
}

func checkAssertionLayout() {
	t := reflect.TypeFor[runtime.TypeAssertionError]()
	if t.NumField() != 4 || t.Field(3).Offset != unsafe.Offsetof(assertionError{}.missing) || t.Field(3).Type.Kind() != reflect.String {
		panic("runtime.TypeAssertionError has other fields")
	}
}
