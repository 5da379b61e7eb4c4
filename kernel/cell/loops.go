package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// loop adds the interrupt test, and a copy of each variable that a function literal or pointer of the body may keep:
// since Go 1.22 every turn has its own.
func (l *lowering) loop(body *ast.BlockStmt, vars []*ast.Ident) {
	text := ""
	if !l.inGeneric(body) {
		text = " " + l.poll()
	}
	for _, v := range vars {
		if obj := l.c.info.Defs[v]; obj != nil && l.captured(obj, body) && !l.assigned(obj, body) {
			text += fmt.Sprintf(" %s := %s;", v.Name, v.Name)
		}
	}
	l.before(body.Lbrace+1, text)
}

// inGeneric reports whether a node stands in a generic function, where yaegi loses sight of the flag; only its own cancel
// stops loops there.
func (l *lowering) inGeneric(n ast.Node) bool {
	for _, d := range l.c.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || n.Pos() < f.Pos() || n.Pos() > f.End() {
			continue
		}
		obj, ok := l.c.info.Defs[f.Name].(*types.Func)
		return ok && (obj.Signature().TypeParams().Len() > 0 || obj.Signature().RecvTypeParams().Len() > 0)
	}
	return false
}

func (l *lowering) rangeLoop(n *ast.RangeStmt) {
	var vars []*ast.Ident
	if n.Tok == token.DEFINE {
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
				vars = append(vars, id)
			}
		}
	}
	if t, ok := l.c.info.TypeOf(n.X).Underlying().(*types.Basic); ok && t.Info()&types.IsInteger != 0 {
		l.rangeInt(n, vars)
		vars = nil // each turn has its own already
	}
	l.loop(n.Body, vars)
}

// rangeInt writes `for i := range n` as the three-part loop that yaegi knows.
func (l *lowering) rangeInt(n *ast.RangeStmt, vars []*ast.Ident) {
	l.temps++
	i, limit := fmt.Sprintf("i__%d", l.temps), fmt.Sprintf("n__%d", l.temps)
	typ := l.c.info.TypeOf(n.X)
	if n.Key != nil {
		typ = l.c.info.TypeOf(n.Key)
		if len(vars) == 1 {
			typ = l.c.info.Defs[vars[0]].Type()
		}
	}
	t, err := l.typeText(types.Default(typ))
	l.fail(err)
	l.replace(n.For, n.X.Pos(), fmt.Sprintf("for %s, %s := %s(0), %s(", i, limit, t, t))
	l.after(n.X.End(), fmt.Sprintf("); %s < %s; %s++", i, limit, i))
	switch {
	case len(vars) == 1:
		l.before(n.Body.Lbrace+1, fmt.Sprintf(" %s := %s;", vars[0].Name, i))
	case n.Key != nil && n.Tok == token.ASSIGN:
		l.before(n.Body.Lbrace+1, fmt.Sprintf(" %s = %s;", l.c.text[l.off(n.Key.Pos()):l.off(n.Key.End())], i))
	}
}

func definedIn(init ast.Stmt) []*ast.Ident {
	a, ok := init.(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE {
		return nil
	}
	var vars []*ast.Ident
	for _, e := range a.Lhs {
		if id := e.(*ast.Ident); id.Name != "_" {
			vars = append(vars, id)
		}
	}
	return vars
}

// captured reports whether a function literal in body uses obj, or its address is taken.
func (l *lowering) captured(obj types.Object, body ast.Node) bool {
	found := false
	uses := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && l.c.info.Uses[id] == obj {
			found = true
		}
		return !found
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			ast.Inspect(n.Body, uses)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				ast.Inspect(n.X, uses)
			}
		}
		return !found
	})
	return found
}

// assigned reports whether body changes obj, which a copy would lose.
func (l *lowering) assigned(obj types.Object, body ast.Node) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		var left []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			left = n.Lhs
		case *ast.IncDecStmt:
			left = []ast.Expr{n.X}
		}
		for _, e := range left {
			if id, ok := e.(*ast.Ident); ok && l.c.info.Uses[id] == obj {
				found = true
			}
		}
		return !found
	})
	return found
}
