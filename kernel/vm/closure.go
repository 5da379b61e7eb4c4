package vm

import (
	"reflect"
	"unsafe"
)

// closure is a function value of the program: a function and the variables it captured. To compiled code, and in
// memory, it is a real func made by reflect.MakeFunc; the machine finds the closure in it by the layout that
// findClosureLayout learnt.
type closure struct {
	machine  *Machine
	function *function
	captured []slot
}

// layout is where reflect keeps what MakeFunc was given.
var layout struct {
	stub   uintptr // code of every func made by MakeFunc
	enter  uintptr // code of the functions that trampoline returns
	offset uintptr // of the function given to MakeFunc, in the func
}

//go:noinline
func trampoline(c *closure) func([]reflect.Value) []reflect.Value {
	return func(args []reflect.Value) []reflect.Value { return c.callFromGo(args) }
}

// funcPointer is the pointer that a func variable holds.
func funcPointer(v reflect.Value) unsafe.Pointer {
	box := reflect.New(v.Type())
	box.Elem().Set(v)
	return *(*unsafe.Pointer)(box.UnsafePointer())
}

func findClosureLayout() {
	enter := trampoline(&closure{})
	code := *(*unsafe.Pointer)(unsafe.Pointer(&enter))
	made := funcPointer(reflect.MakeFunc(reflect.TypeFor[func()](), enter))
	layout.stub, layout.enter = *(*uintptr)(made), *(*uintptr)(code)
	for offset := uintptr(8); offset < 80; offset += 8 {
		if *(*unsafe.Pointer)(unsafe.Add(made, offset)) == code {
			layout.offset = offset
			return
		}
	}
	panic("reflect.MakeFunc keeps its function elsewhere")
}

// closureIn returns the closure of a func value, nil if the function is compiled. A nil func panics as calling one does.
func closureIn(p unsafe.Pointer) *closure {
	if p == nil {
		nilDereference()
	}
	if *(*uintptr)(p) != layout.stub {
		return nil
	}
	inner := *(*unsafe.Pointer)(unsafe.Add(p, layout.offset))
	if *(*uintptr)(inner) != layout.enter {
		return nil
	}
	return *(**closure)(unsafe.Add(inner, 8))
}

// newClosure makes a func value.
func (m *Machine) newClosure(f *function, captured []slot) slot {
	c := &closure{m, f, captured}
	return slot{p: funcPointer(reflect.MakeFunc(m.funcType(f), trampoline(c)))}
}

func (m *Machine) funcType(f *function) reflect.Type {
	m.mu.Lock()
	t := f.rtype
	m.mu.Unlock()
	if t == nil {
		t = m.typeOf(withoutReceiver(f.ssa.Signature))
		m.mu.Lock()
		f.rtype = t
		m.mu.Unlock()
	}
	return t
}

// funcValue is the value of a named function: the same one each time.
func (m *Machine) funcValue(f *function) slot {
	m.mu.Lock()
	v, ok := m.values[f]
	m.mu.Unlock()
	if ok {
		return v
	}
	v = m.newClosure(f, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.values[f]; ok {
		return old
	}
	m.values[f] = v
	return v
}

func (c *closure) callFromGo(args []reflect.Value) []reflect.Value {
	t := c.machine.funcType(c.function)
	slots := make([]slot, len(args))
	for i, a := range args {
		slots[i] = fromValue(a, t.In(i))
	}
	return c.machine.callback(c.function, c.captured, NewRun, slots, t)
}

// callback runs a function that compiled code calls: on the thread of this goroutine, else on a new one.
func (m *Machine) callback(f *function, captured []slot, run func() *Run, args []slot, signature reflect.Type) []reflect.Value {
	t, leave := m.resume(run)
	defer leave()
	t.weight += callbackDepth
	result := m.call(t, f, args, captured, nil)
	switch signature.NumOut() {
	case 0:
		return nil
	case 1:
		return []reflect.Value{toValue(result, signature.Out(0))}
	}
	values := make([]reflect.Value, signature.NumOut())
	for i, s := range result.parts() {
		values[i] = toValue(s, signature.Out(i))
	}
	return values
}

// resume returns this goroutine's thread for a callback. Only a normal return takes its frames off: in a panic the trace
// needs them.
func (m *Machine) resume(run func() *Run) (*thread, func()) {
	if t, ok := m.threads.Load(goroutine()); ok {
		t := t.(*thread)
		weight := t.weight
		return t, func() { t.weight = weight }
	}
	return m.enter(run())
}
