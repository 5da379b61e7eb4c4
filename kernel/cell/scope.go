package cell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// scope is what earlier cells left: the names that a new cell sees, and what they are called in the interpreter.
type scope struct {
	importer types.Importer
	fset     *token.FileSet
	pkg      *types.Package

	imports map[string]string       // name → import path
	objects map[string]types.Object // live names of package main, predeclared ones included
	order   []string                // names of variables, by declaration
	names   map[types.Object]string // what an object is called in the interpreter, when not by its own name
	version map[string]int          // last version of a name in the interpreter

	sources map[string]string // type name → source of its declaration
	methods map[string][]item // type name → its methods
	must    types.Object
	carries bool // variables move to new versions of their types
}

// checked is a cell that go/types accepts.
type checked struct {
	number int
	text   string // the assembled file
	file   *ast.File
	tfile  *token.File
	info   *types.Info
	pkg    *types.Package
	body   *ast.FuncDecl     // the statements
	fresh  map[string]string // imports of this cell
	dots   []*types.Package  // its dot imports
	items  []item
}

// cellFunc is the function that a cell's statements become.
const cellFunc = "cell__"

func newScope(importer types.Importer) (*scope, error) {
	s := &scope{
		importer: importer, fset: token.NewFileSet(), pkg: types.NewPackage("main", "main"),
		imports: map[string]string{}, objects: map[string]types.Object{},
		names: map[types.Object]string{}, version: map[string]int{}, sources: map[string]string{}, methods: map[string][]item{},
	}
	return s, s.predeclare()
}

// predeclare gives cells ctx, must, display and Display.
func (s *scope) predeclare() error {
	const src = `package predeclared
import "context"
var ctx context.Context
func must[T any](v T, err error) T { return v }`
	f, err := parser.ParseFile(s.fset, "predeclared", src, 0)
	if err != nil {
		return err
	}
	pkg, err := (&types.Config{Importer: s.importer}).Check("predeclared", s.fset, []*ast.File{f}, nil)
	if err != nil {
		return fmt.Errorf("cell: type data: %w", err)
	}
	s.objects["ctx"], s.must = pkg.Scope().Lookup("ctx"), pkg.Scope().Lookup("must")
	s.objects["must"] = s.must
	s.names[s.objects["ctx"]] = "rt__.Ctx()"
	if d, err := s.importer.Import(displayPath); err == nil {
		s.imports["display"] = displayPath
		if show := d.Scope().Lookup("Display"); show != nil {
			s.objects["Display"] = show
		}
	}
	return nil
}

const displayPath = "skep/kernel/display"

// check parses and type-checks a cell against the scope, which it does not change.
func (s *scope) check(code string, number int) (*checked, error) {
	items := s.withEarlier(s.unchanged(split(code, number)))
	items = slices.DeleteFunc(items, func(it item) bool { return scan(it.text)[0].tok == token.PACKAGE })
	if s.carries {
		items = s.withVariables(items, number)
	}
	for _, it := range items {
		if err := parseItem(it); err != nil {
			return nil, syntaxError(err, code)
		}
	}
	c := &checked{number: number, items: items, fresh: map[string]string{}}
	c.text = s.assemble(items, code)
	var err error
	c.file, err = parser.ParseFile(s.fset, "", c.text, parser.SkipObjectResolution)
	if err != nil {
		return nil, syntaxError(err, code)
	}
	c.tfile = s.fset.File(c.file.Package)
	for _, d := range c.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == cellFunc {
			c.body = f
		}
	}
	return c, s.typecheck(c, code)
}

// typecheck runs go/types with the live objects in scope, but for those that the cell declares anew.
func (s *scope) typecheck(c *checked, code string) error {
	// One package and scope for the whole session, emptied for each cell: go/types compares both by pointer, where it
	// asks whether an unexported name may be used and whether a type is local to a function.
	*s.pkg.Scope() = *types.NewScope(types.Universe, token.NoPos, token.NoPos, "main")
	c.pkg = s.pkg
	declared := declaredNames(c.file)
	for name, obj := range s.objects {
		if !declared[name] {
			c.pkg.Scope().Insert(obj)
		}
	}
	c.info = newInfo()
	var errs []types.Error
	last := c.lastExpr()
	conf := types.Config{Importer: s.importer, Sizes: types.SizesFor("gc", "amd64"), Error: func(err error) {
		e, ok := err.(types.Error)
		switch {
		case !ok || e.Soft: // unused variables, imports and labels are no errors in a notebook
		case last != nil && strings.HasSuffix(e.Msg, " is not used") && e.Pos >= last.Pos() && e.Pos <= last.End():
		default:
			errs = append(errs, e)
		}
	}}
	if v := guard(func() { // the error is the first of errs, or one that is none here
		_ = types.NewChecker(&conf, s.fset, c.pkg, c.info).Files([]*ast.File{c.file})
	}); v != nil {
		msg := fmt.Sprintf("go/types fails on this cell: %v", v)
		return &Error{Name: "compile error", Value: msg, Traceback: []string{msg}}
	}
	if len(errs) > 0 {
		return s.typeErrors(errs, code)
	}
	for _, spec := range c.file.Imports {
		name := c.importName(spec)
		switch {
		case name == nil || name.Name() == "_":
		case name.Name() == ".":
			c.dots = append(c.dots, name.Imported())
		default:
			c.fresh[name.Name()] = name.Imported().Path()
		}
	}
	return nil
}

// importName returns the object that an import declares.
func (c *checked) importName(spec *ast.ImportSpec) *types.PkgName {
	var obj types.Object
	if spec.Name != nil {
		obj = c.info.Defs[spec.Name]
	} else {
		obj = c.info.Implicits[spec]
	}
	name, _ := obj.(*types.PkgName)
	return name
}

// lastExpr returns the expression that a cell ends in, nil if it ends otherwise.
func (c *checked) lastExpr() ast.Expr {
	list := c.body.Body.List
	if len(list) == 0 {
		return nil
	}
	if e, ok := list[len(list)-1].(*ast.ExprStmt); ok && len(c.items) > 0 && c.items[len(c.items)-1].kind == stmtItem {
		return e.X
	}
	return nil
}

// declaredNames lists the package-level names of a file.
func declaredNames(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	for _, spec := range f.Imports {
		if spec.Name != nil {
			names[spec.Name.Name] = true
		} else {
			names[lastElement(spec.Path.Value)] = true
		}
	}
	return names
}

var versionSuffix = regexp.MustCompile(`/v[0-9]+$`)

// lastElement guesses a package's name from its quoted path; the importer corrects it where it matters.
func lastElement(quoted string) string {
	p := versionSuffix.ReplaceAllString(strings.Trim(quoted, "\"`"), "")
	return p[strings.LastIndexByte(p, '/')+1:]
}

// assemble writes the file that go/types checks: live imports that the cell may use, then the cell's imports and
// declarations, then a function with its statements. Line directives keep every position the user's own.
func (s *scope) assemble(items []item, code string) string {
	var b strings.Builder
	b.WriteString("package main\n")
	mentioned, own := map[string]bool{}, map[string]bool{}
	for _, it := range items {
		for _, t := range scan(it.text) {
			mentioned[t.lit] = true
		}
		if it.kind == importItem {
			for _, t := range scan(it.text) {
				own[t.lit], own[lastElement(t.lit)] = true, true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.imports)) {
		if mentioned[name] && !own[name] {
			fmt.Fprintf(&b, "import %s %q\n", name, s.imports[name])
		}
	}
	hoisted := hoistedNames(items)
	for _, k := range []kind{importItem, declItem, varItem, stmtItem} {
		for _, it := range items {
			if it.kind == k && k < stmtItem && (k != varItem || hoisted[it.text]) || k == stmtItem && it.kind == k && hoisted[it.text] {
				writeItem(&b, it, hoisted[it.text])
			}
		}
	}
	fmt.Fprintf(&b, "func %s() {\n", cellFunc)
	for _, it := range items {
		if it.kind >= varItem && !hoisted[it.text] {
			writeItem(&b, it, false)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// writeItem writes an item behind a line directive. A hoisted x := v becomes a package variable.
func writeItem(b *strings.Builder, it item, hoist bool) {
	text := it.text
	if hoist && it.kind == stmtItem {
		b.WriteString("var ")
		text = strings.Replace(text, ":=", " =", 1)
	}
	if it.kind == declItem && it.name == "main" || it.name == "init" {
		text = strings.Replace(text, it.name, it.name+"__", 1)
	}
	fmt.Fprintf(b, "/*line %s:%d:%d*/%s\n", cellName(it.cell), it.line, it.col, text)
}

func cellName(number int) string { return fmt.Sprintf("In[%d]", number) }

var declaration = regexp.MustCompile(`^(?:var\s+)?([\pL_][\pL\pN_]*(?:\s*,\s*[\pL_][\pL\pN_]*)*)`)

// hoistedNames finds the variables of a cell that a function of the same cell mentions; they must be declared before it.
func hoistedNames(items []item) map[string]bool {
	inFuncs := map[string]bool{}
	for _, it := range items {
		if it.kind == declItem {
			for _, t := range scan(it.text) {
				if t.tok == token.IDENT {
					inFuncs[t.lit] = true
				}
			}
		}
	}
	hoisted := mutual(items)
	for _, it := range items {
		if it.carries != "" {
			hoisted[it.text] = true
		} else if it.kind == varItem || it.kind == stmtItem && defines(it.text) {
			m := declaration.FindStringSubmatch(it.text)
			if m == nil {
				continue
			}
			for _, name := range strings.Split(m[1], ",") {
				if inFuncs[strings.TrimSpace(name)] {
					hoisted[it.text] = true
				}
			}
		}
	}
	return hoisted
}

// mutual returns the var items of a cell in which one uses a variable that a later one declares: as in a program, their
// order is that of their dependencies.
func mutual(items []item) map[string]bool {
	later, all, found := map[string]bool{}, map[string]bool{}, false
	for _, it := range slices.Backward(items) {
		m := declaration.FindStringSubmatch(it.text)
		if it.kind != varItem || m == nil {
			continue
		}
		all[it.text] = true
		for _, t := range scan(it.text) {
			found = found || later[t.lit]
		}
		for _, name := range strings.Split(m[1], ",") {
			later[strings.TrimSpace(name)] = true
		}
	}
	if !found {
		return map[string]bool{}
	}
	return all
}

// defines reports whether a statement is a short variable declaration.
func defines(text string) bool {
	for _, t := range scan(text) {
		switch t.tok {
		case token.IDENT, token.COMMA:
		case token.DEFINE:
			return true
		default:
			return false
		}
	}
	return false
}

// parseItem parses one item alone, so that an error names its own place.
func parseItem(it item) error {
	var b strings.Builder
	b.WriteString("package main\n")
	wrap := it.kind == stmtItem || it.kind == varItem
	if wrap {
		b.WriteString("func f() {\n")
	}
	fmt.Fprintf(&b, "/*line %s:%d:%d*/%s\n", cellName(it.cell), it.line, it.col, it.text)
	if wrap {
		b.WriteString("}\n")
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", b.String(), parser.SkipObjectResolution)
	return err
}
