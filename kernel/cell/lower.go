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
