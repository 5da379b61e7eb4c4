package vm

import (
	"go/token"
	"reflect"

	"golang.org/x/tools/go/ssa"
)

// binary translates operators and comparisons.
func (c *compiler) binary(d int, in *ssa.BinOp) func(*frame) {
	a, b, t := c.register(in.X), c.register(in.Y), c.typeOf(in.X)
	switch in.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return c.compare(d, in, a, b, t)
	case token.SHL, token.SHR:
		return c.shift(d, in, a, b, t)
	}
	switch formOf(t) {
	case intForm:
		return integerOp(d, in, a, b, t.Kind())
	case floatForm:
		return floatOp(d, in.Op, a, b, t.Kind() == reflect.Float32)
	case stringForm:
		return func(fr *frame) {
			r := fr.registers
			r[d] = stringSlot(r[a].str() + r[b].str())
		}
	}
	return complexOp(d, in.Op, a, b, t)
}

// narrowing cuts an integer to the width of its kind.
func narrowing(k reflect.Kind) func(int) int {
	switch k {
	case reflect.Int8:
		return func(x int) int { return int(int8(x)) }
	case reflect.Int16:
		return func(x int) int { return int(int16(x)) }
	case reflect.Int32:
		return func(x int) int { return int(int32(x)) }
	case reflect.Uint8:
		return func(x int) int { return int(uint8(x)) }
	case reflect.Uint16:
		return func(x int) int { return int(uint16(x)) }
	case reflect.Uint32:
		return func(x int) int { return int(uint32(x)) }
	}
	return func(x int) int { return x }
}

func wide(k reflect.Kind) bool {
	switch k {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return false
}

func integerOp(d int, in *ssa.BinOp, a, b int, k reflect.Kind) func(*frame) {
	if wide(k) {
		switch in.Op {
		case token.ADD:
			return func(fr *frame) { r := fr.registers; r[d].n = r[a].n + r[b].n }
		case token.SUB:
			return func(fr *frame) { r := fr.registers; r[d].n = r[a].n - r[b].n }
		case token.MUL:
			return func(fr *frame) { r := fr.registers; r[d].n = r[a].n * r[b].n }
		}
	}
	narrow := narrowing(k)
	pos := in.Pos()
	switch in.Op {
	case token.QUO, token.REM:
		f := division(in.Op, unsigned(k))
		return func(fr *frame) {
			r := fr.registers
			if r[b].n == 0 {
				fr.pos = pos
			}
			r[d].n = narrow(f(r[a].n, r[b].n))
		}
	}
	f := integerFunc(in.Op)
	return func(fr *frame) { r := fr.registers; r[d].n = narrow(f(r[a].n, r[b].n)) }
}

func division(op token.Token, unsigned bool) func(a, b int) int {
	switch {
	case op == token.QUO && unsigned:
		return func(a, b int) int { return int(uint(a) / uint(b)) }
	case op == token.QUO:
		return func(a, b int) int { return a / b }
	case unsigned:
		return func(a, b int) int { return int(uint(a) % uint(b)) }
	}
	return func(a, b int) int { return a % b }
}

func integerFunc(op token.Token) func(a, b int) int {
	switch op {
	case token.ADD:
		return func(a, b int) int { return a + b }
	case token.SUB:
		return func(a, b int) int { return a - b }
	case token.MUL:
		return func(a, b int) int { return a * b }
	case token.AND:
		return func(a, b int) int { return a & b }
	case token.OR:
		return func(a, b int) int { return a | b }
	case token.XOR:
		return func(a, b int) int { return a ^ b }
	case token.AND_NOT:
		return func(a, b int) int { return a &^ b }
	}
	refuse("operator %s on integers", op)
	return nil
}

func (c *compiler) shift(d int, in *ssa.BinOp, a, b int, t reflect.Type) func(*frame) {
	signedCount := !unsigned(c.typeOf(in.Y).Kind())
	narrow, pos := narrowing(t.Kind()), in.Pos()
	var f func(x int, n uint) int
	switch {
	case in.Op == token.SHL:
		f = func(x int, n uint) int { return x << n }
	case unsigned(t.Kind()):
		f = func(x int, n uint) int { return int(uint(x) >> n) }
	default:
		f = func(x int, n uint) int { return x >> n }
	}
	return func(fr *frame) {
		n := fr.registers[b].n
		if signedCount && n < 0 {
			fr.pos = pos
			panic(runtimeError("negative shift amount"))
		}
		fr.registers[d].n = narrow(f(fr.registers[a].n, uint(n)))
	}
}

func floatOp(d int, op token.Token, a, b int, narrow bool) func(*frame) {
	if narrow {
		f := floatFunc[float32](op)
		return func(fr *frame) {
			r := fr.registers
			r[d] = floatSlot(float64(f(float32(r[a].float()), float32(r[b].float()))))
		}
	}
	switch op {
	case token.ADD:
		return func(fr *frame) { r := fr.registers; r[d].n = floatSlot(r[a].float() + r[b].float()).n }
	case token.MUL:
		return func(fr *frame) { r := fr.registers; r[d].n = floatSlot(r[a].float() * r[b].float()).n }
	}
	f := floatFunc[float64](op)
	return func(fr *frame) { r := fr.registers; r[d].n = floatSlot(f(r[a].float(), r[b].float())).n }
}

func floatFunc[T float32 | float64 | complex64 | complex128](op token.Token) func(a, b T) T {
	switch op {
	case token.ADD:
		return func(a, b T) T { return a + b }
	case token.SUB:
		return func(a, b T) T { return a - b }
	case token.MUL:
		return func(a, b T) T { return a * b }
	case token.QUO:
		return func(a, b T) T { return a / b }
	}
	refuse("operator %s on floats", op)
	return nil
}

func complexOp(d int, op token.Token, a, b int, t reflect.Type) func(*frame) {
	f := floatFunc[complex128](op)
	if t.Kind() == reflect.Complex64 {
		narrow := floatFunc[complex64](op)
		f = func(x, y complex128) complex128 { return complex128(narrow(complex64(x), complex64(y))) }
	}
	return func(fr *frame) {
		v := reflect.New(t)
		v.Elem().SetComplex(f(toValue(fr.registers[a], t).Complex(), toValue(fr.registers[b], t).Complex()))
		fr.registers[d] = slot{p: v.UnsafePointer()}
	}
}

func ordered[T int | uint | float64 | string](op token.Token) func(a, b T) bool {
	switch op {
	case token.EQL:
		return func(a, b T) bool { return a == b }
	case token.NEQ:
		return func(a, b T) bool { return a != b }
	case token.LSS:
		return func(a, b T) bool { return a < b }
	case token.LEQ:
		return func(a, b T) bool { return a <= b }
	case token.GTR:
		return func(a, b T) bool { return a > b }
	}
	return func(a, b T) bool { return a >= b }
}

func (c *compiler) compare(d int, in *ssa.BinOp, a, b int, t reflect.Type) func(*frame) {
	neq := in.Op == token.NEQ
	switch formOf(t) {
	case intForm:
		if unsigned(t.Kind()) {
			f := ordered[uint](in.Op)
			return func(fr *frame) { r := fr.registers; r[d].n = boolInt(f(uint(r[a].n), uint(r[b].n))) }
		}
		f := ordered[int](in.Op)
		return func(fr *frame) { r := fr.registers; r[d].n = boolInt(f(r[a].n, r[b].n)) }
	case floatForm:
		f := ordered[float64](in.Op)
		return func(fr *frame) { r := fr.registers; r[d].n = boolInt(f(r[a].float(), r[b].float())) }
	case stringForm:
		f := ordered[string](in.Op)
		return func(fr *frame) { r := fr.registers; r[d].n = boolInt(f(r[a].str(), r[b].str())) }
	}
	if u := c.typeOf(in.Y); formOf(u) == formOf(t) {
		switch formOf(t) {
		case pointerForm:
			return func(fr *frame) { r := fr.registers; r[d].n = boolInt((r[a].p == r[b].p) != neq) }
		case sliceForm: // with nil
			return func(fr *frame) { r := fr.registers; r[d].n = boolInt(((r[a].p == nil) == (r[b].p == nil)) != neq) }
		}
	}
	x, y, pos := anyOf(t), anyOf(c.typeOf(in.Y)), in.Pos()
	return func(fr *frame) {
		fr.pos = pos // uncomparable values panic
		fr.registers[d].n = boolInt((x(fr.registers[a]) == y(fr.registers[b])) != neq)
	}
}

// anyOf turns registers of a type into interface values.
func anyOf(t reflect.Type) func(slot) any {
	if t.Kind() == reflect.Interface {
		return func(s slot) any { return dynamicAny(s, t) }
	}
	return func(s slot) any { return toValue(s, t).Interface() }
}
