package cell

import (
	"fmt"
	"go/ast"
	"go/types"
)

// deferred evaluates the arguments of a go or defer call at once, as Go does, and keeps a goroutine's panic from ending
// the process.
func (l *lowering) deferred(stmt ast.Stmt, call *ast.CallExpr, isGo bool) {
	temps := ""
	for _, arg := range append(l.receiver(call), call.Args...) {
		tv := l.c.info.Types[arg]
		_, isLit := arg.(*ast.FuncLit)
		if _, isTuple := tv.Type.(*types.Tuple); tv.Value != nil || tv.IsNil() || tv.IsType() || isLit || isTuple {
			continue
		}
		l.temps++
		name := fmt.Sprintf("a__%d", l.temps)
		inner := &lowering{s: l.s, c: l.c, editor: editor{c: l.c}, names: l.names, news: l.news, paths: l.paths, temps: l.temps}
		ast.Inspect(arg, inner.visit)
		l.paths, l.temps = inner.paths, inner.temps
		l.fail(inner.err)
		temps += name + " := " + inner.render(arg.Pos(), arg.End(), l.s.fset) + "; "
		l.replace(arg.Pos(), arg.End(), name)
	}
	lit, isLit := call.Fun.(*ast.FuncLit)
	guard := fmt.Sprintf(" defer func() { if r__ := recover(); r__ != nil { rt__.GoPanic(%d, r__) } }();", l.c.number)
	switch {
	case isGo && isLit:
		l.before(stmt.Pos(), "{ "+temps)
		l.before(lit.Body.Lbrace+1, guard)
		l.after(stmt.End(), " }")
	case isGo:
		l.replace(stmt.Pos(), call.Pos(), "{ "+temps+"go func() {"+guard+" ")
		l.after(stmt.End(), " }() }")
	case temps != "":
		l.before(stmt.Pos(), "{ "+temps)
		l.after(stmt.End(), " }")
	}
}

// receiver returns what a deferred method call is bound to, when that is copied at once: a pointer, an interface, or a
// value whose method takes it by value.
func (l *lowering) receiver(call *ast.CallExpr) []ast.Expr {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || l.c.info.Selections[sel] == nil {
		return nil
	}
	switch l.c.info.TypeOf(sel.X).Underlying().(type) {
	case *types.Pointer, *types.Interface:
		return []ast.Expr{sel.X}
	}
	if f, ok := l.c.info.Uses[sel.Sel].(*types.Func); ok {
		if _, byPointer := f.Signature().Recv().Type().(*types.Pointer); !byPointer {
			return []ast.Expr{sel.X}
		}
	}
	return nil
}

// mustCall writes must(f()) as a function literal of the right types: yaegi cannot infer them.
func (l *lowering) mustCall(call *ast.CallExpr) {
	fun, _ := call.Fun.(*ast.Ident)
	if fun == nil || l.c.info.Uses[fun] != l.s.must {
		return
	}
	t, err := l.typeText(types.Default(l.c.info.TypeOf(call)))
	l.fail(err)
	line := l.s.fset.Position(call.Pos()).Line
	l.replace(call.Pos(), call.Args[0].Pos(), fmt.Sprintf("func() %s { v__, e__ := ", t))
	l.replace(call.Args[len(call.Args)-1].End(), call.End(), fmt.Sprintf("; rt__.Check(e__, %d, %d); return v__ }()", l.c.number, line))
}
