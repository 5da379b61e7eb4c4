package vm

import (
	"go/types"
	"reflect"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// convert translates T(x) where the two have different forms or widths.
func (c *compiler) convert(d int, x ssa.Value, to types.Type) func(*frame) {
	a, from, t := c.register(x), c.typeOf(x), c.machine.typeOf(to)
	f, g := formOf(from), formOf(t)
	switch {
	case from.Kind() == reflect.UnsafePointer && g == intForm:
		return func(fr *frame) { fr.registers[d].n = int(uintptr(fr.registers[a].p)) }
	case t.Kind() == reflect.UnsafePointer && f == intForm:
		refuse("conversion of a uintptr to unsafe.Pointer")
	case f == pointerForm && g == pointerForm, f == stringForm && g == stringForm:
		return func(fr *frame) { fr.registers[d] = fr.registers[a] }
	case f == intForm && g == intForm:
		narrow := narrowing(t.Kind())
		return func(fr *frame) { fr.registers[d].n = narrow(fr.registers[a].n) }
	case f == intForm && g == floatForm:
		return intToFloat(d, a, unsigned(from.Kind()), t.Kind() == reflect.Float32)
	case f == floatForm && g == intForm:
		return floatToInt(d, a, t.Kind())
	case f == floatForm && g == floatForm && t.Kind() == reflect.Float32:
		return func(fr *frame) { fr.registers[d] = floatSlot(float64(float32(fr.registers[a].float()))) }
	case f == floatForm && g == floatForm:
		return func(fr *frame) { fr.registers[d] = fr.registers[a] }
	case f == intForm && g == stringForm:
		return func(fr *frame) {
			v := fr.registers[a].n
			if v < 0 || v > utf8.MaxRune {
				v = utf8.RuneError
			}
			fr.registers[d] = stringSlot(string(rune(v)))
		}
	}
	return func(fr *frame) { fr.registers[d] = fromValue(toValue(fr.registers[a], from).Convert(t), t) }
}

func intToFloat(d, a int, unsigned, narrow bool) func(*frame) {
	switch {
	case unsigned && narrow:
		return func(fr *frame) { fr.registers[d] = floatSlot(float64(float32(uint(fr.registers[a].n)))) }
	case unsigned:
		return func(fr *frame) { fr.registers[d] = floatSlot(float64(uint(fr.registers[a].n))) }
	case narrow:
		return func(fr *frame) { fr.registers[d] = floatSlot(float64(float32(fr.registers[a].n))) }
	}
	return func(fr *frame) { fr.registers[d].n = floatSlot(float64(fr.registers[a].n)).n }
}

// floatToInt converts as the compiled program would, also where the value does not fit, which the language leaves open.
func floatToInt(d, a int, k reflect.Kind) func(*frame) {
	convert := map[reflect.Kind]func(float64) int{
		reflect.Int8: func(f float64) int { return int(int8(f)) }, reflect.Int16: func(f float64) int { return int(int16(f)) },
		reflect.Int32: func(f float64) int { return int(int32(f)) }, reflect.Uint8: func(f float64) int { return int(uint8(f)) },
		reflect.Uint16: func(f float64) int { return int(uint16(f)) }, reflect.Uint32: func(f float64) int { return int(uint32(f)) },
		reflect.Uint: func(f float64) int { return int(uint(f)) }, reflect.Uint64: func(f float64) int { return int(uint64(f)) },
		reflect.Uintptr: func(f float64) int { return int(uintptr(f)) },
	}[k]
	if convert == nil {
		return func(fr *frame) { fr.registers[d].n = int(fr.registers[a].float()) }
	}
	return func(fr *frame) { fr.registers[d].n = convert(fr.registers[a].float()) }
}

// pointerAt is where a slice's elements begin.
func pointerAt[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
