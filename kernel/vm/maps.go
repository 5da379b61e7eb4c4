package vm

import (
	"reflect"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// maps translates map operations, and range over maps and strings.
func (c *compiler) maps(d int, in ssa.Instruction) func(*frame) {
	switch in := in.(type) {
	case *ssa.Lookup:
		return c.lookup(d, in)
	case *ssa.MakeMap:
		t := c.typeOf(in)
		return func(fr *frame) { fr.registers[d] = fromValue(reflect.MakeMap(t), t) }
	case *ssa.MapUpdate:
		return c.mapUpdate(in)
	case *ssa.Range:
		x, t := c.register(in.X), c.typeOf(in.X)
		if t.Kind() == reflect.String {
			return func(fr *frame) { fr.registers[d] = slot{p: unsafe.Pointer(&stringIterator{s: fr.registers[x].str()})} }
		}
		return func(fr *frame) { fr.registers[d] = slot{p: unsafe.Pointer(toValue(fr.registers[x], t).MapRange())} }
	}
	return c.nextElement(d, in.(*ssa.Next))
}

func intInt(t reflect.Type) bool {
	return t.Key().Kind() == reflect.Int && t.Elem().Kind() == reflect.Int
}

func stringInt(t reflect.Type) bool {
	return t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Int
}

func intMap(s *slot) map[int]int       { return *(*map[int]int)(unsafe.Pointer(&s.p)) }
func stringMap(s *slot) map[string]int { return *(*map[string]int)(unsafe.Pointer(&s.p)) }

func (c *compiler) lookup(d int, in *ssa.Lookup) func(*frame) {
	x, i, t, commaOK, pos := c.register(in.X), c.register(in.Index), c.typeOf(in.X), in.CommaOk, in.Pos()
	switch {
	case t.Kind() == reflect.String:
		return func(fr *frame) {
			fr.pos = pos
			fr.registers[d] = slot{n: int(fr.registers[x].str()[fr.registers[i].n])}
		}
	case !commaOK && intInt(t):
		return func(fr *frame) { fr.registers[d] = slot{n: intMap(&fr.registers[x])[fr.registers[i].n]} }
	case !commaOK && stringInt(t):
		return func(fr *frame) { fr.registers[d] = slot{n: stringMap(&fr.registers[x])[fr.registers[i].str()]} }
	}
	key, element := t.Key(), t.Elem()
	return func(fr *frame) {
		fr.pos = pos // an unhashable key panics
		v := toValue(fr.registers[x], t).MapIndex(toValue(fr.registers[i], key))
		s := zeroSlot(element)
		if v.IsValid() {
			s = fromValue(v, element)
		}
		if commaOK {
			s = tuple(s, boolSlot(v.IsValid()))
		}
		fr.registers[d] = s
	}
}

func (c *compiler) mapUpdate(in *ssa.MapUpdate) func(*frame) {
	m, k, x, t, pos := c.register(in.Map), c.register(in.Key), c.register(in.Value), c.typeOf(in.Map), in.Pos()
	switch {
	case intInt(t):
		return func(fr *frame) {
			fr.pos = pos
			intMap(&fr.registers[m])[fr.registers[k].n] = fr.registers[x].n
		}
	case stringInt(t):
		return func(fr *frame) {
			fr.pos = pos
			stringMap(&fr.registers[m])[fr.registers[k].str()] = fr.registers[x].n
		}
	}
	key, element := t.Key(), t.Elem()
	return func(fr *frame) {
		fr.pos = pos
		v := toValue(fr.registers[m], t)
		if v.IsNil() {
			panic(plainError("assignment to entry in nil map"))
		}
		v.SetMapIndex(toValue(fr.registers[k], key), toValue(fr.registers[x], element))
	}
}

type stringIterator struct {
	s  string
	at int
}

func (c *compiler) nextElement(d int, in *ssa.Next) func(*frame) {
	x := c.register(in.Iter)
	if in.IsString {
		return func(fr *frame) {
			it := (*stringIterator)(fr.registers[x].p)
			if it.at >= len(it.s) {
				fr.registers[d] = tuple(slot{}, slot{}, slot{})
				return
			}
			r, n := utf8.DecodeRuneInString(it.s[it.at:])
			fr.registers[d] = tuple(slot{n: 1}, slot{n: it.at}, slot{n: int(r)})
			it.at += n
		}
	}
	t := c.typeOf(in.Iter.(*ssa.Range).X)
	key, element := t.Key(), t.Elem()
	return func(fr *frame) {
		it := (*reflect.MapIter)(fr.registers[x].p)
		if !it.Next() {
			fr.registers[d] = tuple(slot{}, zeroSlot(key), zeroSlot(element))
			return
		}
		fr.registers[d] = tuple(slot{n: 1}, fromValue(it.Key(), key), fromValue(it.Value(), element))
	}
}
