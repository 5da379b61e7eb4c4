package vm

import (
	"go/constant"
	"go/token"
	"go/types"
	"reflect"

	"golang.org/x/tools/go/ssa"
)

// compiler translates one function.
type compiler struct {
	machine   *Machine
	function  *function
	registers map[ssa.Value]int
	next      int // first free register
}

// register returns the register of a value; constants, globals and functions get one that each frame begins with.
func (c *compiler) register(v ssa.Value) int {
	if r, ok := c.registers[v]; ok {
		return r
	}
	r := c.next
	c.next++
	c.registers[v] = r
	switch v := v.(type) {
	case *ssa.Const:
		c.constant(r, c.constantSlot(v))
	case *ssa.Global:
		c.constant(r, slot{p: c.machine.globalAddr(v)})
	case *ssa.Function:
		c.function.refers = append(c.function.refers, v)
		c.constant(r, c.machine.funcValue(c.machine.function(v)))
	}
	return r
}

func (c *compiler) constant(r int, s slot) {
	c.function.constants = append(c.function.constants, initial{r, s})
}

func (c *compiler) list(values []ssa.Value) []int {
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = c.register(v)
	}
	return out
}

func (c *compiler) typeOf(v ssa.Value) reflect.Type { return c.machine.typeOf(v.Type()) }

// gather copies registers, as arguments that outlive the frame.
func gather(fr *frame, registers []int) []slot {
	out := make([]slot, len(registers))
	for i, r := range registers {
		out[i] = fr.registers[r]
	}
	return out
}

func (c *compiler) constantSlot(k *ssa.Const) slot {
	t := c.machine.typeOf(k.Type())
	if k.Value == nil {
		return zeroSlot(t)
	}
	switch formOf(t) {
	case stringForm:
		return stringSlot(constant.StringVal(k.Value))
	case floatForm:
		f, _ := constant.Float64Val(constant.ToFloat(k.Value))
		if t.Kind() == reflect.Float32 {
			narrow, _ := constant.Float32Val(constant.ToFloat(k.Value))
			f = float64(narrow)
		}
		return floatSlot(f)
	case intForm:
		if k.Value.Kind() == constant.Bool {
			return boolSlot(constant.BoolVal(k.Value))
		}
		v := constant.ToInt(k.Value)
		if n, exact := constant.Int64Val(v); exact {
			return slot{n: int(n)}
		}
		n, _ := constant.Uint64Val(v)
		return slot{n: int(n)}
	case boxForm:
		if _, ok := k.Type().Underlying().(*types.Basic); ok {
			v := reflect.New(t)
			v.Elem().SetComplex(k.Complex128())
			return slot{p: v.UnsafePointer()}
		}
	}
	refuse("constant %v of type %v", k, k.Type())
	return slot{}
}

// block translates a basic block.
func (c *compiler) block(b *ssa.BasicBlock) {
	out := c.function.blocks[b.Index]
	for i, in := range b.Instrs {
		switch in := in.(type) {
		case *ssa.Phi, *ssa.DebugRef:
		case *ssa.Jump:
			out.next = c.edge(b, 0)
		case *ssa.If:
			c.branch(b, in, i, out)
		case *ssa.Return:
			out.next = c.returning(in)
		case *ssa.Panic:
			x, t, pos := c.register(in.X), c.typeOf(in.X), in.Pos()
			out.next = func(fr *frame) *block {
				fr.pos = pos
				panic(dynamicAny(fr.registers[x], t))
			}
		default:
			out.code = append(out.code, c.instruction(in))
		}
	}
	if out.next == nil {
		out.next = func(*frame) *block { panic("vm: a block without end") }
	}
}

// branch translates an If; a comparison of integers just before it becomes part of it.
func (c *compiler) branch(b *ssa.BasicBlock, in *ssa.If, at int, out *block) {
	yes, no := c.edge(b, 0), c.edge(b, 1)
	cmp, ok := in.Cond.(*ssa.BinOp)
	if ok && at > 0 && b.Instrs[at-1] == ssa.Instruction(cmp) && len(*cmp.Referrers()) == 1 {
		if k := c.typeOf(cmp.X).Kind(); k == reflect.Int || k == reflect.Int64 {
			if fused := fuse(cmp.Op, c.register(cmp.X), c.register(cmp.Y), yes, no); fused != nil {
				out.code = out.code[:len(out.code)-1]
				out.next = fused
				return
			}
		}
	}
	x := c.register(in.Cond)
	out.next = func(fr *frame) *block {
		if fr.registers[x].n != 0 {
			return yes(fr)
		}
		return no(fr)
	}
}

// fuse makes one step of a comparison and a branch.
func fuse(op token.Token, x, y int, yes, no func(*frame) *block) func(*frame) *block {
	switch op {
	case token.LSS:
		return func(fr *frame) *block {
			if fr.registers[x].n < fr.registers[y].n {
				return yes(fr)
			}
			return no(fr)
		}
	case token.LEQ:
		return func(fr *frame) *block {
			if fr.registers[x].n <= fr.registers[y].n {
				return yes(fr)
			}
			return no(fr)
		}
	case token.EQL:
		return func(fr *frame) *block {
			if fr.registers[x].n == fr.registers[y].n {
				return yes(fr)
			}
			return no(fr)
		}
	case token.GTR:
		return fuse(token.LSS, y, x, yes, no)
	case token.GEQ:
		return fuse(token.LEQ, y, x, yes, no)
	case token.NEQ:
		return fuse(token.EQL, x, y, no, yes)
	}
	return nil
}

func (c *compiler) returning(in *ssa.Return) func(*frame) *block {
	rs := c.list(in.Results)
	switch len(rs) {
	case 0:
		return func(*frame) *block { return nil }
	case 1:
		x := rs[0]
		return func(fr *frame) *block { fr.result = fr.registers[x]; return nil }
	}
	return func(fr *frame) *block { fr.result = tuple(gather(fr, rs)...); return nil }
}

// edge moves the values of the target's phis and goes there; a back edge tests for a stop.
func (c *compiler) edge(from *ssa.BasicBlock, successor int) func(*frame) *block {
	to := from.Succs[successor]
	target := c.function.blocks[to.Index]
	dst, src, plain := c.moves(from, successor)
	back := to.Index <= from.Index
	var move func(r []slot)
	switch {
	case len(dst) == 0 && !back:
		return func(*frame) *block { return target }
	case len(dst) == 0:
		move = nil
	case plain && len(dst) == 1:
		d, s := dst[0], src[0]
		return func(fr *frame) *block {
			if back && fr.thread.run.stopped.Load() {
				fr.thread.check()
			}
			fr.registers[d].n = fr.registers[s].n
			return target
		}
	case plain && len(dst) == 2 && src[1] != dst[0]:
		d, s, d2, s2 := dst[0], src[0], dst[1], src[1]
		return func(fr *frame) *block {
			if back && fr.thread.run.stopped.Load() {
				fr.thread.check()
			}
			fr.registers[d].n = fr.registers[s].n
			fr.registers[d2].n = fr.registers[s2].n
			return target
		}
	default:
		move = parallel(dst, src)
	}
	return func(fr *frame) *block {
		if back && fr.thread.run.stopped.Load() {
			fr.thread.check()
		}
		if move != nil {
			move(fr.registers)
		}
		return target
	}
}

// moves lists the registers that an edge copies; plain means that all are unboxed numbers.
func (c *compiler) moves(from *ssa.BasicBlock, successor int) (dst, src []int, plain bool) {
	to, which := from.Succs[successor], -1
	both := len(from.Succs) == 2 && from.Succs[0] == from.Succs[1]
	for i, p := range to.Preds {
		if p == from && (which < 0 || both && successor == 1) {
			which = i
		}
	}
	plain = true
	for _, in := range to.Instrs {
		phi, ok := in.(*ssa.Phi)
		if !ok {
			break
		}
		if d, s := c.register(phi), c.register(phi.Edges[which]); d != s {
			dst, src = append(dst, d), append(src, s)
		}
		if f := formOf(c.typeOf(phi)); f != intForm && f != floatForm {
			plain = false
		}
	}
	return dst, src, plain
}

// parallel copies registers as if all at once.
func parallel(dst, src []int) func([]slot) {
	conflict := false
	for i := range src {
		for j := range i {
			conflict = conflict || src[i] == dst[j]
		}
	}
	if !conflict {
		return func(r []slot) {
			for i, d := range dst {
				r[d] = r[src[i]]
			}
		}
	}
	return func(r []slot) {
		var buffer [8]slot
		copied := buffer[:0]
		for _, s := range src {
			copied = append(copied, r[s])
		}
		for i, d := range dst {
			r[d] = copied[i]
		}
	}
}
