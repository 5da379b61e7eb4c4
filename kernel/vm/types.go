package vm

import (
	"go/types"
	"reflect"
	"sync"
	"unsafe"

	"github.com/goplus/reflectx"
	"golang.org/x/tools/go/types/typeutil"
)

// typeTable maps the program's types to reflect types. Types are never freed: Go has no way to.
type typeTable struct {
	mu     sync.Mutex
	known  typeutil.Map // types.Type → reflect.Type
	named  map[*types.Named]*namedType
	byType map[reflect.Type]*namedType
	todo   []*namedType // whose methods are not set yet
}

// typeOf returns the reflect type of t, which must have no type parameters.
func (m *Machine) typeOf(t types.Type) reflect.Type {
	m.types.mu.Lock()
	defer m.types.mu.Unlock()
	r := m.typeLocked(t)
	for len(m.types.todo) > 0 {
		n := m.types.todo[0]
		m.types.todo = m.types.todo[1:]
		m.setMethods(n)
	}
	return r
}

func (m *Machine) typeLocked(t types.Type) reflect.Type {
	t = types.Unalias(t)
	if r := m.types.known.At(t); r != nil {
		return r.(reflect.Type)
	}
	r := m.newType(t)
	m.types.known.Set(t, r)
	return r
}

var basicTypes = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.UntypedBool: reflect.TypeFor[bool](),
	types.Int: reflect.TypeFor[int](), types.UntypedInt: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](),
	types.Int16: reflect.TypeFor[int16](), types.Int32: reflect.TypeFor[int32](), types.UntypedRune: reflect.TypeFor[int32](),
	types.Int64: reflect.TypeFor[int64](), types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](),
	types.Uint16: reflect.TypeFor[uint16](), types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](),
	types.Uintptr: reflect.TypeFor[uintptr](), types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	types.UntypedFloat: reflect.TypeFor[float64](), types.Complex64: reflect.TypeFor[complex64](), types.Complex128: reflect.TypeFor[complex128](),
	types.UntypedComplex: reflect.TypeFor[complex128](), types.String: reflect.TypeFor[string](), types.UntypedString: reflect.TypeFor[string](),
	types.UnsafePointer: reflect.TypeFor[unsafe.Pointer](), types.UntypedNil: anyType,
}

func (m *Machine) newType(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		if r := basicTypes[t.Kind()]; r != nil {
			return r
		}
	case *types.Pointer:
		return reflect.PointerTo(m.typeLocked(t.Elem()))
	case *types.Slice:
		return reflect.SliceOf(m.typeLocked(t.Elem()))
	case *types.Array:
		return reflect.ArrayOf(int(t.Len()), m.typeLocked(t.Elem()))
	case *types.Map:
		return reflect.MapOf(m.typeLocked(t.Key()), m.typeLocked(t.Elem()))
	case *types.Chan:
		dir := []reflect.ChanDir{types.SendRecv: reflect.BothDir, types.SendOnly: reflect.SendDir, types.RecvOnly: reflect.RecvDir}
		return reflect.ChanOf(dir[t.Dir()], m.typeLocked(t.Elem()))
	case *types.Signature:
		return reflect.FuncOf(m.tupleTypes(t.Params()), m.tupleTypes(t.Results()), t.Variadic())
	case *types.Struct:
		return m.structType(t)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return anyType
		}
		return reflectx.InterfaceOf(nil, m.interfaceMethods(t))
	case *types.Tuple:
		return anyType
	case *types.Named:
		return m.namedType(t)
	}
	refuse("type %v has no form at run time", t)
	return nil
}

func (m *Machine) tupleTypes(t *types.Tuple) []reflect.Type {
	list := make([]reflect.Type, t.Len())
	for i := range list {
		list[i] = m.typeLocked(t.At(i).Type())
	}
	return list
}

func (m *Machine) structType(t *types.Struct) reflect.Type {
	fields := make([]reflect.StructField, t.NumFields())
	blanks, embeds := 0, false
	for i := range fields {
		f := t.Field(i)
		fields[i] = reflect.StructField{Name: f.Name(), Type: m.typeLocked(f.Type()), Tag: reflect.StructTag(t.Tag(i)), Anonymous: f.Embedded()}
		if !f.Exported() {
			fields[i].PkgPath = f.Pkg().Path()
		}
		embeds = embeds || f.Embedded()
		if f.Name() == "_" {
			blanks++
		}
	}
	if embeds || blanks > 1 {
		return reflectx.StructOf(fields)
	}
	return reflect.StructOf(fields)
}

func (m *Machine) interfaceMethods(t *types.Interface) []reflect.Method {
	list := make([]reflect.Method, t.NumMethods())
	for i := range list {
		f := t.Method(i)
		list[i] = reflect.Method{Name: f.Name(), Type: m.typeLocked(withoutReceiver(f.Signature()))}
		if !f.Exported() {
			list[i].PkgPath = f.Pkg().Path()
		}
	}
	return list
}

func withoutReceiver(s *types.Signature) *types.Signature {
	return types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())
}
