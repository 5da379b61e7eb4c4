package vm

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// maxDepth is how deep calls may nest before the program ends with a stack overflow, short of the 1 GB at which Go ends
// the process. A call from compiled code counts for callbackDepth, since it needs more of the real stack.
const (
	maxDepth      = 400_000
	callbackDepth = 12
)

// thread is one goroutine that runs the program, with the frames under way on it, callbacks from compiled code included.
type thread struct {
	machine   *Machine
	run       *Run
	registers []slot // those of the newest frames
	used      int
	frames    []*frame
	depth     int
	weight    int     // depth with callbacks weighted
	unwinding bool    // the execution was stopped and its deferred calls run
	origin    []Frame // of the panic under way
}

// frame is one call.
type frame struct {
	registers []slot
	function  *function
	thread    *thread
	pos       token.Pos // of the call under way, or of what panicked
	result    slot

	defers    []func(t *thread, by *frame)
	panicking bool
	value     any    // what it panics with
	goexit    bool   // runtime.Goexit is unwinding
	deferring *frame // the frame that runs this one as a deferred call
}

// mark is a thread's state before a call.
type mark struct {
	registers           []slot
	used, depth, weight int
}

func (t *thread) mark() mark { return mark{t.registers, t.used, t.depth, t.weight} }
func (t *thread) release(k mark) {
	t.registers, t.used, t.depth, t.weight = k.registers, k.used, k.depth, k.weight
}

// enter returns this goroutine's thread, making one if the program is not on it yet.
func (m *Machine) enter(r *Run) (t *thread, leave func()) {
	id := goroutine()
	if t, ok := m.threads.Load(id); ok {
		t := t.(*thread)
		k, run := t.mark(), t.run
		return t, func() { t.release(k); t.run = run }
	}
	t = &thread{machine: m, run: r, registers: make([]slot, 512)}
	m.threads.Store(id, t)
	return t, func() { m.threads.Delete(id) }
}

// check ends the thread when its execution was stopped.
func (t *thread) check() {
	if t.run.stopped.Load() && (!t.unwinding || t.run.killed.Load()) {
		panic(stopped{})
	}
}

// push makes the frame of a call and returns what release wants afterwards.
func (t *thread) push(f *function) (*frame, mark) {
	k := t.mark()
	if t.used+f.nregs > len(t.registers) {
		t.registers = make([]slot, max(min(2*len(t.registers), 1<<16), 2*f.nregs))
		t.used = 0
	}
	if t.weight >= maxDepth {
		panic(&fatal{errStackOverflow})
	}
	if t.depth == len(t.frames) {
		t.frames = append(t.frames, &frame{thread: t})
	}
	fr := t.frames[t.depth]
	if f.defers {
		fr = &frame{thread: t} // closures keep it beyond its place
		t.frames[t.depth] = fr
	}
	t.depth++
	t.weight++
	fr.function, fr.deferring, fr.pos = f, nil, token.NoPos
	fr.registers = t.registers[t.used : t.used+f.nregs : t.used+f.nregs]
	t.used += f.nregs
	for i := range f.constants {
		fr.registers[f.constants[i].register] = f.constants[i].value
	}
	return fr, k
}

// execute runs a frame to its end and takes it off.
func (t *thread) execute(fr *frame, k mark) slot {
	if t.run.stopped.Load() {
		t.check()
	}
	if fr.function.defers {
		t.executeDeferring(fr)
	} else {
		fr.run(fr.function.blocks[0])
	}
	result := fr.result
	fr.result = slot{}
	clear(fr.registers)
	t.release(k)
	return result
}

// run is the machine's loop: the instructions of a block, then the next block.
func (fr *frame) run(b *block) {
	for b != nil {
		for _, do := range b.code {
			do(fr)
		}
		b = b.next(fr)
	}
}

// call runs f with captured variables; by is the frame that defers the call, nil for a plain one.
func (m *Machine) call(t *thread, f *function, args, captured []slot, by *frame) slot {
	f = f.newest()
	m.ensure(f)
	if f.native != nil {
		return m.callNative(t, f, args)
	}
	fr, k := t.push(f)
	fr.deferring = by
	copy(fr.registers, args)
	copy(fr.registers[f.captured:], captured)
	return t.execute(fr, k)
}

// callNative runs compiled code; a callback that it recovered from leaves no frames behind.
func (m *Machine) callNative(t *thread, f *function, args []slot) slot {
	k := t.mark()
	s := f.native(t, args)
	t.release(k)
	return s
}

// Frame is one function under way.
type Frame struct {
	Function *ssa.Function
	Pos      token.Pos // of the call or of the instruction that panicked; NoPos if it is not known
}

func (t *thread) trace() []Frame {
	const most = 1000 // of a runaway recursion both ends tell enough
	var list []Frame
	for i := range t.depth {
		if t.depth > most && i > most/2 && i < t.depth-most/2 {
			continue
		}
		list = append(list, Frame{t.frames[i].function.ssa, t.frames[i].pos})
	}
	return list
}
