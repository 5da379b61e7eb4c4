package vm

import (
	"reflect"
	"sync"
	"sync/atomic"

	"golang.org/x/tools/go/ssa"
)

// function is the translation of one ssa.Function.
type function struct {
	ssa   *ssa.Function
	newer atomic.Pointer[function] // replaces this one
	once  sync.Once
	ready atomic.Bool // translated
	err   any         // what the translation ended with

	native func(t *thread, args []slot) slot // compiled code, instead of blocks

	blocks    []*block
	recover   *block // goes on after a recovered panic; nil where results have no names
	nregs     int
	captured  int // first register of captured variables
	constants []initial
	results   []reflect.Type
	defers    bool            // has deferred calls
	refers    []*ssa.Function // functions that it names

	rtype reflect.Type // of its value, guarded by Machine.mu
}

// initial is a register that a frame begins with.
type initial struct {
	register int
	value    slot
}

// block is a basic block: instructions, then the one that chooses the next block, nil to return.
type block struct {
	code []func(*frame)
	next func(*frame) *block
}

// newest follows replacements.
func (f *function) newest() *function {
	for n := f.newer.Load(); n != nil; n = f.newer.Load() {
		f = n
	}
	return f
}

// ensure translates f if that was not done yet.
func (m *Machine) ensure(f *function) {
	f.once.Do(func() {
		defer func() { f.err = recover() }()
		m.translate(f)
		f.ready.Store(true)
	})
	if f.err != nil {
		panic(f.err)
	}
}

func (m *Machine) translate(f *function) {
	s := f.ssa
	for v := range s.Signature.Results().Variables() {
		f.results = append(f.results, m.typeOf(v.Type()))
	}
	if f.native = m.nativeOf(s); f.native != nil {
		return
	}
	if s.Blocks == nil {
		name := s.String()
		if s.Origin() != nil {
			name = "generic function " + s.Origin().String()
		}
		refuse("%s has no source here and is in no symbol table", name)
	}
	c := &compiler{machine: m, function: f, registers: map[ssa.Value]int{}}
	for _, p := range s.Params {
		c.register(p)
	}
	f.captured = c.next
	for _, p := range s.FreeVars {
		c.register(p)
	}
	for range s.Blocks {
		f.blocks = append(f.blocks, &block{})
	}
	for _, b := range s.Blocks {
		c.block(b)
	}
	if s.Recover != nil {
		f.recover = f.blocks[s.Recover.Index]
	}
	f.nregs = c.next
}
