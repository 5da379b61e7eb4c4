package vm

import (
	"fmt"
	"go/token"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// memory translates what reads and writes structs, arrays and slices.
func (c *compiler) memory(d int, in ssa.Instruction) func(*frame) {
	switch in := in.(type) {
	case *ssa.Field:
		x, f := c.register(in.X), c.typeOf(in.X).Field(in.Field)
		load := loaderOf(f.Type)
		return func(fr *frame) { fr.registers[d] = load(unsafe.Add(fr.registers[x].p, f.Offset)) }
	case *ssa.FieldAddr:
		x, offset, pos := c.register(in.X), c.typeOf(in.X).Elem().Field(in.Field).Offset, in.Pos()
		return func(fr *frame) {
			p := fr.registers[x].p
			if p == nil {
				fr.pos = pos
				nilDereference()
			}
			fr.registers[d].p = unsafe.Add(p, offset)
		}
	case *ssa.Index:
		return c.index(d, in)
	case *ssa.IndexAddr:
		return c.indexAddr(d, in)
	case *ssa.Slice:
		return c.slice(d, in)
	case *ssa.SliceToArrayPointer:
		x, n, pos := c.register(in.X), c.typeOf(in).Elem().Len(), in.Pos()
		return func(fr *frame) {
			if have := fr.registers[x].n; have < n {
				fr.pos = pos
				panic(runtimeError(fmt.Sprintf("cannot convert slice with length %d to array or pointer to array with length %d", have, n)))
			}
			fr.registers[d] = slot{p: fr.registers[x].p}
		}
	case *ssa.MakeSlice:
		return c.makeSlice(d, in)
	}
	return c.store(in.(*ssa.Store))
}

func (c *compiler) store(in *ssa.Store) func(*frame) {
	a, x, t, pos := c.register(in.Addr), c.register(in.Val), c.typeOf(in.Val), in.Pos()
	if !nonNil(in.Addr) {
		store := storerOf(t)
		return func(fr *frame) {
			p := fr.registers[a].p
			if p == nil {
				fr.pos = pos
				nilDereference()
			}
			store(p, fr.registers[x])
		}
	}
	if t.Kind() == reflect.Int || t.Kind() == reflect.Float64 {
		return func(fr *frame) { *(*int)(fr.registers[a].p) = fr.registers[x].n }
	}
	store := storerOf(t)
	return func(fr *frame) { store(fr.registers[a].p, fr.registers[x]) }
}

func (c *compiler) index(d int, in *ssa.Index) func(*frame) {
	x, i, t, pos := c.register(in.X), c.register(in.Index), c.typeOf(in.X), in.Pos()
	if t.Kind() == reflect.String {
		return func(fr *frame) {
			s, k := fr.registers[x].str(), fr.registers[i].n
			if uint(k) >= uint(len(s)) {
				fr.pos = pos
				outOfRange(k, len(s))
			}
			fr.registers[d] = slot{n: int(s[k])}
		}
	}
	load, size, n := loaderOf(t.Elem()), t.Elem().Size(), t.Len()
	return func(fr *frame) {
		k := fr.registers[i].n
		if uint(k) >= uint(n) {
			fr.pos = pos
			outOfRange(k, n)
		}
		fr.registers[d] = load(unsafe.Add(fr.registers[x].p, uintptr(k)*size))
	}
}

func (c *compiler) indexAddr(d int, in *ssa.IndexAddr) func(*frame) {
	x, i, t, pos := c.register(in.X), c.register(in.Index), c.typeOf(in.X), in.Pos()
	if t.Kind() == reflect.Slice {
		size := t.Elem().Size()
		return func(fr *frame) {
			r := fr.registers
			k := r[i].n
			if uint(k) >= uint(r[x].n) {
				fr.pos = pos
				outOfRange(k, r[x].n)
			}
			r[d].p = unsafe.Add(r[x].p, uintptr(k)*size)
		}
	}
	size, n := t.Elem().Elem().Size(), t.Elem().Len()
	return func(fr *frame) {
		p, k := fr.registers[x].p, fr.registers[i].n
		if p == nil || uint(k) >= uint(n) {
			fr.pos = pos
			if p == nil {
				nilDereference()
			}
			outOfRange(k, n)
		}
		fr.registers[d].p = unsafe.Add(p, uintptr(k)*size)
	}
}

func (c *compiler) makeSlice(d int, in *ssa.MakeSlice) func(*frame) {
	n, capacity, t, pos := c.register(in.Len), c.register(in.Cap), c.typeOf(in), in.Pos()
	return func(fr *frame) {
		length, room := fr.registers[n].n, fr.registers[capacity].n
		fr.pos = pos
		if length < 0 || uintptr(length) > (1<<47)/max(t.Elem().Size(), 1) {
			panic(runtimeError("makeslice: len out of range"))
		}
		if room < length || uintptr(room) > (1<<47)/max(t.Elem().Size(), 1) {
			panic(runtimeError("makeslice: cap out of range"))
		}
		fr.registers[d] = fromValue(reflect.MakeSlice(t, length, room), t)
	}
}

// slice translates x[low:high:max]; a register of -1 means that the bound is left out.
func (c *compiler) slice(d int, in *ssa.Slice) func(*frame) {
	bound := func(v ssa.Value) int {
		if v == nil {
			return -1
		}
		return c.register(v)
	}
	x, low, high, limit := c.register(in.X), bound(in.Low), bound(in.High), bound(in.Max)
	at := func(fr *frame, r, otherwise int) int {
		if r < 0 {
			return otherwise
		}
		return fr.registers[r].n
	}
	t, pos := c.typeOf(in.X), in.Pos()
	if t.Kind() == reflect.String {
		return func(fr *frame) {
			fr.pos = pos
			s := fr.registers[x].str()
			fr.registers[d] = stringSlot(s[at(fr, low, 0):at(fr, high, len(s))])
		}
	}
	element := t.Elem()
	if t.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	return func(fr *frame) {
		s := fr.registers[x]
		if t.Kind() == reflect.Pointer {
			if s.p == nil {
				fr.pos = pos
				nilDereference()
			}
			s.n, s.c = t.Elem().Len(), t.Elem().Len()
		}
		l, h, m := at(fr, low, 0), at(fr, high, s.n), at(fr, limit, s.c)
		fr.pos = pos
		if limit < 0 {
			_ = make([]struct{}, s.n, s.c)[l:h] // Go's own panic
		} else {
			_ = make([]struct{}, s.n, s.c)[l:h:m]
		}
		if m > l {
			s.p = unsafe.Add(s.p, uintptr(l)*element.Size())
		}
		fr.registers[d] = slot{s.p, h - l, m - l}
	}
}

// receive translates <-ch.
func (c *compiler) receive(d, x int, in *ssa.UnOp) func(*frame) {
	t, commaOK, pos := c.typeOf(in.X), in.CommaOk, in.Pos()
	if in.Op != token.ARROW {
		refuse("operator %s", in.Op)
	}
	return func(fr *frame) {
		fr.pos = pos
		v, ok := fr.thread.receive(toValue(fr.registers[x], t))
		s := zeroSlot(t.Elem())
		if ok {
			s = fromValue(v, t.Elem())
		}
		if commaOK {
			s = tuple(s, boolSlot(ok))
		}
		fr.registers[d] = s
	}
}
