package vm

import (
	"errors"
	"fmt"
	"go/types"
	"reflect"
	"sync"

	"github.com/goplus/reflectx"
	_ "github.com/goplus/reflectx/icall/icall4096" // room for methods
)

// namedType is a named type of the program that no compiled package has.
type namedType struct {
	types *types.Named
	rtype reflect.Type
}

// namedType finds the compiled type of a name, or makes a type with this name. Its methods are set later, when no type
// is half made.
func (m *Machine) namedType(t *types.Named) reflect.Type {
	obj := t.Obj()
	if obj.Pkg() == nil {
		if types.Identical(t, types.Universe.Lookup("error").Type()) {
			return errorType
		}
		refuse("type %v has no form at run time", t)
	}
	path := obj.Pkg().Path()
	if m.compiled(obj.Pkg()) && t.TypeArgs().Len() == 0 && obj.Parent() == obj.Pkg().Scope() {
		if v, ok := m.symbol(path, obj.Name()); ok {
			return v.Type().Elem()
		}
		if !m.sourced(obj.Pkg()) || obj.Exported() {
			refuse("type %s.%s of a compiled package is not in the symbol tables", path, obj.Name())
		}
	}
	if it, ok := t.Underlying().(*types.Interface); ok {
		r := reflectx.NewInterfaceType(path, typeName(t))
		m.types.known.Set(t, r)
		if err := reflectx.SetInterfaceType(r, nil, m.interfaceMethods(it)); err != nil {
			refuse("interface %s: %v", t, err)
		}
		return r
	}
	r := reflectx.NamedTypeOf(path, typeName(t), m.placeholder(t.Underlying()))
	byValue, byPointer := types.NewMethodSet(t).Len(), types.NewMethodSet(types.NewPointer(t)).Len()
	if byPointer > 0 {
		r = reflectx.NewMethodSet(r, byValue, byPointer)
	}
	m.types.known.Set(t, r)
	n := &namedType{types: t, rtype: r}
	m.types.named[t], m.types.byType[r] = n, n
	m.types.todo = append(m.types.todo, n)
	switch u := t.Underlying().(type) {
	case *types.Basic, *types.Signature:
	default:
		reflectx.SetUnderlying(r, m.typeLocked(u))
	}
	return r
}

// typeName is a type's name with its arguments, as Go prints it.
func typeName(t *types.Named) string {
	name := t.Obj().Name()
	if t.TypeArgs().Len() == 0 {
		return name
	}
	name += "["
	for i := range t.TypeArgs().Len() {
		if i > 0 {
			name += ","
		}
		name += types.TypeString(t.TypeArgs().At(i), (*types.Package).Path)
	}
	return name + "]"
}

// placeholder is what a named type is made of until its fields are known, which may mention it. The struct has a string
// and a float, because SetUnderlying keeps its mark for types that are hashed as plain memory.
func (m *Machine) placeholder(underlying types.Type) reflect.Type {
	switch u := underlying.(type) {
	case *types.Struct:
		return reflect.TypeFor[struct {
			F float64
			S string
		}]()
	case *types.Slice:
		return reflect.TypeFor[[]int]()
	case *types.Map:
		return reflect.TypeFor[map[int]int]()
	case *types.Pointer:
		return reflect.TypeFor[*int]()
	case *types.Chan:
		return reflect.TypeFor[chan int]()
	case *types.Array:
		return reflect.TypeFor[[2]string]()
	default:
		return m.typeLocked(u)
	}
}

// setMethods gives a type its methods, promoted ones included.
func (m *Machine) setMethods(n *namedType) {
	byPointer, byValue := types.NewMethodSet(types.NewPointer(n.types)), types.NewMethodSet(n.types)
	if byPointer.Len() == 0 {
		return
	}
	list := make([]reflectx.Method, byPointer.Len())
	for i := range list {
		sel, pointer := byPointer.At(i), true
		f := sel.Obj().(*types.Func)
		if v := byValue.Lookup(f.Pkg(), f.Name()); v != nil {
			sel, pointer = v, false
		}
		list[i] = m.method(n, sel, pointer)
	}
	if err := reflectx.SetMethodSet(n.rtype, list, false); err != nil {
		refuse("methods of %v: %v (the room for methods of interpreted types is finite: restart the session)", n.types, err)
	}
}

// method makes one method that compiled code can call.
func (m *Machine) method(n *namedType, sel *types.Selection, pointer bool) reflectx.Method {
	f := sel.Obj().(*types.Func)
	signature := m.typeLocked(withoutReceiver(sel.Type().(*types.Signature)))
	pkg := ""
	if !f.Exported() {
		pkg = f.Pkg().Path()
	}
	receiver := n.rtype
	if pointer {
		receiver = reflect.PointerTo(receiver)
	}
	target := sync.OnceValue(func() *function { return m.function(m.program.MethodValue(sel)) })
	return reflectx.MakeMethod(f.Name(), pkg, pointer, signature, func(args []reflect.Value) []reflect.Value {
		slots := make([]slot, len(args))
		slots[0] = fromValue(args[0], receiver)
		for i := 1; i < len(args); i++ {
			slots[i] = fromValue(args[i], signature.In(i-1))
		}
		return m.callback(target(), nil, NewRun, slots, signature)
	})
}

// methodOf finds the program's method for a value of type t in an interface, nil for methods of compiled types.
func (m *Machine) methodOf(t reflect.Type, f *types.Func) *function {
	m.types.mu.Lock()
	base, pointer := t, false
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		base, pointer = t.Elem(), true
	}
	n := m.types.byType[base]
	m.types.mu.Unlock()
	if n == nil {
		return nil
	}
	var receiver types.Type = n.types
	if pointer {
		receiver = types.NewPointer(receiver)
	}
	sel := types.NewMethodSet(receiver).Lookup(f.Pkg(), f.Name())
	if sel == nil {
		return nil
	}
	return m.function(m.program.MethodValue(sel))
}

// checkNamedTypes makes a type with a method and looks at it as compiled code does.
func checkNamedTypes() error {
	t := reflectx.NewMethodSet(reflectx.NamedTypeOf("main", "check", reflect.TypeFor[struct {
		F float64
		S string
	}]()), 1, 1)
	reflectx.SetUnderlying(t, reflect.TypeFor[struct{ N int }]())
	err := reflectx.SetMethodSet(t, []reflectx.Method{reflectx.MakeMethod("String", "", false, reflect.TypeFor[func() string](), func(args []reflect.Value) []reflect.Value {
		return []reflect.Value{reflect.ValueOf(fmt.Sprint("n", args[0].Field(0).Int()))}
	})}, false)
	if err != nil {
		return fmt.Errorf("vm: types with methods: %w", err)
	}
	v := reflect.New(t).Elem()
	v.Field(0).SetInt(7)
	if got := fmt.Sprintf("%v %T", v.Interface(), v.Interface()); got != "n7 main.check" {
		return errors.New("vm: this Go run time shows a type made by reflectx as " + got + ", not as n7 main.check")
	}
	return nil
}
