package cell

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/tools/go/ssa"

	"skep/kernel/vm"
)

// graceOfVM is how long an interrupt waits for a compiled call before the cell is answered without it.
const graceOfVM = 500 * time.Millisecond

// vmEngine is the Engine on kernel/vm. All cells are one package main for go/types, and one SSA package each.
type vmEngine struct {
	front
	library *Library
	program *ssa.Program
	machine *vm.Machine
	options Options

	members   map[types.Object]ssa.Member // of all cells
	created   map[*types.Package]bool     // packages that the program knows
	functions map[string]*ssa.Function    // newest of each name
	effects   map[types.Object]*effects   // of the functions of all cells
	written   map[any]bool                // what any function of the session writes
	context   *ssa.Global                 // the variable ctx
	check     *types.Func                 // predeclared: fails the cell with a non-nil error

	state sync.Mutex      // guards what follows
	code  map[int]string  // source of each cell, for tracebacks
	runs  map[*vm.Run]int // cells under way or with goroutines: their numbers
}

// NewVM returns an engine on kernel/vm with nothing declared but ctx, must, display and Display. Options.Types must be
// a [Library]. It fails where the machine does not know this Go run time.
func NewVM(o Options) (Engine, error) {
	library, ok := o.Types.(*Library)
	if !ok {
		return nil, fmt.Errorf("cell: the vm engine needs its types from NewLibrary, not from a %T", o.Types)
	}
	s, err := newScope(library)
	if err != nil {
		return nil, err
	}
	s.carries = true
	e := &vmEngine{
		front: front{scope: s}, library: library, options: o, program: ssa.NewProgram(s.fset, ssa.InstantiateGenerics),
		members: map[types.Object]ssa.Member{}, created: map[*types.Package]bool{}, functions: map[string]*ssa.Function{},
		effects: map[types.Object]*effects{}, written: map[any]bool{}, code: map[int]string{}, runs: map[*vm.Run]int{},
	}
	e.machine, err = vm.New(vm.Options{
		Program: e.program, Symbols: notebookSymbols(o), Local: localFuncs(),
		Source: func(p *types.Package) bool { return library.source(p) != nil },
		Print:  func(text string) { fmt.Fprint(o.Stderr, text) },
		Panic:  e.goroutinePanic,
	})
	if err != nil {
		return nil, err
	}
	return e, e.predeclare()
}

// predeclare builds ctx and must as a package of their own.
func (e *vmEngine) predeclare() error {
	const src = `package predeclared
import "context"
var ctx context.Context
func check(err error)
func must[T any](v T, err error) T { check(err); return v }`
	f, err := parser.ParseFile(e.scope.fset, "predeclared", src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	info := newInfo()
	pkg, err := (&types.Config{Importer: e.library, IgnoreFuncBodies: false, Error: func(error) {}}).Check("predeclared", e.scope.fset, []*ast.File{f}, info)
	if pkg == nil {
		return fmt.Errorf("cell: type data: %w", err)
	}
	names := pkg.Scope()
	e.scope.objects["ctx"], e.scope.must = names.Lookup("ctx"), names.Lookup("must")
	e.scope.objects["must"] = e.scope.must
	e.check = names.Lookup("check").(*types.Func)
	for _, p := range pkg.Imports() {
		e.create(p)
	}
	built := e.program.CreatePackage(pkg, []*ast.File{f}, info, false)
	built.Build()
	e.context = built.Var("ctx")
	e.machine.Bind(built.Func("check"), e.checkError)
	return nil
}

// create makes an imported package known to the program; one with source is built. A package that is only mentioned by
// another one's export data is not complete and waits until a cell imports it.
func (e *vmEngine) create(p *types.Package) {
	if e.created[p] || !p.Complete() {
		return
	}
	e.created[p] = true
	for _, q := range p.Imports() {
		e.create(q)
	}
	if src := e.library.source(p); src != nil {
		e.program.CreatePackage(p, src.files, src.info, true).Build()
		return
	}
	e.program.CreatePackage(p, nil, nil, true)
}

// Run checks, builds and runs a cell.
func (e *vmEngine) Run(ctx context.Context, number int, code string) ([]any, error) {
	e.state.Lock()
	e.code[number] = code
	e.state.Unlock()
	e.mu.Lock()
	b, err := e.build(code, number)
	if err == nil {
		e.commit(b)
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	*(e.machine.Global(e.context).Interface().(*context.Context)) = ctx
	r := vm.NewRun()
	e.state.Lock()
	e.runs[r] = number
	e.state.Unlock()
	done := make(chan error, 1)
	go func() { done <- e.execute(r, b) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		r.Stop()
		if !e.waitFor(done, r, &err) {
			return nil, interrupted("a compiled call of it is still running; its result will be dropped")
		}
	}
	if err != nil {
		return nil, e.failure(ctx, err)
	}
	return e.values(b), nil
}

// waitFor waits for the end of a stopped cell; deferred calls that take too long are stopped as well.
func (e *vmEngine) waitFor(done <-chan error, r *vm.Run, err *error) bool {
	for range 2 {
		timer := time.NewTimer(graceOfVM / 2)
		select {
		case *err = <-done:
			timer.Stop()
			return true
		case <-timer.C:
			r.Stop()
		}
	}
	return false
}

// execute runs a built cell: package variables, init, the statements, main.
func (e *vmEngine) execute(r *vm.Run, b *built) error {
	for _, name := range []string{"init", "init__", cellFunc, "main__"} {
		if f := b.pkg.Func(name); f != nil {
			if err := e.machine.Call(r, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// values reads the results of a cell.
func (e *vmEngine) values(b *built) []any {
	var list []any
	for _, name := range b.results {
		list = append(list, e.machine.Global(b.pkg.Var(name)).Elem().Interface())
	}
	return list
}

// built is a cell ready to run.
type built struct {
	*checked
	pkg     *ssa.Package
	results []string // package variables that hold the values of the last expression
	globals []types.Object
	zeroed  map[string]bool // variables declared without a value, outside of the statements
}

// build checks a cell and translates it wholly. It changes nothing that later cells see.
func (e *vmEngine) build(code string, number int) (*built, error) {
	c, err := e.scope.check(code, number)
	if err != nil {
		return nil, err
	}
	b := &built{checked: c, zeroed: map[string]bool{}}
	if err := e.refuse(c); err != nil {
		return nil, err
	}
	file := e.lower(b)
	if err := e.checkOrder(c, file); err != nil {
		return nil, err
	}
	for _, p := range c.pkg.Imports() {
		e.create(p)
	}
	if v := guard(func() {
		b.pkg = e.program.CreatePackage(c.pkg, []*ast.File{file}, c.info, false)
		e.join(b.pkg)
		b.pkg.Build()
	}); v != nil {
		return nil, unsupported(fmt.Errorf("go/ssa fails on this cell: %v", v))
	}
	for _, obj := range b.globals {
		e.shareOld(b, obj)
	}
	if err := e.carry(b); err != nil {
		return nil, err
	}
	var all []*ssa.Function
	for _, m := range b.pkg.Members {
		if f, ok := m.(*ssa.Function); ok && f.TypeParams().Len() == 0 {
			all = append(all, f)
		}
	}
	for _, name := range c.pkg.Scope().Names() {
		all = append(all, e.methods(c.pkg.Scope().Lookup(name))...)
	}
	if err := e.machine.Prepare(all...); err != nil {
		return nil, unsupported(err)
	}
	return b, nil
}

// methods returns the declared methods of a type of this cell.
func (e *vmEngine) methods(obj types.Object) []*ssa.Function {
	t, ok := obj.(*types.TypeName)
	if !ok {
		return nil
	}
	named, ok := t.Type().(*types.Named)
	if !ok || named.TypeParams().Len() > 0 || named.Obj() != obj {
		return nil
	}
	var list []*ssa.Function
	for m := range named.Methods() {
		if f := e.program.FuncValue(m); f != nil {
			list = append(list, f)
		}
	}
	return list
}

// shareOld lets a variable that replaces one of the same type use its memory, so that everything that uses the old one
// sees the new one.
func (e *vmEngine) shareOld(b *built, obj types.Object) {
	v, ok := obj.(*types.Var)
	old, wasVar := e.scope.objects[obj.Name()].(*types.Var)
	if !ok || !wasVar || b.zeroed[obj.Name()] || old.Pkg() != b.checked.pkg || !types.Identical(old.Type(), v.Type()) {
		return
	}
	if g, ok := e.members[old].(*ssa.Global); ok {
		e.machine.Share(b.pkg.Var(obj.Name()), e.machine.Global(g))
	}
}

// commit makes a built cell's names live, just before it runs.
func (e *vmEngine) commit(b *built) {
	e.scope.commit(b.checked)
	for _, d := range b.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "main__" { // main can be called by name later
			named := types.NewFunc(f.Pos(), b.checked.pkg, "main", b.info.Defs[f.Name].Type().(*types.Signature))
			e.scope.objects["main"], e.members[named] = named, b.pkg.Func("main__")
		}
	}
	for name, m := range b.pkg.Members {
		f, ok := m.(*ssa.Function)
		if !ok || f.Object() == nil || f.TypeParams().Len() > 0 {
			continue
		}
		if old := e.functions[name]; old != nil && types.Identical(old.Signature, f.Signature) {
			e.machine.Replace(old, f)
		}
		e.functions[name] = f
	}
}

// join gives a cell's package the members of all cells before it: they are one package for go/types, which go/ssa
// expects to be built at once. It reaches the field objects of ssa.Package (x/tools v0.52.0).
func (e *vmEngine) join(p *ssa.Package) {
	field := reflect.ValueOf(p).Elem().FieldByName("objects")
	if !field.IsValid() || field.Type() != reflect.TypeFor[map[types.Object]ssa.Member]() {
		panic("this go/ssa is not v0.52.0: its packages have other fields")
	}
	objects := (*map[types.Object]ssa.Member)(unsafe.Pointer(field.UnsafeAddr()))
	for obj, m := range *objects {
		e.members[obj] = m
	}
	*objects = e.members
}

func unsupported(err error) error {
	var u *vm.Unsupported
	if errors.As(err, &u) {
		err = u
	}
	msg := err.Error()
	return &Error{
		Name: "not supported", Value: msg, Cause: err,
		Traceback: []string{red("not supported: ") + msg, "The cell is valid Go; say it in another way. Nothing of it has run."},
	}
}

// refuse finds what go/types allows and a cell must not do.
func (e *vmEngine) refuse(c *checked) error {
	var bad *ast.Ident
	ast.Inspect(c.file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN {
			for _, l := range a.Lhs {
				if id, ok := l.(*ast.Ident); ok && c.info.Uses[id] == e.scope.objects["ctx"] && id.Name == "ctx" && c.info.Uses[id].Pkg() != c.pkg {
					bad = id
				}
			}
		}
		return bad == nil
	})
	if bad == nil {
		return nil
	}
	msg := fmt.Sprintf("%s: ctx is predeclared and cannot be assigned; declare your own with :=", e.scope.fset.Position(bad.Pos()))
	return &Error{Name: "compile error", Value: msg, Traceback: []string{red("compile error: ") + msg}}
}
