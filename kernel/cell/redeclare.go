package cell

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// unchanged drops type declarations and methods that are exactly those already live, so that re-running a cell keeps
// its types and the values of them.
func (s *scope) unchanged(items []item) []item {
	redeclared := map[string]bool{}
	for _, it := range items {
		if name := typeName(it); name != "" && s.sources[name] != it.text {
			redeclared[name] = true
		}
		if it.recv != "" && !s.hasMethod(it) {
			redeclared[it.recv] = true
		}
	}
	for grown := true; grown; { // a type that mentions a redeclared one is new as well
		grown = false
		for _, it := range items {
			name := typeName(it)
			if name == "" || redeclared[name] {
				continue
			}
			for _, t := range scan(it.text) {
				if t.lit != name && redeclared[t.lit] {
					redeclared[name], grown = true, true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(items), func(it item) bool {
		name := typeName(it)
		if name == "" {
			name = it.recv
		}
		return name != "" && s.sources[name] != "" && !redeclared[name]
	})
}

// typeName returns the name that a single type declaration declares, "" for anything else.
func typeName(it item) string {
	toks := scan(it.text)
	if it.kind == declItem && len(toks) > 1 && toks[0].tok == token.TYPE && toks[1].tok == token.IDENT {
		return toks[1].lit
	}
	return ""
}

func (s *scope) hasMethod(m item) bool {
	return slices.ContainsFunc(s.methods[m.recv], func(old item) bool { return old.text == m.text })
}

func methodName(it item) string {
	toks := scan(it.text)
	depth := 0
	for i, t := range toks {
		switch t.tok {
		case token.LPAREN:
			depth++
		case token.RPAREN:
			if depth--; depth == 0 && i+1 < len(toks) {
				return toks[i+1].lit
			}
		}
	}
	return ""
}

// withEarlier adds the source of an earlier type, and its other methods, when the cell declares a method on it: Go wants
// them in one place, so the type gets a new version.
func (s *scope) withEarlier(items []item) []item {
	own := map[string]bool{}
	for _, it := range items {
		own[typeName(it)] = true
	}
	var earlier []item
	done := map[string]bool{}
	for _, it := range items {
		src := s.sources[it.recv]
		if it.recv == "" || own[it.recv] || src == "" || done[it.recv] {
			continue
		}
		done[it.recv] = true
		earlier = append(earlier, item{kind: declItem, text: src, cell: it.cell, line: it.line, col: it.col})
		for _, m := range s.methods[it.recv] {
			if !slices.ContainsFunc(items, func(new item) bool { return new.recv == m.recv && methodName(new) == methodName(m) }) {
				earlier = append(earlier, m)
			}
		}
	}
	return append(earlier, items...)
}

// commit makes a checked cell's names live. It is called before the cell runs, with the interpreter's names decided.
func (s *scope) commit(c *checked) {
	for name, path := range c.fresh {
		s.imports[name] = path
		delete(s.objects, name)
	}
	for _, pkg := range c.dots {
		for _, obj := range exported(pkg) {
			if s.objects[obj.Name()] == nil {
				s.objects[obj.Name()] = obj
			}
		}
	}
	for _, it := range c.items {
		if name := typeName(it); name != "" {
			s.sources[name], s.methods[name] = it.text, nil
		}
	}
	for _, it := range c.items {
		if it.recv != "" {
			s.methods[it.recv] = append(s.methods[it.recv], it)
		}
	}
	for _, obj := range c.globals() {
		s.objects[obj.Name()] = obj
		delete(s.imports, obj.Name())
		if _, ok := obj.(*types.Var); ok {
			s.order = append(slices.DeleteFunc(s.order, func(n string) bool { return n == obj.Name() }), obj.Name())
		}
	}
}

// globals returns the objects that a cell makes live: package-level ones and the variables of its top-level statements,
// in source order.
func (c *checked) globals() []types.Object {
	var objs []types.Object
	add := func(id *ast.Ident) {
		if obj := c.info.Defs[id]; obj != nil && id.Name != "_" && !strings.HasSuffix(id.Name, "__") {
			objs = append(objs, obj)
		}
	}
	for _, d := range c.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			addSpecs(d, add)
		}
	}
	for _, st := range c.body.Body.List {
		switch st := st.(type) {
		case *ast.AssignStmt:
			if st.Tok == token.DEFINE {
				for _, l := range st.Lhs {
					add(l.(*ast.Ident))
				}
			}
		case *ast.DeclStmt:
			addSpecs(st.Decl.(*ast.GenDecl), add)
		}
	}
	return objs
}

func addSpecs(d *ast.GenDecl, add func(*ast.Ident)) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name)
		case *ast.ValueSpec:
			for _, n := range spec.Names {
				add(n)
			}
		}
	}
}
