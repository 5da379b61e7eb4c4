package cell

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// statements returns the cell's statements and hoisted variables in the user's order, ready to stand in one function.
func (l *lowering) statements() []string {
	type piece struct {
		at   token.Position
		text string
	}
	var pieces []piece
	add := func(n ast.Node, text string) {
		pieces = append(pieces, piece{l.s.fset.Position(n.Pos()), text})
	}
	for _, d := range l.c.file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.VAR {
			add(d, l.variables(d))
		}
	}
	list := l.c.body.Body.List
	for i, st := range list {
		last := i == len(list)-1 && l.c.lastExpr() != nil
		add(st, l.statement(st, last))
	}
	slices.SortStableFunc(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = fmt.Sprintf("%s rt__.Line(%d, %d); %s", l.poll(), l.c.number, p.at.Line, p.text)
	}
	return texts
}

// statement turns one top-level statement into its text: definitions assign to globals, call statements check their
// error, the last expression gives the cell's result.
func (l *lowering) statement(st ast.Stmt, last bool) string {
	switch st := st.(type) {
	case *ast.AssignStmt:
		if st.Tok == token.DEFINE {
			l.replace(st.TokPos, st.TokPos+2, "=")
			// The names on the left were given globals; visit renamed them.
		}
	case *ast.DeclStmt:
		if d := st.Decl.(*ast.GenDecl); d.Tok == token.VAR {
			return l.variables(d)
		}
	case *ast.ExprStmt:
		return l.expression(st, last)
	}
	return l.render(st.Pos(), st.End(), l.s.fset)
}

// variables turns a var declaration into assignments: a variable without a value is set to zero, as on every run of
// the declaration.
func (l *lowering) variables(d *ast.GenDecl) string {
	var lines []string
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		names := make([]string, len(spec.Names))
		for i, n := range spec.Names {
			names[i] = n.Name
			if obj := l.c.info.Defs[n]; obj != nil && n.Name != "_" {
				names[i] = l.name(obj)
			}
		}
		if len(spec.Values) == 0 {
			for i, n := range spec.Names {
				if obj := l.c.info.Defs[n]; obj != nil && n.Name != "_" {
					t, err := l.typeText(obj.Type())
					l.fail(err)
					lines = append(lines, fmt.Sprintf("{ var z__ %s; %s = z__ }", t, names[i]))
				}
			}
			continue
		}
		values := l.render(spec.Values[0].Pos(), spec.Values[len(spec.Values)-1].End(), l.s.fset)
		lines = append(lines, strings.Join(names, ", ")+" = "+values)
	}
	return strings.Join(lines, "; ")
}

// printers are functions whose results nobody wants to see.
var printers = map[string]bool{
	"fmt.Print": true, "fmt.Printf": true, "fmt.Println": true, "fmt.Fprint": true, "fmt.Fprintf": true, "fmt.Fprintln": true,
}

func (l *lowering) expression(st *ast.ExprStmt, last bool) string {
	text := l.render(st.Pos(), st.End(), l.s.fset)
	tv := l.c.info.Types[st.X]
	if tv.IsVoid() || tv.Type == nil || isPrinterCall(l.c.info, st.X) {
		return text
	}
	if tv.IsNil() || tv.IsType() {
		return "_ = 0"
	}
	results := []types.Type{tv.Type}
	if tuple, ok := tv.Type.(*types.Tuple); ok {
		results = nil
		for v := range tuple.Variables() {
			results = append(results, v.Type())
		}
	}
	names := make([]string, len(results))
	var after []string
	for i, t := range results {
		l.temps++
		name := fmt.Sprintf("r__%d", l.temps)
		switch {
		case i == len(results)-1 && isError(t):
			line := l.s.fset.Position(st.Pos()).Line
			after = append([]string{fmt.Sprintf("rt__.Check(%s, %d, %d)", name, l.c.number, line)}, after...)
		case last:
			after = append(after, fmt.Sprintf("rt__.Result(%d, %s)", l.c.number, name))
		default:
			name = "_"
		}
		names[i] = name
	}
	if len(after) == 0 {
		return text
	}
	return "{ " + strings.Join(names, ", ") + " := " + text + "; " + strings.Join(after, "; ") + " }"
}

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// isPrinterCall reports whether e calls one of the printers.
func isPrinterCall(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := info.Uses[sel.Sel].(*types.Func)
	return ok && printers[f.FullName()]
}
