package cell

import (
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// withVariables adds declarations of the live variables whose types get a new version because the cell declares a method
// on an earlier type: they go on, in the same memory, under the new type.
func (s *scope) withVariables(items []item, number int) []item {
	renewed, own := map[string]bool{}, map[string]bool{}
	for _, it := range items {
		if it.cell == number && it.recv != "" {
			renewed[it.recv] = true
		}
	}
	for _, it := range items {
		if name := typeName(it); name != "" && it.text != s.sources[name] {
			delete(renewed, name) // a new type, not a new version
		}
		if m := declaration.FindStringSubmatch(it.text); m != nil && it.kind >= varItem {
			for _, name := range strings.Split(m[1], ",") {
				own[strings.TrimSpace(name)] = true
			}
		}
	}
	var carried []item
	for _, name := range s.order {
		v, ok := s.objects[name].(*types.Var)
		if !ok || own[name] || v.Pkg() != s.pkg || !mentions(v.Type(), renewed, s) {
			continue
		}
		if text, ok := s.localText(v.Type()); ok {
			carried = append(carried, item{kind: varItem, text: "var " + name + " " + text, carries: name, cell: number, line: 1, col: 1})
		}
	}
	return append(items, carried...)
}

// mentions reports whether t is made of the newest version of one of the named types, through pointers and containers.
func mentions(t types.Type, names map[string]bool, s *scope) bool {
	switch t := t.(type) {
	case *types.Named:
		obj := t.Origin().Obj()
		return names[obj.Name()] && s.objects[obj.Name()] == types.Object(obj)
	case *types.Map:
		return mentions(t.Key(), names, s) || mentions(t.Elem(), names, s)
	case interface{ Elem() types.Type }:
		return mentions(t.Elem(), names, s)
	case *types.Signature:
		return mentions(t.Params(), names, s) || mentions(t.Results(), names, s)
	case *types.Tuple:
		for v := range t.Variables() {
			if mentions(v.Type(), names, s) {
				return true
			}
		}
	}
	return false
}

// localText writes a type as a cell would; false if a name in it now means something else or has no import.
func (s *scope) localText(t types.Type) (string, bool) {
	good := true
	text := types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg {
			return ""
		}
		for name, path := range s.imports {
			if path == p.Path() {
				return name
			}
		}
		good = false
		return p.Name()
	})
	return text, good
}

// carry gives the variables that move to a new version of their type their old memory.
func (e *vmEngine) carry(b *built) error {
	for _, it := range b.items {
		if it.carries == "" {
			continue
		}
		old := e.scope.objects[it.carries]
		g, ok := e.members[old].(*ssa.Global)
		moved := b.pkg.Var(it.carries)
		if !ok || moved == nil || !sameLayout(old.Type(), moved.Object().Type(), map[[2]types.Type]bool{}) {
			msg := fmt.Sprintf("a method for the type of %s, whose parts were declared anew since: declare the type again as well", it.carries)
			return unsupported(fmt.Errorf("%s", msg))
		}
		e.machine.Share(moved, e.machine.Global(g))
	}
	return nil
}

// sameLayout reports whether two types are the same but for versions of types of cells.
func sameLayout(a, b types.Type, assumed map[[2]types.Type]bool) bool {
	pair := [2]types.Type{a, b}
	if types.Identical(a, b) || assumed[pair] {
		return true
	}
	assumed[pair] = true
	x, ok1 := a.(*types.Named)
	y, ok2 := b.(*types.Named)
	if ok1 && ok2 {
		return x.Obj().Name() == y.Obj().Name() && x.Obj().Pkg() == y.Obj().Pkg() && sameLayout(x.Underlying(), y.Underlying(), assumed)
	}
	switch a := a.(type) {
	case *types.Pointer:
		b, ok := b.(*types.Pointer)
		return ok && sameLayout(a.Elem(), b.Elem(), assumed)
	case *types.Slice:
		b, ok := b.(*types.Slice)
		return ok && sameLayout(a.Elem(), b.Elem(), assumed)
	case *types.Array:
		b, ok := b.(*types.Array)
		return ok && a.Len() == b.Len() && sameLayout(a.Elem(), b.Elem(), assumed)
	case *types.Map:
		b, ok := b.(*types.Map)
		return ok && sameLayout(a.Key(), b.Key(), assumed) && sameLayout(a.Elem(), b.Elem(), assumed)
	case *types.Chan:
		b, ok := b.(*types.Chan)
		return ok && sameLayout(a.Elem(), b.Elem(), assumed)
	case *types.Signature:
		b, ok := b.(*types.Signature)
		return ok && a.Variadic() == b.Variadic() && sameLayout(a.Params(), b.Params(), assumed) && sameLayout(a.Results(), b.Results(), assumed)
	case *types.Tuple:
		b, ok := b.(*types.Tuple)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameLayout(a.At(i).Type(), b.At(i).Type(), assumed) {
				return false
			}
		}
		return true
	case *types.Struct:
		b, ok := b.(*types.Struct)
		if !ok || a.NumFields() != b.NumFields() {
			return false
		}
		for i := range a.NumFields() {
			if a.Field(i).Name() != b.Field(i).Name() || !sameLayout(a.Field(i).Type(), b.Field(i).Type(), assumed) {
				return false
			}
		}
		return true
	}
	return false
}
