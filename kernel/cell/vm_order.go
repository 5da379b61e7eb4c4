package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
)

// Go leaves open when a variable beside a call is read, as in x + f() where f changes x. The compiler reads it after the
// call, go/ssa before it. Such an expression is refused, so that no result differs from the compiled program's.

// effects are what a function may do to variables: the variables, fields and kinds of elements that it writes, the
// functions that it calls by name, and whether it calls a function value.
type effects struct {
	writes  map[any]bool
	calls   []types.Object
	dynamic bool
}

// orderCheck looks for reads beside calls that may write the same.
type orderCheck struct {
	info  *types.Info
	main  *types.Package
	known map[types.Object]*effects // functions of this cell and of earlier ones
	all   map[any]bool              // what any function of the session writes
	reads []any                     // of the statement under way, not yet consumed by a call
	bad   ast.Node
}

// checkOrder refuses a cell that reads a variable beside a call that may change it. The effects of its functions are
// kept with the session's.
func (e *vmEngine) checkOrder(c *checked, file *ast.File) error {
	o := &orderCheck{info: c.info, main: c.pkg, known: maps.Clone(e.effects), all: maps.Clone(e.written)}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			o.known[c.info.Defs[f.Name]] = o.effectsOf(f)
			if f.Name.Name == cellFunc {
				continue // a cell's own statements are called by nobody
			}
			maps.Copy(o.all, o.known[c.info.Defs[f.Name]].writes)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			maps.Copy(o.all, o.effectsOf(lit).writes)
		}
		return true
	})
	o.walk(file)
	if o.bad != nil {
		pos := e.scope.fset.Position(o.bad.Pos())
		return unsupported(fmt.Errorf("%s: what stands left of this call is read by compiled Go after the call, which may change it: put the call in a statement of its own before", pos))
	}
	e.effects, e.written = o.known, o.all
	return nil
}

// effectsOf collects what a function does, with its function literals, to what it did not declare itself.
func (o *orderCheck) effectsOf(function ast.Node) *effects {
	f := &effects{writes: map[any]bool{}}
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				f.writes[o.place(l)] = true
			}
		case *ast.IncDecStmt:
			f.writes[o.place(n.X)] = true
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				f.writes[o.place(n.X)] = true
			}
		case *ast.CallExpr:
			callee, dynamic := o.callee(n)
			f.dynamic = f.dynamic || dynamic
			if callee != nil {
				f.calls = append(f.calls, callee)
			}
		}
		return true
	})
	maps.DeleteFunc(f.writes, func(p any, _ bool) bool {
		v, ok := p.(*types.Var)
		return p == nil || ok && !v.IsField() && v.Parent() != nil && v.Pos() >= function.Pos() && v.Pos() < function.End()
	})
	return f
}

// place names what an expression reads or writes: a variable, a field, or elements of a type.
func (o *orderCheck) place(x ast.Expr) any {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if v, ok := o.info.ObjectOf(x).(*types.Var); ok {
			return v
		}
	case *ast.SelectorExpr:
		if v, ok := o.info.Uses[x.Sel].(*types.Var); ok {
			return v
		}
	case *ast.IndexExpr:
		if tv := o.info.Types[x]; tv.IsValue() {
			return "element " + tv.Type.String()
		}
	case *ast.StarExpr:
		if tv := o.info.Types[x]; tv.IsValue() {
			return "element " + tv.Type.String()
		}
	}
	return nil
}

// callee returns the function of a cell that a call names; dynamic means that it may call any.
func (o *orderCheck) callee(call *ast.CallExpr) (f types.Object, dynamic bool) {
	fun := ast.Unparen(call.Fun)
	if tv := o.info.Types[fun]; tv.IsType() || tv.IsBuiltin() {
		return nil, false
	}
	if i, ok := fun.(*ast.IndexExpr); ok {
		fun = i.X
	}
	id, _ := fun.(*ast.Ident)
	if s, ok := fun.(*ast.SelectorExpr); ok {
		id = s.Sel
	}
	if id == nil {
		return nil, true
	}
	named, ok := o.info.Uses[id].(*types.Func)
	if !ok {
		return nil, true
	}
	obj := types.Object(named.Origin())
	switch {
	case obj.Pkg() == o.main && o.known[obj] != nil:
		return obj, false
	case obj.Pkg() == o.main:
		return nil, true // a method of an interface
	}
	for _, a := range call.Args {
		if t := o.info.TypeOf(a); t != nil {
			if _, isFunc := t.Underlying().(*types.Signature); isFunc {
				return nil, true
			}
		}
	}
	return nil, false
}

// writes reports whether a call may write one of the places.
func (o *orderCheck) writes(call *ast.CallExpr, places []any) bool {
	f, dynamic := o.callee(call)
	todo, seen := []types.Object{f}, map[types.Object]bool{nil: true}
	for i := 0; i < len(todo); i++ {
		if seen[todo[i]] {
			continue
		}
		seen[todo[i]] = true
		if e := o.known[todo[i]]; e != nil {
			dynamic = dynamic || e.dynamic
			todo = append(todo, e.calls...)
			for _, p := range places {
				if e.writes[p] {
					return true
				}
			}
		}
	}
	for _, p := range places {
		if dynamic && o.all[p] {
			return true
		}
	}
	return false
}

// walk visits a statement or expression in the order of evaluation.
func (o *orderCheck) walk(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncLit:
		outer := o.reads
		o.children(n)
		o.reads = outer
		return
	case *ast.AssignStmt:
		o.reads = nil
		for _, l := range n.Lhs {
			if _, plain := l.(*ast.Ident); !plain {
				o.children(l)
			} else if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
				o.walk(l)
			}
		}
		for _, r := range n.Rhs {
			o.walk(r)
		}
		return
	case *ast.CallExpr:
		before := len(o.reads)
		o.children(n)
		if o.writes(n, o.reads[:before]) && o.bad == nil {
			o.bad = n
		}
		o.reads = o.reads[:before]
		return
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			o.children(n.X)
			return
		}
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			before := len(o.reads)
			o.walk(n.X)
			o.reads = o.reads[:before]
			o.walk(n.Y)
			o.reads = o.reads[:before]
			return
		}
	case ast.Stmt:
		o.reads = nil
	case ast.Expr:
		o.children(n)
		if p := o.place(n); p != nil {
			o.reads = append(o.reads, p)
		}
		return
	}
	o.children(n)
}

func (o *orderCheck) children(n ast.Node) {
	ast.Inspect(n, func(c ast.Node) bool {
		if c == nil || c == n {
			return c == n
		}
		o.walk(c)
		return false
	})
}
