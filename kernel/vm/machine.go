package vm

import (
	"fmt"
	"go/types"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// Symbols are compiled packages in yaegi's format: "import/path/name" → exported name → value. A type is a nil pointer
// to it, a variable an addressable value.
type Symbols = map[string]map[string]reflect.Value

// Options are what a machine needs.
type Options struct {
	Program *ssa.Program // built with ssa.InstantiateGenerics
	Symbols Symbols

	// Source reports whether a compiled package is also there with its source, for its generic functions. Nil: none is.
	Source func(*types.Package) bool

	// Local names functions ("time.Sleep") that are made anew for each call, so that they can depend on the execution
	// that calls. They win over Symbols.
	Local map[string]func(*Run) reflect.Value

	Print func(text string)           // where the builtins print and println write
	Panic func(r *Run, failure error) // told when a goroutine of the program ends in a panic; it is called on that goroutine
}

// Machine runs functions of one program. It is safe for concurrent use.
type Machine struct {
	options Options
	program *ssa.Program

	mu        sync.Mutex // guards functions, values and globals
	functions map[*ssa.Function]*function
	values    map[*function]slot // the value of each function
	globals   map[*ssa.Global]unsafe.Pointer

	types   typeTable
	methods sync.Map // methodKey → *function, nil for compiled ones
	threads sync.Map // goroutine → *thread
}

// New returns a machine. It fails where this Go run time has not the layout that the machine relies on.
func New(o Options) (*Machine, error) {
	if err := selfCheck(); err != nil {
		return nil, err
	}
	m := &Machine{
		options: o, program: o.Program, functions: map[*ssa.Function]*function{},
		values: map[*function]slot{}, globals: map[*ssa.Global]unsafe.Pointer{},
	}
	m.types.named = map[*types.Named]*namedType{}
	m.types.byType = map[reflect.Type]*namedType{}
	return m, nil
}

// Run is one execution that can be stopped: a goroutine and those it starts.
type Run struct {
	stopped atomic.Bool
	killed  atomic.Bool // stopped twice: deferred calls end as well
	done    chan struct{}
	once    sync.Once
}

// NewRun returns an execution that has not been stopped.
func NewRun() *Run { return &Run{done: make(chan struct{})} }

// Stop ends the execution at its next loop, call or channel operation; deferred calls run. A second Stop ends them too.
func (r *Run) Stop() {
	if r.stopped.Swap(true) {
		r.killed.Store(true)
	}
	r.once.Do(func() { close(r.done) })
}

// Done is closed when the execution is stopped.
func (r *Run) Done() <-chan struct{} { return r.done }

// Prepare translates functions and all that they call by name, so that what is unsupported shows before anything runs.
func (m *Machine) Prepare(functions ...*ssa.Function) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Unsupported:
			err = r
		default:
			panic(r)
		}
	}()
	seen := map[*ssa.Function]bool{}
	for len(functions) > 0 {
		s := functions[len(functions)-1]
		functions = functions[:len(functions)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		f := m.function(s)
		m.ensure(f)
		functions = append(functions, f.refers...)
	}
	return nil
}

// Call runs a function without parameters and drops its results. The error is a *Panic, an *Unsupported or [ErrStopped].
func (m *Machine) Call(r *Run, s *ssa.Function) (err error) {
	t, leave := m.enter(r)
	defer leave()
	defer func() {
		if v := recover(); v != nil {
			err = t.failure(v)
		}
	}()
	m.call(t, m.function(s), nil, nil, nil)
	return nil
}

// Replace makes every call of old, by name or by an earlier value, a call of a newer function with the same signature.
func (m *Machine) Replace(old, new *ssa.Function) {
	from, to := m.function(old), m.function(new)
	if from != to {
		from.newer.Store(to)
	}
}

// Global returns the variable of a package, as a pointer to it.
func (m *Machine) Global(g *ssa.Global) reflect.Value {
	return reflect.NewAt(m.typeOf(pointee(g.Type())), m.globalAddr(g))
}

// Share makes a variable use the memory of another one, whose type must have the same layout. It comes before anything
// uses the variable.
func (m *Machine) Share(g *ssa.Global, with reflect.Value) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.globals[g] = with.UnsafePointer()
}

// Bind gives a function without body its meaning.
func (m *Machine) Bind(s *ssa.Function, call func(t Caller, args []reflect.Value)) {
	f := m.function(s)
	params := make([]reflect.Type, s.Signature.Params().Len())
	for i := range params {
		params[i] = m.typeOf(s.Signature.Params().At(i).Type())
	}
	f.once.Do(func() { f.ready.Store(true) })
	f.native = func(t *thread, args []slot) slot {
		values := make([]reflect.Value, len(args))
		for i, a := range args {
			values[i] = toValue(a, params[i])
		}
		call(Caller{t}, values)
		return slot{}
	}
}

// Caller is the execution that calls a bound function.
type Caller struct{ t *thread }

// Frames returns the functions under way, outermost first.
func (c Caller) Frames() []Frame { return c.t.trace() }

// function returns the translation of s, which may not have begun.
func (m *Machine) function(s *ssa.Function) *function {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.functions[s]
	if f == nil {
		f = &function{ssa: s}
		m.functions[s] = f
	}
	return f
}

func pointee(t types.Type) types.Type { return t.Underlying().(*types.Pointer).Elem() }

// globalAddr returns where a variable is; for one of a compiled package that is the compiled variable.
func (m *Machine) globalAddr(g *ssa.Global) unsafe.Pointer {
	m.mu.Lock()
	p := m.globals[g]
	m.mu.Unlock()
	if p != nil {
		return p
	}
	if g.Object() != nil && m.compiled(g.Pkg.Pkg) {
		v, ok := m.symbol(g.Pkg.Pkg.Path(), g.Name())
		if !ok || !v.CanAddr() {
			refuse("variable %s.%s of a compiled package is not in the symbol tables", g.Pkg.Pkg.Path(), g.Name())
		}
		return v.Addr().UnsafePointer()
	}
	p = reflect.New(m.typeOf(pointee(g.Type()))).UnsafePointer()
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.globals[g]; old != nil {
		return old
	}
	m.globals[g] = p
	return p
}

// compiled reports whether a package is part of the running program.
func (m *Machine) compiled(p *types.Package) bool {
	return p == types.Unsafe || m.options.Symbols[p.Path()+"/"+p.Name()] != nil || m.sourced(p)
}

func (m *Machine) sourced(p *types.Package) bool {
	return m.options.Source != nil && m.options.Source(p)
}

func (m *Machine) symbol(path, name string) (reflect.Value, bool) {
	base := path
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			base = path[i+1:]
			break
		}
	}
	v, ok := m.options.Symbols[path+"/"+base][name]
	if !ok {
		if p := m.program.ImportedPackage(path); p != nil {
			v, ok = m.options.Symbols[path+"/"+p.Pkg.Name()][name]
		}
	}
	return v, ok
}

// selfCheck tries what the machine relies on in this run time; [New] fails with what is different.
var selfCheck = sync.OnceValue(func() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("vm: this Go run time has another layout than the machine relies on: %v", r)
		}
	}()
	findClosureLayout()
	checkAssertionLayout()
	return checkNamedTypes()
})
