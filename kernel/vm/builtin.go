package vm

import (
	"cmp"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// builtinFunc is a builtin over registers.
type builtinFunc = func(fr *frame, args []slot) slot

// builtinCall translates a call of a builtin whose result is wanted now.
func (c *compiler) builtinCall(d int, name string, in *ssa.Call) func(*frame) {
	rs, pos := c.list(in.Call.Args), in.Pos()
	if name == "len" {
		if f := formOf(c.typeOf(in.Call.Args[0])); f == stringForm || f == sliceForm {
			x := rs[0]
			return func(fr *frame) { fr.registers[d].n = fr.registers[x].n }
		}
	}
	do := c.builtin(name, &in.Call)
	return func(fr *frame) {
		fr.pos = pos
		var buffer [3]slot
		args := buffer[:0]
		for _, r := range rs {
			args = append(args, fr.registers[r])
		}
		fr.registers[d] = do(fr, args)
	}
}

func (c *compiler) builtin(name string, cc *ssa.CallCommon) builtinFunc {
	ts := make([]reflect.Type, len(cc.Args))
	for i, a := range cc.Args {
		ts[i] = c.typeOf(a)
	}
	value := func(args []slot, i int) reflect.Value { return toValue(args[i], ts[i]) }
	switch name {
	case "len", "cap":
		return length(name, ts[0])
	case "append":
		return appending(ts)
	case "copy":
		return func(_ *frame, args []slot) slot { return slot{n: reflect.Copy(value(args, 0), value(args, 1))} }
	case "delete":
		return func(_ *frame, args []slot) slot {
			if m := value(args, 0); !m.IsNil() {
				m.SetMapIndex(value(args, 1), reflect.Value{})
			}
			return slot{}
		}
	case "clear":
		return func(_ *frame, args []slot) slot { value(args, 0).Clear(); return slot{} }
	case "close":
		return func(_ *frame, args []slot) slot { value(args, 0).Close(); return slot{} }
	case "panic":
		return func(_ *frame, args []slot) slot { panic(dynamicAny(args[0], ts[0])) }
	case "recover":
		return func(fr *frame, _ []slot) slot {
			box := new(any)
			*box = fr.recoverValue()
			return slot{p: unsafe.Pointer(box)}
		}
	case "print", "println":
		return c.printing(name, ts)
	case "min", "max":
		return extreme(name, ts[0])
	case "real", "imag", "complex":
		return c.complexPart(name, ts, cc)
	}
	return c.internal(name)
}

// internal are the builtins that only go/ssa writes.
func (c *compiler) internal(name string) builtinFunc {
	switch name {
	case "ssa:wrapnilchk":
		return func(_ *frame, args []slot) slot {
			if args[0].p == nil {
				nilDereference()
			}
			return args[0]
		}
	case "ssa:deferstack":
		c.function.defers = true
		return func(fr *frame, _ []slot) slot { return slot{p: unsafe.Pointer(fr)} }
	}
	refuse("builtin %s", name)
	return nil
}

func length(name string, t reflect.Type) builtinFunc {
	return func(_ *frame, args []slot) slot {
		v := toValue(args[0], t)
		switch {
		case v.Kind() == reflect.Pointer:
			return slot{n: t.Elem().Len()}
		case name == "len":
			return slot{n: v.Len()}
		}
		return slot{n: v.Cap()}
	}
}

func appending(ts []reflect.Type) builtinFunc {
	if len(ts) == 1 {
		return func(_ *frame, args []slot) slot { return args[0] }
	}
	t, element := ts[0], ts[0].Elem()
	if ts[1].Kind() != reflect.String {
		switch element.Kind() {
		case reflect.Int, reflect.Float64, reflect.Int64, reflect.Uint64, reflect.Uint:
			return appendWords[int]
		case reflect.String:
			return appendWords[string]
		case reflect.Uint8, reflect.Bool:
			return appendWords[uint8]
		}
	}
	return func(_ *frame, args []slot) slot {
		more := toValue(args[1], ts[1])
		if more.Kind() == reflect.String {
			more = reflect.ValueOf([]byte(more.String())).Convert(t)
		}
		return fromValue(reflect.AppendSlice(toValue(args[0], t), more), t)
	}
}

// appendWords appends slices whose elements look like T in memory.
func appendWords[T any](_ *frame, args []slot) slot {
	x := unsafe.Slice((*T)(args[0].p), args[0].c)[:args[0].n]
	x = append(x, unsafe.Slice((*T)(args[1].p), args[1].n)...)
	return slot{pointerAt(x), len(x), cap(x)}
}

func (c *compiler) printing(name string, ts []reflect.Type) builtinFunc {
	m := c.machine
	return func(_ *frame, args []slot) slot {
		var b strings.Builder
		for i, a := range args {
			if i > 0 && name == "println" {
				b.WriteByte(' ')
			}
			b.WriteString(printed(toValue(a, ts[i])))
		}
		if name == "println" {
			b.WriteByte('\n')
		}
		if m.options.Print != nil {
			m.options.Print(b.String())
		}
		return slot{}
	}
}

// printed is how the builtin print shows a value.
func printed(v reflect.Value) string {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		f := strconv.FormatFloat(v.Float(), 'e', 6, 64)
		if mantissa, exponent, ok := strings.Cut(f, "e"); ok { // three digits, always a sign
			if !strings.HasPrefix(mantissa, "-") {
				mantissa = "+" + mantissa
			}
			return mantissa + "e" + exponent[:1] + strings.Repeat("0", 4-len(exponent)) + exponent[1:]
		}
		return f
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanComplex():
		z := v.Complex()
		return "(" + printed(reflect.ValueOf(real(z))) + printed(reflect.ValueOf(imag(z))) + "i)"
	case v.Kind() == reflect.Interface:
		return "(" + v.Type().String() + ")"
	case v.Kind() == reflect.Slice:
		return "[" + strconv.Itoa(v.Len()) + "/" + strconv.Itoa(v.Cap()) + "]0x" + strconv.FormatUint(uint64(v.Pointer()), 16)
	}
	return "0x" + strconv.FormatUint(uint64(v.Pointer()), 16)
}

// extreme is min or max.
func extreme(name string, t reflect.Type) builtinFunc {
	better := func(x, y slot) slot { return pick(name, x, y, cmp.Less(y.n, x.n)) }
	switch {
	case formOf(t) == floatForm && name == "min":
		better = func(x, y slot) slot { return floatSlot(min(x.float(), y.float())) }
	case formOf(t) == floatForm:
		better = func(x, y slot) slot { return floatSlot(max(x.float(), y.float())) }
	case formOf(t) == stringForm:
		better = func(x, y slot) slot { return pick(name, x, y, y.str() < x.str()) }
	case unsigned(t.Kind()):
		better = func(x, y slot) slot { return pick(name, x, y, uint(y.n) < uint(x.n)) }
	}
	return func(_ *frame, args []slot) slot {
		best := args[0]
		for _, a := range args[1:] {
			best = better(best, a)
		}
		return best
	}
}

// pick returns the smaller or the greater of two, given which is smaller.
func pick(name string, x, y slot, ySmaller bool) slot {
	if ySmaller == (name == "min") {
		return y
	}
	return x
}

func (c *compiler) complexPart(name string, ts []reflect.Type, cc *ssa.CallCommon) builtinFunc {
	if name == "complex" {
		t := c.machine.typeOf(cc.Value.Type().(*types.Signature).Results().At(0).Type())
		return func(_ *frame, args []slot) slot {
			v := reflect.New(t)
			v.Elem().SetComplex(complex(args[0].float(), args[1].float()))
			return slot{p: v.UnsafePointer()}
		}
	}
	return func(_ *frame, args []slot) slot {
		z := toValue(args[0], ts[0]).Complex()
		if name == "real" {
			return floatSlot(real(z))
		}
		return floatSlot(imag(z))
	}
}
