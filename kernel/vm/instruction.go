package vm

import (
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// instruction translates what is no end of a block.
func (c *compiler) instruction(in ssa.Instruction) func(*frame) {
	d := -1
	if v, ok := in.(ssa.Value); ok {
		d = c.register(v)
	}
	switch in := in.(type) {
	case *ssa.Alloc:
		return c.alloc(d, in)
	case *ssa.BinOp:
		return c.binary(d, in)
	case *ssa.UnOp:
		return c.unary(d, in)
	case *ssa.Call:
		return c.call(d, in)
	case *ssa.ChangeType:
		return c.move(d, in.X)
	case *ssa.Convert:
		return c.convert(d, in.X, in.Type())
	case *ssa.MultiConvert:
		return c.convert(d, in.X, in.Type())
	case *ssa.Extract:
		x, k := c.register(in.Tuple), in.Index
		return func(fr *frame) { fr.registers[d] = fr.registers[x].parts()[k] }
	case *ssa.ChangeInterface, *ssa.MakeInterface, *ssa.TypeAssert:
		return c.interfaces(d, in)
	case *ssa.Field, *ssa.FieldAddr, *ssa.Index, *ssa.IndexAddr, *ssa.Slice, *ssa.SliceToArrayPointer, *ssa.MakeSlice, *ssa.Store:
		return c.memory(d, in)
	case *ssa.Lookup, *ssa.MakeMap, *ssa.MapUpdate, *ssa.Range, *ssa.Next:
		return c.maps(d, in)
	case *ssa.MakeChan, *ssa.Send, *ssa.Select:
		return c.channels(d, in)
	case *ssa.MakeClosure:
		s := in.Fn.(*ssa.Function)
		c.function.refers = append(c.function.refers, s)
		f, rs := c.machine.function(s), c.list(in.Bindings)
		return func(fr *frame) { fr.registers[d] = c.machine.newClosure(f, gather(fr, rs)) }
	case *ssa.Defer, *ssa.RunDefers, *ssa.Go:
		return c.control(in)
	}
	refuse("instruction %T", in)
	return nil
}

func (c *compiler) move(d int, from ssa.Value) func(*frame) {
	x := c.register(from)
	return func(fr *frame) { fr.registers[d] = fr.registers[x] }
}

func (c *compiler) alloc(d int, in *ssa.Alloc) func(*frame) {
	t := c.machine.typeOf(pointee(in.Type()))
	if t.Kind() == reflect.Int {
		return func(fr *frame) { fr.registers[d].p = unsafe.Pointer(new(int)) }
	}
	return func(fr *frame) { fr.registers[d].p = reflect.New(t).UnsafePointer() }
}

func (c *compiler) unary(d int, in *ssa.UnOp) func(*frame) {
	x := c.register(in.X)
	switch in.Op {
	case token.MUL:
		return c.load(d, x, in)
	case token.ARROW:
		return c.receive(d, x, in)
	case token.NOT:
		return func(fr *frame) { fr.registers[d].n = 1 - fr.registers[x].n }
	}
	t := c.typeOf(in)
	switch formOf(t) {
	case floatForm:
		return func(fr *frame) { fr.registers[d] = floatSlot(-fr.registers[x].float()) }
	case boxForm:
		return func(fr *frame) {
			v := reflect.New(t)
			v.Elem().SetComplex(-toValue(fr.registers[x], t).Complex())
			fr.registers[d] = slot{p: v.UnsafePointer()}
		}
	}
	narrow := narrowing(t.Kind())
	if in.Op == token.SUB {
		return func(fr *frame) { fr.registers[d].n = narrow(-fr.registers[x].n) }
	}
	return func(fr *frame) { fr.registers[d].n = narrow(^fr.registers[x].n) }
}

// load reads through a pointer.
func (c *compiler) load(d, x int, in *ssa.UnOp) func(*frame) {
	t := c.typeOf(in)
	pos := in.Pos()
	if !nonNil(in.X) {
		load := loaderOf(t)
		return func(fr *frame) {
			p := fr.registers[x].p
			if p == nil {
				fr.pos = pos
				nilDereference()
			}
			fr.registers[d] = load(p)
		}
	}
	switch {
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		return func(fr *frame) { fr.registers[d].n = *(*int)(fr.registers[x].p) }
	case formOf(t) == pointerForm:
		return func(fr *frame) { fr.registers[d].p = *(*unsafe.Pointer)(fr.registers[x].p) }
	}
	load := loaderOf(t)
	return func(fr *frame) { fr.registers[d] = load(fr.registers[x].p) }
}

// nonNil reports whether an address was checked, or cannot be nil.
func nonNil(v ssa.Value) bool {
	switch v.(type) {
	case *ssa.Global, *ssa.Alloc, *ssa.FieldAddr, *ssa.IndexAddr, *ssa.FreeVar:
		return true
	}
	return false
}

// control translates defer and go.
func (c *compiler) control(in ssa.Instruction) func(*frame) {
	switch in := in.(type) {
	case *ssa.Defer:
		prepare := c.prepare(&in.Call)
		stack := -1
		if in.DeferStack != nil {
			stack = c.register(in.DeferStack)
		} else {
			c.function.defers = true
		}
		pos := in.Pos()
		return func(fr *frame) {
			fr.pos = pos
			call, to := prepare(fr), fr
			if stack >= 0 {
				to = (*frame)(fr.registers[stack].p)
			}
			to.defers = append(to.defers, func(t *thread, by *frame) { call(t, by) })
		}
	case *ssa.Go:
		prepare, pos := c.prepare(&in.Call), in.Pos()
		return func(fr *frame) {
			fr.pos = pos
			call := prepare(fr)
			c.machine.start(fr.thread.run, func(t *thread) { call(t, nil) })
		}
	}
	return func(fr *frame) { // RunDefers
		fr.runDefers()
		fr.raise()
	}
}

// start runs a goroutine of the program. A panic ends it, is told, and harms nobody else.
func (m *Machine) start(r *Run, call func(t *thread)) {
	go func() {
		t, leave := m.enter(r)
		defer leave()
		defer func() {
			if v := recover(); v != nil {
				if err := t.failure(v); err != ErrStopped && m.options.Panic != nil {
					m.options.Panic(r, err)
				}
			}
		}()
		call(t)
	}()
}

// interfaces translates conversions to and from interfaces.
func (c *compiler) interfaces(d int, in ssa.Instruction) func(*frame) {
	switch in := in.(type) {
	case *ssa.ChangeInterface:
		x, from, to := c.register(in.X), c.typeOf(in.X), c.typeOf(in)
		return func(fr *frame) {
			v := dynamicValue(fr.registers[x], from)
			if !v.IsValid() {
				fr.registers[d] = zeroSlot(to)
				return
			}
			fr.registers[d] = interfaceSlot(v, to)
		}
	case *ssa.MakeInterface:
		x, from, to := c.register(in.X), c.typeOf(in.X), c.typeOf(in)
		return func(fr *frame) { fr.registers[d] = interfaceSlot(toValue(fr.registers[x], from), to) }
	}
	return c.assertion(d, in.(*ssa.TypeAssert))
}

func (c *compiler) assertion(d int, in *ssa.TypeAssert) func(*frame) {
	x, from, to := c.register(in.X), c.typeOf(in.X), c.machine.typeOf(in.AssertedType)
	toInterface := to.Kind() == reflect.Interface
	commaOK, pos := in.CommaOk, in.Pos()
	return func(fr *frame) {
		v := dynamicValue(fr.registers[x], from)
		good := v.IsValid() && (toInterface && v.Type().Implements(to) || !toInterface && v.Type() == to)
		var s slot
		switch {
		case good && toInterface:
			s = interfaceSlot(v, to)
		case good:
			s = fromValue(v, to)
		case !commaOK:
			fr.pos = pos
			panic(failedAssertion(from, v, to))
		default:
			s = zeroSlot(to)
		}
		if commaOK {
			s = tuple(s, boolSlot(good))
		}
		fr.registers[d] = s
	}
}
