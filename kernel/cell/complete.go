package cell

import (
	"cmp"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Complete lists members behind a dot, else names in scope, package names and keywords.
func (f *front) Complete(code string, cursor int) Completion {
	f.mu.Lock()
	defer f.mu.Unlock()
	start := wordStart(code, cursor)
	c := Completion{Start: start, End: cursor}
	prefix := code[start:cursor]
	var items []Item
	if operand, ok := operandBefore(code, start); ok {
		items = f.scope.members(code[:start-1], operand)
	} else {
		items = f.scope.visible(code[:start])
	}
	for _, it := range items {
		if strings.HasPrefix(it.Text, prefix) {
			c.Items = append(c.Items, it)
		}
	}
	slices.SortFunc(c.Items, func(a, b Item) int { return cmp.Compare(a.Text, b.Text) })
	c.Items = slices.Compact(c.Items)
	return c
}

// Inspect describes the name under or before the cursor.
func (f *front) Inspect(code string, cursor int) (Inspection, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	start := wordStart(code, cursor)
	end := cursor
	for end < len(code) && isWord(rune(code[end])) {
		end++
	}
	if start == end { // behind "f(": the function is meant
		trimmed := strings.TrimRight(code[:cursor], "( \t\n")
		start, end = wordStart(trimmed, len(trimmed)), len(trimmed)
	}
	name := code[start:end]
	if name == "" {
		return Inspection{}, false
	}
	if operand, ok := operandBefore(code, start); ok {
		for _, obj := range f.scope.memberObjects(code[:start-1], operand) {
			if obj.Name() == name {
				return describe(obj), true
			}
		}
		return Inspection{}, false
	}
	if obj := f.scope.lookup(name); obj != nil {
		return describe(obj), true
	}
	return Inspection{}, false
}

func describe(obj types.Object) Inspection {
	return Inspection{Name: obj.Name(), Declaration: types.ObjectString(obj, shortNames)}
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func wordStart(code string, cursor int) int {
	for cursor > 0 {
		r, size := utf8.DecodeLastRuneInString(code[:cursor])
		if !isWord(r) {
			break
		}
		cursor -= size
	}
	return cursor
}

// operandBefore returns the expression that ends at the dot before start: names, calls, indexes and dots, taken
// backwards with balanced brackets.
func operandBefore(code string, start int) (string, bool) {
	if start == 0 || code[start-1] != '.' {
		return "", false
	}
	end := start - 1
	depth, i := 0, end
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(code[:i])
		switch {
		case r == ')' || r == ']' || r == '}':
			depth++
		case r == '(' || r == '[' || r == '{':
			depth--
		case depth == 0 && !isWord(r) && r != '.':
			depth = -1
		}
		if depth < 0 {
			break
		}
		i -= size
	}
	operand := strings.TrimSpace(code[i:end])
	return operand, operand != ""
}

// memberObjects lists what may stand behind operand's dot. The type of operand is found in the cell so far, of which
// as much is used as parses, then in the session.
func (s *scope) memberObjects(before, operand string) []types.Object {
	if path, ok := s.packagePath(before, operand); ok {
		pkg, err := s.importer.Import(path)
		if err != nil {
			return nil
		}
		return exported(pkg)
	}
	t := s.typeOf(before, operand)
	if t == nil {
		return nil
	}
	return membersOf(t)
}

func (s *scope) members(before, operand string) []Item {
	var items []Item
	for _, obj := range s.memberObjects(before, operand) {
		items = append(items, itemOf(obj))
	}
	return items
}

// packagePath resolves a package name from the cell's own imports or the session's.
func (s *scope) packagePath(before, name string) (string, bool) {
	for _, it := range split(before, 0) {
		if it.kind != importItem {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+it.text, parser.ImportsOnly)
		if err != nil {
			continue
		}
		for _, spec := range f.Imports {
			if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && lastElement(spec.Path.Value) == name {
				return strings.Trim(spec.Path.Value, "\"`"), true
			}
		}
	}
	if path, ok := s.imports[name]; ok {
		return path, true
	}
	if _, shadowed := s.objects[name]; shadowed {
		return "", false
	}
	path, ok := wellKnown[name]
	return path, ok
}

func exported(pkg *types.Package) []types.Object {
	var objs []types.Object
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			objs = append(objs, obj)
		}
	}
	return objs
}

// typeOf finds the type of an expression at the end of an unfinished cell: the longest run of its items that checks is
// put before it.
func (s *scope) typeOf(before, operand string) types.Type {
	items := split(before, 0)
	for n := len(items); n >= 0; n-- {
		var b strings.Builder
		for _, it := range items[:n] {
			b.WriteString(it.text + "\n")
		}
		b.WriteString(operand)
		c, err := s.check(b.String(), 0)
		if err != nil || c.lastExpr() == nil {
			continue
		}
		return c.info.TypeOf(c.lastExpr())
	}
	return nil
}

// membersOf lists fields and methods, also promoted ones, that can be selected on a variable of type t.
func membersOf(t types.Type) []types.Object {
	var objs []types.Object
	seen := map[string]bool{}
	add := func(obj types.Object) {
		if (obj.Exported() || obj.Pkg() != nil && obj.Pkg().Path() == "main") && !seen[obj.Name()] {
			seen[obj.Name()] = true
			objs = append(objs, obj)
		}
	}
	receiver := t
	if _, isPointer := t.Underlying().(*types.Pointer); !isPointer && !types.IsInterface(t) {
		receiver = types.NewPointer(t)
	}
	for sel := range types.NewMethodSet(receiver).Methods() {
		add(sel.Obj())
	}
	addFields(t, add, 0)
	return objs
}

func addFields(t types.Type, add func(types.Object), depth int) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	st, ok := t.Underlying().(*types.Struct)
	if !ok || depth > 4 {
		return
	}
	for f := range st.Fields() {
		add(f)
		if f.Embedded() {
			addFields(f.Type(), add, depth+1)
		}
	}
}

// visible lists the names that may begin an expression: the cell's own, the session's, universe, packages, keywords.
func (s *scope) visible(before string) []Item {
	var items []Item
	for _, t := range scan(before) {
		if t.tok == token.IDENT {
			items = append(items, Item{Text: t.lit, Kind: "variable"})
		}
	}
	for _, obj := range s.objects {
		items = append(items, itemOf(obj))
	}
	for name, path := range s.imports {
		items = append(items, Item{Text: name, Kind: "module", Signature: path})
	}
	for name, path := range wellKnown {
		items = append(items, Item{Text: name, Kind: "module", Signature: path})
	}
	for _, name := range types.Universe.Names() {
		items = append(items, itemOf(types.Universe.Lookup(name)))
	}
	for t := token.BREAK; t <= token.VAR; t++ {
		items = append(items, Item{Text: t.String(), Kind: "keyword"})
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(len(b.Signature), len(a.Signature)))
	})
	return slices.CompactFunc(items, func(a, b Item) bool { return a.Text == b.Text })
}

// lookup finds a name of the session, of a package or of the language.
func (s *scope) lookup(name string) types.Object {
	if obj := s.objects[name]; obj != nil {
		return obj
	}
	if path, ok := s.packagePath("", name); ok {
		if pkg, err := s.importer.Import(path); err == nil {
			return types.NewPkgName(token.NoPos, nil, name, pkg)
		}
	}
	return types.Universe.Lookup(name)
}

func itemOf(obj types.Object) Item {
	it := Item{Text: obj.Name()}
	if obj.Type() != nil {
		it.Signature = types.TypeString(obj.Type(), shortNames)
	}
	switch o := obj.(type) {
	case *types.Func:
		it.Kind = "function"
		if o.Signature().Recv() != nil {
			it.Kind = "method"
		}
	case *types.Var:
		it.Kind = "variable"
		if o.IsField() {
			it.Kind = "field"
		}
	case *types.Const:
		it.Kind = "constant"
	case *types.TypeName:
		it.Kind, it.Signature = "type", types.TypeString(obj.Type().Underlying(), shortNames)
	case *types.Builtin:
		it.Kind = "function"
	}
	return it
}
