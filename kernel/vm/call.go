package vm

import (
	"go/types"
	"reflect"

	"golang.org/x/tools/go/ssa"
)

// call translates a call whose result is wanted now.
func (c *compiler) call(d int, in *ssa.Call) func(*frame) {
	cc, pos := &in.Call, in.Pos()
	if b, ok := cc.Value.(*ssa.Builtin); ok {
		return c.builtinCall(d, b.Name(), in)
	}
	if s, ok := cc.Value.(*ssa.Function); ok && !cc.IsInvoke() {
		return c.staticCall(d, s, in)
	}
	if cc.IsInvoke() {
		prepare := c.prepare(cc)
		return func(fr *frame) {
			fr.pos = pos
			fr.registers[d] = prepare(fr)(fr.thread, nil)
		}
	}
	m, rs, x, t := c.machine, c.list(cc.Args), c.register(cc.Value), c.typeOf(cc.Value)
	return func(fr *frame) {
		fr.pos = pos
		p := fr.registers[x].p
		if k := closureIn(p); k != nil && k.machine == m {
			f := k.function.newest()
			m.ensure(f)
			if f.native == nil {
				callee, mark := fr.thread.push(f)
				for i, r := range rs {
					callee.registers[i] = fr.registers[r]
				}
				copy(callee.registers[f.captured:], k.captured)
				fr.registers[d] = fr.thread.execute(callee, mark)
				return
			}
		}
		fr.registers[d] = m.callValue(fr.thread, slot{p: p}, t, gather(fr, rs), nil)
	}
}

func (c *compiler) staticCall(d int, s *ssa.Function, in *ssa.Call) func(*frame) {
	m, pos := c.machine, in.Pos()
	first := m.function(s)
	c.function.refers = append(c.function.refers, s)
	rs := c.list(in.Call.Args)
	return func(fr *frame) {
		fr.pos = pos
		f := first
		if f.newer.Load() != nil {
			f = f.newest()
		}
		if !f.ready.Load() {
			m.ensure(f)
		}
		if f.native != nil {
			var buffer [4]slot
			args := buffer[:0]
			for _, r := range rs {
				args = append(args, fr.registers[r])
			}
			fr.registers[d] = m.callNative(fr.thread, f, args)
			return
		}
		callee, mark := fr.thread.push(f)
		for i, r := range rs {
			callee.registers[i] = fr.registers[r]
		}
		fr.registers[d] = fr.thread.execute(callee, mark)
	}
}

// prepare translates a call whose function and arguments are evaluated now and which is made later (defer, go).
func (c *compiler) prepare(cc *ssa.CallCommon) func(fr *frame) func(t *thread, by *frame) slot {
	m, rs := c.machine, c.list(cc.Args)
	if cc.IsInvoke() {
		x, t, method := c.register(cc.Value), c.typeOf(cc.Value), cc.Method
		return func(fr *frame) func(*thread, *frame) slot {
			receiver, args := fr.registers[x], gather(fr, rs)
			if !dynamicValue(receiver, t).IsValid() {
				nilDereference()
			}
			return func(th *thread, by *frame) slot { return m.invoke(th, receiver, t, method, args, by) }
		}
	}
	switch v := cc.Value.(type) {
	case *ssa.Builtin:
		do := c.builtin(v.Name(), cc)
		return func(fr *frame) func(*thread, *frame) slot {
			args := gather(fr, rs)
			return func(_ *thread, by *frame) slot {
				if v.Name() == "recover" { // called by no deferred function: no effect
					return slot{}
				}
				return do(fr, args)
			}
		}
	case *ssa.Function:
		f := m.function(v)
		c.function.refers = append(c.function.refers, v)
		return func(fr *frame) func(*thread, *frame) slot {
			args := gather(fr, rs)
			return func(t *thread, by *frame) slot { return m.call(t, f, args, nil, by) }
		}
	}
	x, t := c.register(cc.Value), c.typeOf(cc.Value)
	return func(fr *frame) func(*thread, *frame) slot {
		value, args := fr.registers[x], gather(fr, rs)
		return func(th *thread, by *frame) slot { return m.callValue(th, value, t, args, by) }
	}
}

// callValue calls a func value of type t.
func (m *Machine) callValue(t *thread, value slot, ft reflect.Type, args []slot, by *frame) slot {
	if k := closureIn(value.p); k != nil {
		return k.machine.call(t, k.function, args, k.captured, by)
	}
	k := t.mark()
	s := callCompiled(toValue(value, ft), args)
	t.release(k)
	return s
}

// methodKey is a method of the dynamic type of an interface.
type methodKey struct {
	t  reflect.Type
	id string
}

// invoke calls a method of an interface.
func (m *Machine) invoke(t *thread, receiver slot, it reflect.Type, method *types.Func, args []slot, by *frame) slot {
	v := dynamicValue(receiver, it)
	if !v.IsValid() {
		nilDereference()
	}
	key := methodKey{v.Type(), method.Id()}
	cached, ok := m.methods.Load(key)
	if !ok {
		cached = m.methodOf(v.Type(), method)
		m.methods.Store(key, cached)
	}
	if f := cached.(*function); f != nil {
		return m.call(t, f, append([]slot{fromValue(v, v.Type())}, args...), nil, by)
	}
	target := v.MethodByName(method.Name())
	if !target.IsValid() {
		target = toValue(receiver, it).MethodByName(method.Name())
	}
	if !target.IsValid() {
		refuse("method %s of the compiled type %v cannot be called", method.Name(), v.Type())
	}
	k := t.mark()
	s := callCompiled(target, args)
	t.release(k)
	return s
}

// callCompiled calls compiled code by reflection.
func callCompiled(f reflect.Value, args []slot) slot {
	t := f.Type()
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		in[i] = toValue(a, t.In(i))
	}
	var out []reflect.Value
	if t.IsVariadic() {
		out = f.CallSlice(in)
	} else {
		out = f.Call(in)
	}
	switch len(out) {
	case 0:
		return slot{}
	case 1:
		return fromValue(out[0], t.Out(0))
	}
	parts := make([]slot, len(out))
	for i, o := range out {
		parts[i] = fromValue(o, t.Out(i))
	}
	return tuple(parts...)
}
