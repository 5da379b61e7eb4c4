package vm

import (
	"go/types"
	"reflect"

	"golang.org/x/tools/go/ssa"
)

// channels translates sends and selects. What blocks waits for the end of the execution too.
func (c *compiler) channels(d int, in ssa.Instruction) func(*frame) {
	switch in := in.(type) {
	case *ssa.MakeChan:
		size, t, pos := c.register(in.Size), c.typeOf(in), in.Pos()
		return func(fr *frame) {
			n := fr.registers[size].n
			if n < 0 {
				fr.pos = pos
				panic(plainError("makechan: size out of range"))
			}
			fr.registers[d] = fromValue(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, t.Elem()), n), t)
		}
	case *ssa.Send:
		ch, x, t, pos := c.register(in.Chan), c.register(in.X), c.typeOf(in.Chan), in.Pos()
		return func(fr *frame) {
			fr.pos = pos
			fr.thread.send(toValue(fr.registers[ch], t), toValue(fr.registers[x], t.Elem()))
		}
	}
	return c.selects(d, in.(*ssa.Select))
}

// plainError is a run-time error whose text has no prefix.
type plainError string

func (e plainError) Error() string { return string(e) }
func (plainError) RuntimeError()   {}

// selectCase is one case of a select.
type selectCase struct {
	dir         reflect.SelectDir
	ch, send    int
	channelType reflect.Type
}

func (c *compiler) selects(d int, in *ssa.Select) func(*frame) {
	cases := make([]selectCase, len(in.States))
	for i, s := range in.States {
		cases[i] = selectCase{dir: reflect.SelectRecv, ch: c.register(s.Chan), channelType: c.typeOf(s.Chan)}
		if s.Dir == types.SendOnly {
			cases[i].dir, cases[i].send = reflect.SelectSend, c.register(s.Send)
		}
	}
	blocking, pos := in.Blocking, in.Pos()
	return func(fr *frame) {
		fr.pos = pos
		list := make([]reflect.SelectCase, len(cases), len(cases)+1)
		for i, k := range cases {
			list[i] = reflect.SelectCase{Dir: k.dir, Chan: toValue(fr.registers[k.ch], k.channelType)}
			if k.dir == reflect.SelectSend {
				list[i].Send = toValue(fr.registers[k.send], k.channelType.Elem())
			}
		}
		chosen, v, ok := fr.thread.selectOne(list, blocking)
		parts := []slot{{n: chosen}, boolSlot(ok)}
		for i, k := range cases {
			switch {
			case k.dir != reflect.SelectRecv:
			case i == chosen && ok:
				parts = append(parts, fromValue(v, k.channelType.Elem()))
			default:
				parts = append(parts, zeroSlot(k.channelType.Elem()))
			}
		}
		fr.registers[d] = tuple(parts...)
	}
}

// selectOne chooses a case, -1 for the default one.
func (t *thread) selectOne(cases []reflect.SelectCase, blocking bool) (chosen int, v reflect.Value, ok bool) {
	extra := reflect.SelectCase{Dir: reflect.SelectDefault}
	if blocking {
		extra = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: t.doneChannel()}
	}
	chosen, v, ok = reflect.Select(append(cases, extra))
	if chosen == len(cases) {
		if blocking {
			panic(stopped{})
		}
		chosen, ok = -1, false
	}
	return chosen, v, ok
}

// doneChannel is closed by a stop; in deferred calls of a stopped execution it is none, so that they can go on.
func (t *thread) doneChannel() reflect.Value {
	if t.unwinding && !t.run.killed.Load() {
		return reflect.ValueOf((<-chan struct{})(nil))
	}
	return reflect.ValueOf(t.run.Done())
}

func (t *thread) receive(ch reflect.Value) (reflect.Value, bool) {
	if !ch.IsNil() {
		if v, ok := ch.TryRecv(); v.IsValid() {
			return v, ok
		}
	}
	_, v, ok := t.selectOne([]reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: ch}}, true)
	return v, ok
}

func (t *thread) send(ch, v reflect.Value) {
	if !ch.IsNil() && ch.TrySend(v) {
		return
	}
	t.selectOne([]reflect.SelectCase{{Dir: reflect.SelectSend, Chan: ch, Send: v}}, true)
}
