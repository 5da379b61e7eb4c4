package cell

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// vmLowering turns the statements of a checked cell into a function body over package variables. It edits the syntax
// tree and what go/types said about it, never the text: every position stays the user's own.
type vmLowering struct {
	e     *vmEngine
	b     *built
	moved map[types.Object]types.Object // variables of the statements → package variables
	vars  []ast.Decl
	temps int
}

// lower returns the file that go/ssa builds. The checked file stays as it is, but for the objects that its names stand
// for.
func (e *vmEngine) lower(b *built) *ast.File {
	l := &vmLowering{e: e, b: b, moved: map[types.Object]types.Object{}}
	for _, obj := range b.checked.globals() {
		if v, ok := obj.(*types.Var); ok && v.Parent() != b.checked.pkg.Scope() {
			obj = l.variable(v.Name(), v.Type(), v.Pos())
			l.moved[v] = obj
		}
		b.globals = append(b.globals, obj)
	}
	l.rename(b.info.Defs)
	l.rename(b.info.Uses)
	for _, d := range b.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				if spec := spec.(*ast.ValueSpec); len(spec.Values) == 0 {
					for _, n := range spec.Names {
						b.zeroed[n.Name] = true
					}
				}
			}
		}
	}
	body := *b.body
	body.Body = &ast.BlockStmt{Lbrace: b.body.Body.Lbrace, List: l.statements(b.body.Body.List), Rbrace: b.body.Body.Rbrace}
	file := *b.file
	file.Decls = nil
	for _, d := range b.file.Decls {
		if d == ast.Decl(b.body) {
			d = &body
		}
		file.Decls = append(file.Decls, d)
	}
	file.Decls = append(file.Decls, l.vars...)
	return &file
}

func (l *vmLowering) rename(objects map[*ast.Ident]types.Object) {
	for id, obj := range objects {
		if to := l.moved[obj]; to != nil {
			objects[id] = to
		}
	}
}

// variable declares a package variable.
func (l *vmLowering) variable(name string, t types.Type, pos token.Pos) *types.Var {
	v := types.NewVar(pos, l.b.checked.pkg, name, t)
	id := &ast.Ident{Name: name, NamePos: pos}
	l.b.info.Defs[id] = v
	l.vars = append(l.vars, &ast.GenDecl{Tok: token.VAR, TokPos: pos, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{id}}}})
	return v
}

// temporary declares a variable that no cell can name.
func (l *vmLowering) temporary(kind string, t types.Type, pos token.Pos) *types.Var {
	l.temps++
	return l.variable(fmt.Sprintf("%s__%d", kind, l.temps), t, pos)
}

// use is a mention of an object.
func (l *vmLowering) use(obj types.Object, pos token.Pos) *ast.Ident {
	id := &ast.Ident{Name: obj.Name(), NamePos: pos}
	l.b.info.Uses[id] = obj
	l.b.info.Types[id] = types.TypeAndValue{Type: obj.Type()}
	return id
}

func (l *vmLowering) statements(list []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for i, st := range list {
		last := i == len(list)-1 && l.b.lastExpr() != nil
		out = append(out, l.statement(st, last)...)
	}
	return out
}

// statement makes definitions assignments, lets call statements fail the cell, and keeps the values of the last
// expression.
func (l *vmLowering) statement(st ast.Stmt, last bool) []ast.Stmt {
	switch st := st.(type) {
	case *ast.AssignStmt:
		if st.Tok == token.DEFINE {
			assign := *st
			assign.Tok = token.ASSIGN
			return []ast.Stmt{&assign}
		}
	case *ast.DeclStmt:
		if d := st.Decl.(*ast.GenDecl); d.Tok == token.VAR {
			return l.declaration(d)
		}
	case *ast.ExprStmt:
		return l.expression(st, last)
	}
	return []ast.Stmt{st}
}

// declaration turns var lines into assignments; a variable without a value is set to zero.
func (l *vmLowering) declaration(d *ast.GenDecl) []ast.Stmt {
	var out []ast.Stmt
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		assign := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: spec.Pos(), Rhs: spec.Values}
		for _, n := range spec.Names {
			assign.Lhs = append(assign.Lhs, n)
			if len(spec.Values) == 0 && n.Name != "_" {
				v := l.b.info.Defs[n]
				assign.Rhs = append(assign.Rhs, l.use(l.temporary("zero", v.Type(), n.Pos()), n.Pos()))
			} else if len(spec.Values) == 0 {
				assign.Lhs = assign.Lhs[:len(assign.Lhs)-1]
			}
		}
		if len(assign.Lhs) > 0 {
			out = append(out, assign)
		}
	}
	return out
}

func (l *vmLowering) expression(st *ast.ExprStmt, last bool) []ast.Stmt {
	tv := l.b.info.Types[st.X]
	if tv.IsVoid() || tv.Type == nil || isPrinterCall(l.b.info, st.X) {
		return []ast.Stmt{st}
	}
	if tv.IsNil() || tv.IsType() {
		return nil
	}
	var results []types.Type
	if tuple, ok := tv.Type.(*types.Tuple); ok {
		for v := range tuple.Variables() {
			results = append(results, v.Type())
		}
	} else {
		results = []types.Type{types.Default(tv.Type)}
		l.settle(st.X)
	}
	assign := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: st.Pos(), Rhs: []ast.Expr{st.X}}
	out := []ast.Stmt{assign}
	for i, t := range results {
		switch {
		case i == len(results)-1 && isError(t):
			v := l.temporary("err", t, st.Pos())
			assign.Lhs = append(assign.Lhs, l.use(v, st.Pos()))
			out = append(out, l.checkCall(v, st.Pos()))
		case last:
			v := l.temporary("result", t, st.Pos())
			assign.Lhs = append(assign.Lhs, l.use(v, st.Pos()))
			l.b.results = append(l.b.results, v.Name())
		default:
			assign.Lhs = append(assign.Lhs, &ast.Ident{Name: "_", NamePos: st.Pos()})
		}
	}
	return out
}

// settle gives what is still untyped and no constant its default type, as an assignment would have.
func (l *vmLowering) settle(x ast.Expr) {
	tv := l.b.info.Types[x]
	if b, ok := tv.Type.(*types.Basic); !ok || b.Info()&types.IsUntyped == 0 || tv.Value != nil {
		return
	}
	tv.Type = types.Default(tv.Type)
	l.b.info.Types[x] = tv
	switch x := x.(type) {
	case *ast.ParenExpr:
		l.settle(x.X)
	case *ast.UnaryExpr:
		l.settle(x.X)
	case *ast.BinaryExpr:
		switch x.Op {
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		case token.SHL, token.SHR:
			l.settle(x.X)
		default:
			l.settle(x.X)
			l.settle(x.Y)
		}
	}
}

// checkCall is the statement that fails the cell when v is an error.
func (l *vmLowering) checkCall(v *types.Var, pos token.Pos) ast.Stmt {
	call := &ast.CallExpr{Fun: l.use(l.e.check, pos), Lparen: pos, Args: []ast.Expr{l.use(v, pos)}, Rparen: pos}
	l.b.info.Types[call] = types.TypeAndValue{Type: types.NewTuple()}
	return &ast.ExprStmt{X: call}
}
