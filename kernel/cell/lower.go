package cell

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// lowering turns one checked cell into text that yaegi runs rightly. It edits, never prints: what the user wrote stays,
// at its place. It writes statements into one function, makes top-level variables globals of their checked types, and
// mends what would end the process or go silently wrong in a plain session; what yaegi cannot do stays its error.
type lowering struct {
	s *scope
	c *checked
	editor

	names map[types.Object]string // new names in the interpreter
	news  map[string]int          // new last versions
	paths []string                // packages that the text refers to

	declared []string // var lines
	temps    int
	err      error
}

// program is a lowered cell: chunks that declare, then the function to run.
type program struct {
	imports []string // paths
	chunks  []string // evaluated in order
	name    string   // the function with the statements
	names   map[types.Object]string
	news    map[string]int
}

// lower never changes the scope.
func (s *scope) lower(c *checked) (*program, error) {
	l := &lowering{s: s, c: c, editor: editor{c: c}, names: map[types.Object]string{}, news: map[string]int{}}
	globals := c.globals()
	for _, obj := range globals {
		l.declare(obj)
	}
	for _, f := range l.specialFuncs() {
		l.declare(c.info.Defs[f.Name])
	}
	for _, d := range c.file.Decls {
		ast.Inspect(d, l.visit)
	}
	p := l.program()
	if l.err != nil {
		return nil, &Error{Name: "compile error", Value: l.err.Error(), Traceback: []string{red("compile error: ") + l.err.Error()}}
	}
	return p, nil
}

// specialFuncs returns the cell's init and main functions.
func (l *lowering) specialFuncs() []*ast.FuncDecl {
	var fs []*ast.FuncDecl
	for _, d := range l.c.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && (f.Name.Name == "main__" || f.Name.Name == "init__") {
			fs = append(fs, f)
		}
	}
	slices.SortStableFunc(fs, func(a, b *ast.FuncDecl) int { return cmp.Compare(a.Name.Name, b.Name.Name) })
	return fs
}

// declare gives an object its name in the interpreter. A variable or function that replaces one of the same type takes
// over its name, so that everything that uses it sees the new one; anything else gets a new version of the name.
func (l *lowering) declare(obj types.Object) {
	old := l.s.objects[obj.Name()]
	_, isVar := obj.(*types.Var)
	isFunc := plainFunc(obj)
	if (isVar || isFunc) && old != nil && old.Pkg() == l.s.pkg && types.Identical(old.Type(), obj.Type()) && (isVar && isVariable(old) || isFunc && plainFunc(old)) {
		l.names[obj] = l.s.nameOf(old)
		return
	}
	name := obj.Name()
	n := max(l.s.version[name], l.news[name]) + 1
	l.news[name] = n
	if n > 1 {
		name = fmt.Sprintf("%s__%d", name, n)
	}
	l.names[obj] = name
	if isVar || isFunc {
		t, err := l.typeText(obj.Type())
		l.fail(err)
		l.declared = append(l.declared, "var "+name+" "+t)
	}
}

// plainFunc reports whether obj is a function that can live in a variable, which lets callers see its redefinition.
func plainFunc(obj types.Object) bool {
	f, ok := obj.(*types.Func)
	return ok && f.Signature().TypeParams().Len() == 0
}

func isVariable(obj types.Object) bool {
	_, ok := obj.(*types.Var)
	return ok
}

func (s *scope) nameOf(obj types.Object) string {
	if n, ok := s.names[obj]; ok {
		return n
	}
	return obj.Name()
}

// name returns what an object of package main, or a predeclared one, is called.
func (l *lowering) name(obj types.Object) string {
	if n, ok := l.names[obj]; ok {
		return n
	}
	return l.s.nameOf(obj)
}

// alias returns the interpreter's name of a package and notes that it is needed.
func (l *lowering) alias(path string) string {
	if !slices.Contains(l.paths, path) {
		l.paths = append(l.paths, path)
	}
	return packageAlias(path)
}

func packageAlias(path string) string {
	var b strings.Builder
	b.WriteString("pk__")
	for _, r := range path {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "_%x_", r)
		}
	}
	return b.String()
}

func (l *lowering) fail(err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
}

// visit edits one node.
func (l *lowering) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	case *ast.SelectorExpr:
		l.selector(n)
	case *ast.Ident:
		l.ident(n)
	case *ast.ForStmt:
		l.loop(n.Body, definedIn(n.Init))
	case *ast.RangeStmt:
		l.rangeLoop(n)
	case *ast.GoStmt:
		l.deferred(n, n.Call, true)
	case *ast.DeferStmt:
		l.deferred(n, n.Call, false)
	case *ast.CallExpr:
		l.mustCall(n)
	case *ast.CompositeLit:
		l.elided(n)
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			l.notPredeclared(e)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			l.notPredeclared(n.X)
		}
	}
	return true
}

// notPredeclared refuses to change ctx, which is the running cell's.
func (l *lowering) notPredeclared(e ast.Expr) {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		if obj := l.c.info.Uses[id]; obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "predeclared" {
			l.fail(fmt.Errorf("%s: %s is predeclared and cannot be assigned; declare your own with :=", l.s.fset.Position(id.Pos()), id.Name))
		}
	}
}

// elided writes the type of an inner literal that leaves it out, where it is a named one: yaegi does not find those of
// compiled packages.
func (l *lowering) elided(n *ast.CompositeLit) {
	t := l.c.info.TypeOf(n)
	if n.Type != nil || t == nil {
		return
	}
	address := ""
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		address, t = "&", p.Elem()
	}
	if _, named := types.Unalias(t).(*types.Named); !named {
		return
	}
	text, err := l.typeText(t)
	l.fail(err)
	l.before(n.Pos(), address+text)
}

// selector replaces time.Sleep, which could not be interrupted.
func (l *lowering) selector(n *ast.SelectorExpr) {
	if f, ok := l.c.info.Uses[n.Sel].(*types.Func); ok && f.FullName() == "time.Sleep" {
		l.replace(n.Pos(), n.End(), fmt.Sprintf("rt__.SleepIn(%d)", l.c.number))
	}
}

// ident renames what the interpreter calls otherwise: packages, versions, predeclared and dot-imported names.
func (l *lowering) ident(id *ast.Ident) {
	obj := l.c.info.Uses[id]
	if obj == nil {
		obj = l.c.info.Defs[id]
	}
	switch obj := obj.(type) {
	case nil:
	case *types.PkgName:
		l.replace(id.Pos(), id.End(), l.alias(obj.Imported().Path()))
	default:
		name := l.name(obj)
		if p := obj.Pkg(); p != nil && p != l.c.pkg && obj.Parent() == p.Scope() && p.Path() != "main" && p.Path() != "predeclared" && !l.isSelected(id) {
			name = l.alias(p.Path()) + "." + obj.Name()
		}
		if name != id.Name && !l.isSelected(id) {
			l.replace(id.Pos(), id.End(), name)
		}
		l.instance(id)
	}
}

// instance writes the type arguments that Go infers for a generic function and yaegi does not.
func (l *lowering) instance(id *ast.Ident) {
	inst, ok := l.c.info.Instances[id]
	if _, isFunc := inst.Type.(*types.Signature); !ok || !isFunc || l.c.info.Uses[id] == l.s.must || strings.HasPrefix(l.c.text[l.off(id.End()):], "[") {
		return
	}
	args := make([]string, inst.TypeArgs.Len())
	for i := range args {
		text, err := l.typeText(inst.TypeArgs.At(i))
		l.fail(err)
		args[i] = text
	}
	l.after(id.End(), "["+strings.Join(args, ", ")+"]")
}

// isSelected reports whether id is what stands behind a dot.
func (l *lowering) isSelected(id *ast.Ident) bool {
	before := strings.TrimRight(l.c.text[:l.off(id.Pos())], " \t\n")
	return strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "...")
}

// poll is the test that a loop makes on every turn: has this cell been interrupted?
func (l *lowering) poll() string { return fmt.Sprintf(pollText, l.c.number) }

// program puts the edited pieces together.
func (l *lowering) program() *program {
	var types, consts, methods, generics, body []string
	for _, d := range l.c.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			text, assign := l.function(d)
			switch {
			case d == l.c.body:
			case assign:
				body = append(body, text)
			case d.Recv != nil:
				methods = append(methods, text)
			default:
				generics = append(generics, text)
			}
		case *ast.GenDecl:
			text := l.render(d.Pos(), d.End(), l.s.fset)
			switch d.Tok {
			case token.TYPE:
				types = append(types, text)
			case token.CONST:
				consts = append(consts, text)
			}
		}
	}
	special := l.specialFuncs()
	for _, f := range special {
		if f.Name.Name == "init__" {
			body = append(body, l.name(l.c.info.Defs[f.Name])+"()")
		}
	}
	body = append(body, l.statements()...)
	for _, f := range special {
		if f.Name.Name == "main__" {
			body = append(body, l.name(l.c.info.Defs[f.Name])+"()")
		}
	}
	name := cellFunc + strconv.Itoa(l.c.number)
	p := &program{imports: l.paths, name: name, names: l.names, news: l.news}
	flag := []string{fmt.Sprintf("var stop__%d = rt__.Flag(%d)", l.c.number, l.c.number)}
	for _, chunk := range [][]string{flag, types, consts, l.declared, methods, generics} {
		if len(chunk) > 0 {
			p.chunks = append(p.chunks, strings.Join(chunk, "\n"))
		}
	}
	p.chunks = append(p.chunks, fmt.Sprintf("func %s() {\n%s\n}", name, strings.Join(body, "\n")))
	return p
}

// function returns a function's text; assign means that it is an assignment to the function's variable.
func (l *lowering) function(d *ast.FuncDecl) (text string, assign bool) {
	obj, _ := l.c.info.Defs[d.Name].(*types.Func)
	if d == l.c.body || d.Body == nil || obj == nil || d.Recv != nil || !plainFunc(obj) {
		return l.render(d.Pos(), d.End(), l.s.fset), false
	}
	return l.name(obj) + " = func" + l.render(d.Type.Params.Pos(), d.End(), l.s.fset), true
}
