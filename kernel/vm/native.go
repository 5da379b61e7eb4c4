package vm

import (
	"reflect"

	"golang.org/x/tools/go/ssa"
)

// nativeOf finds the compiled code for a function: none (nil) for the program's own functions.
func (m *Machine) nativeOf(s *ssa.Function) func(*thread, []slot) slot {
	if f := m.intrinsic(s); f != nil {
		return f
	}
	obj := s.Object()
	if obj == nil && s.Name() == "init" && s.Pkg != nil && m.compiled(s.Pkg.Pkg) {
		return func(*thread, []slot) slot { return slot{} } // the compiled package is initialised
	}
	if obj == nil || s.Blocks != nil && s.Synthetic != "" || s.Origin() != nil {
		return nil
	}
	if obj.Pkg() == nil || !m.compiled(obj.Pkg()) {
		return m.compiledMethod(s)
	}
	path := obj.Pkg().Path()
	if local := m.options.Local[path+"."+s.Name()]; local != nil && s.Signature.Recv() == nil {
		return func(t *thread, args []slot) slot {
			result := callCompiled(local(t.run), args)
			t.check() // a stop may have ended it
			return result
		}
	}
	if s.Signature.Recv() != nil {
		return m.compiledMethod(s)
	}
	v, ok := m.symbol(path, s.Name())
	if !ok {
		return nil
	}
	return thunk(v)
}

// compiledMethod finds a method of a compiled type. (error).Error has no package.
func (m *Machine) compiledMethod(s *ssa.Function) func(*thread, []slot) slot {
	recv := s.Signature.Recv()
	if recv == nil {
		return nil
	}
	t := m.typeOf(recv.Type())
	base := t
	if base.Kind() == reflect.Pointer && base.Name() == "" {
		base = base.Elem()
	}
	m.types.mu.Lock()
	own := m.types.byType[base] != nil
	m.types.mu.Unlock()
	method, ok := t.MethodByName(s.Name())
	if own || !ok || t.Kind() == reflect.Interface {
		return nil
	}
	return thunk(method.Func)
}

// thunk calls a compiled function: the commonest signatures directly, others by reflection.
func thunk(v reflect.Value) func(*thread, []slot) slot {
	switch f := v.Interface().(type) {
	case func(float64) float64:
		return func(_ *thread, a []slot) slot { return floatSlot(f(a[0].float())) }
	case func(float64, float64) float64:
		return func(_ *thread, a []slot) slot { return floatSlot(f(a[0].float(), a[1].float())) }
	case func(string) string:
		return func(_ *thread, a []slot) slot { return stringSlot(f(a[0].str())) }
	case func(int) string:
		return func(_ *thread, a []slot) slot { return stringSlot(f(a[0].n)) }
	case func(string, string) bool:
		return func(_ *thread, a []slot) slot { return boolSlot(f(a[0].str(), a[1].str())) }
	}
	return func(_ *thread, args []slot) slot { return callCompiled(v, args) }
}

// intrinsic is what the sources of the standard library leave to the run time.
func (m *Machine) intrinsic(s *ssa.Function) func(*thread, []slot) slot {
	name := s.String()
	if o := s.Origin(); o != nil {
		name = o.String()
	}
	switch name {
	case "maps.clone":
		return func(_ *thread, args []slot) slot {
			from := reflect.ValueOf(dynamicAny(args[0], anyType))
			to := reflect.MakeMapWithSize(from.Type(), from.Len())
			if from.IsNil() {
				to = from
			}
			for it := from.MapRange(); it.Next(); {
				to.SetMapIndex(it.Key(), it.Value())
			}
			return interfaceSlot(to, anyType)
		}
	case "reflect.TypeFor":
		if len(s.TypeArgs()) == 1 {
			t := m.typeOf(s.TypeArgs()[0])
			return func(*thread, []slot) slot {
				return interfaceSlot(reflect.ValueOf(t), reflect.TypeFor[reflect.Type]())
			}
		}
	}
	return nil
}
