package vm

import (
	"math"
	"reflect"
	"sync"
	"unsafe"
)

// slot is one register. Integers and booleans are in n, floats as their bits; what is a pointer in memory (pointers,
// channels, maps, functions) is in p; strings are p and n, slices p, n and c (capacity). Everything else is boxed: p
// points to a copy that nobody changes.
type slot struct {
	p    unsafe.Pointer
	n, c int
}

// form is how a type is kept in a slot.
type form uint8

const (
	intForm form = iota
	floatForm
	stringForm
	pointerForm
	sliceForm
	boxForm
)

func formOf(t reflect.Type) form {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64:
		return floatForm
	case reflect.String:
		return stringForm
	case reflect.Pointer, reflect.Chan, reflect.Map, reflect.Func, reflect.UnsafePointer:
		return pointerForm
	case reflect.Slice:
		return sliceForm
	case reflect.Struct, reflect.Array, reflect.Interface, reflect.Complex64, reflect.Complex128:
		return boxForm
	}
	return intForm
}

// sliceHeader is a slice in memory.
type sliceHeader struct {
	p    unsafe.Pointer
	n, c int
}

func (s slot) float() float64  { return math.Float64frombits(uint64(s.n)) }
func (s slot) str() string     { return unsafe.String((*byte)(s.p), s.n) }
func (s slot) parts() []slot   { return *(*[]slot)(s.p) }
func floatSlot(f float64) slot { return slot{n: int(math.Float64bits(f))} }
func stringSlot(s string) slot { return slot{p: unsafe.Pointer(unsafe.StringData(s)), n: len(s)} }
func boolSlot(b bool) slot     { return slot{n: boolInt(b)} }

// tuple is the register of an instruction with several results.
func tuple(parts ...slot) slot { return slot{p: unsafe.Pointer(&parts)} }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func unsigned(k reflect.Kind) bool { return k >= reflect.Uint && k <= reflect.Uintptr }

// copyMemory copies a value of type t; both pointers must be good.
func copyMemory(t reflect.Type, dst, src unsafe.Pointer) {
	if src == nil || dst == nil {
		nilDereference()
	}
	if t.Kind() == reflect.Interface {
		*(*[2]unsafe.Pointer)(dst) = *(*[2]unsafe.Pointer)(src)
		return
	}
	reflect.NewAt(t, dst).Elem().Set(reflect.NewAt(t, src).Elem())
}

type (
	loader = func(unsafe.Pointer) slot
	storer = func(unsafe.Pointer, slot)
)

// loaders and storers hold one function per type: reflect.Type → loader, storer.
var loaders, storers sync.Map

func loaderOf(t reflect.Type) loader {
	if f, ok := loaders.Load(t); ok {
		return f.(loader)
	}
	f := newLoader(t)
	loaders.Store(t, f)
	return f
}

func storerOf(t reflect.Type) storer {
	if f, ok := storers.Load(t); ok {
		return f.(storer)
	}
	f := newStorer(t)
	storers.Store(t, f)
	return f
}

func newLoader(t reflect.Type) loader {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*uint8)(p))} }
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr, reflect.Float64:
		return func(p unsafe.Pointer) slot { return slot{n: *(*int)(p)} }
	case reflect.Int8:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*int8)(p))} }
	case reflect.Int16:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*int16)(p))} }
	case reflect.Int32:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*int32)(p))} }
	case reflect.Uint16:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*uint16)(p))} }
	case reflect.Uint32:
		return func(p unsafe.Pointer) slot { return slot{n: int(*(*uint32)(p))} }
	case reflect.Float32:
		return func(p unsafe.Pointer) slot { return floatSlot(float64(*(*float32)(p))) }
	case reflect.String:
		return func(p unsafe.Pointer) slot { return stringSlot(*(*string)(p)) }
	case reflect.Slice:
		return func(p unsafe.Pointer) slot { h := *(*sliceHeader)(p); return slot(h) }
	}
	if formOf(t) == pointerForm {
		return func(p unsafe.Pointer) slot { return slot{p: *(*unsafe.Pointer)(p)} }
	}
	return func(p unsafe.Pointer) slot {
		box := reflect.New(t).UnsafePointer()
		copyMemory(t, box, p)
		return slot{p: box}
	}
}

func newStorer(t reflect.Type) storer {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8, reflect.Int8:
		return func(p unsafe.Pointer, s slot) { *(*uint8)(p) = uint8(s.n) }
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr, reflect.Float64:
		return func(p unsafe.Pointer, s slot) { *(*int)(p) = s.n }
	case reflect.Int16, reflect.Uint16:
		return func(p unsafe.Pointer, s slot) { *(*uint16)(p) = uint16(s.n) }
	case reflect.Int32, reflect.Uint32:
		return func(p unsafe.Pointer, s slot) { *(*uint32)(p) = uint32(s.n) }
	case reflect.Float32:
		return func(p unsafe.Pointer, s slot) { *(*float32)(p) = float32(s.float()) }
	case reflect.String:
		return func(p unsafe.Pointer, s slot) { *(*string)(p) = s.str() }
	case reflect.Slice:
		return func(p unsafe.Pointer, s slot) { *(*sliceHeader)(p) = sliceHeader(s) }
	}
	if formOf(t) == pointerForm {
		return func(p unsafe.Pointer, s slot) { *(*unsafe.Pointer)(p) = s.p }
	}
	return func(p unsafe.Pointer, s slot) { copyMemory(t, p, s.p) }
}

// toValue makes the reflect value of a register of type t; a box is shared, so the value must not be changed.
func toValue(s slot, t reflect.Type) reflect.Value {
	if formOf(t) == boxForm {
		return reflect.NewAt(t, s.p).Elem()
	}
	v := reflect.New(t)
	storerOf(t)(v.UnsafePointer(), s)
	return v.Elem()
}

// fromValue makes the register of type t that holds v.
func fromValue(v reflect.Value, t reflect.Type) slot {
	box := reflect.New(t)
	box.Elem().Set(v)
	if formOf(t) == boxForm {
		return slot{p: box.UnsafePointer()}
	}
	return loaderOf(t)(box.UnsafePointer())
}

var zeros sync.Map // reflect.Type → slot, of boxed types

func zeroSlot(t reflect.Type) slot {
	if formOf(t) != boxForm {
		return slot{}
	}
	if z, ok := zeros.Load(t); ok {
		return z.(slot)
	}
	z := slot{p: reflect.New(t).UnsafePointer()}
	zeros.Store(t, z)
	return z
}

// Interfaces.

var (
	anyType   = reflect.TypeFor[any]()
	errorType = reflect.TypeFor[error]()
)

// dynamicValue is what an interface register holds; the zero Value for nil.
func dynamicValue(s slot, t reflect.Type) reflect.Value {
	if t.NumMethod() == 0 {
		return reflect.ValueOf(*(*any)(s.p))
	}
	return reflect.NewAt(t, s.p).Elem().Elem()
}

// dynamicAny is the same as an any.
func dynamicAny(s slot, t reflect.Type) any {
	if t.NumMethod() == 0 {
		return *(*any)(s.p)
	}
	if v := reflect.NewAt(t, s.p).Elem().Elem(); v.IsValid() {
		return v.Interface()
	}
	return nil
}

// interfaceSlot puts a value into an interface of type t.
func interfaceSlot(v reflect.Value, t reflect.Type) slot {
	if t == anyType && v.IsValid() {
		box := new(any)
		*box = v.Interface()
		return slot{p: unsafe.Pointer(box)}
	}
	box := reflect.New(t)
	if v.IsValid() {
		box.Elem().Set(v)
	}
	return slot{p: box.UnsafePointer()}
}
