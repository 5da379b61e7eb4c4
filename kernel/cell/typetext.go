package cell

import (
	"fmt"
	"go/types"
	"strings"
)

// typeText writes a type as the interpreter knows it: package aliases instead of paths, versioned names of the user's
// own types. A type that cannot be named outside its package is an error.
func (l *lowering) typeText(t types.Type) (string, error) {
	switch t := t.(type) {
	case *types.Basic:
		return basicText(t)
	case *types.Alias:
		return l.typeText(types.Unalias(t))
	case *types.Named:
		return l.namedText(t)
	case *types.TypeParam:
		return t.Obj().Name(), nil
	case *types.Pointer:
		return l.around("*", t.Elem(), "")
	case *types.Slice:
		return l.around("[]", t.Elem(), "")
	case *types.Array:
		return l.around(fmt.Sprintf("[%d]", t.Len()), t.Elem(), "")
	case *types.Chan:
		return l.around([]string{"chan ", "chan<- ", "<-chan "}[t.Dir()], t.Elem(), "")
	case *types.Map:
		key, err := l.typeText(t.Key())
		if err != nil {
			return "", err
		}
		return l.around("map["+key+"]", t.Elem(), "")
	case *types.Signature:
		return l.signatureText("func", t)
	case *types.Struct:
		return l.structText(t)
	case *types.Interface:
		return l.interfaceText(t)
	}
	return "", fmt.Errorf("type %s cannot be kept in a variable of the session", t)
}

func basicText(t *types.Basic) (string, error) {
	if t.Kind() == types.UnsafePointer {
		return "", fmt.Errorf("an unsafe.Pointer cannot be kept in a variable of the session")
	}
	return types.Default(t).String(), nil
}

func (l *lowering) around(before string, t types.Type, after string) (string, error) {
	s, err := l.typeText(t)
	return before + s + after, err
}

func (l *lowering) namedText(t *types.Named) (string, error) {
	obj := t.Obj()
	name := l.name(obj)
	if obj.Pkg() != nil && obj.Pkg().Path() != "main" {
		if !obj.Exported() {
			return "", fmt.Errorf("type %s is not exported: its value cannot be kept in a variable; use it in one expression", t)
		}
		name = l.alias(obj.Pkg().Path()) + "." + obj.Name()
	}
	if t.TypeArgs().Len() == 0 {
		return name, nil
	}
	args := make([]string, t.TypeArgs().Len())
	for i := range args {
		s, err := l.typeText(t.TypeArgs().At(i))
		if err != nil {
			return "", err
		}
		args[i] = s
	}
	return name + "[" + strings.Join(args, ", ") + "]", nil
}

func (l *lowering) signatureText(word string, t *types.Signature) (string, error) {
	params := make([]string, t.Params().Len())
	for i := range params {
		typ, dots := t.Params().At(i).Type(), ""
		if t.Variadic() && i == len(params)-1 {
			typ, dots = typ.(*types.Slice).Elem(), "..."
		}
		s, err := l.around(dots, typ, "")
		if err != nil {
			return "", err
		}
		params[i] = s
	}
	results := make([]string, t.Results().Len())
	for i := range results {
		s, err := l.typeText(t.Results().At(i).Type())
		if err != nil {
			return "", err
		}
		results[i] = s
	}
	text := word + "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return text, nil
	case 1:
		return text + " " + results[0], nil
	}
	return text + " (" + strings.Join(results, ", ") + ")", nil
}

func (l *lowering) structText(t *types.Struct) (string, error) {
	fields := make([]string, t.NumFields())
	for i := range fields {
		f := t.Field(i)
		s, err := l.typeText(f.Type())
		if err != nil {
			return "", err
		}
		if !f.Embedded() {
			s = f.Name() + " " + s
		}
		if tag := t.Tag(i); tag != "" {
			s += fmt.Sprintf(" %q", tag)
		}
		fields[i] = s
	}
	return "struct{ " + strings.Join(fields, "; ") + " }", nil
}

func (l *lowering) interfaceText(t *types.Interface) (string, error) {
	parts := []string{}
	for m := range t.ExplicitMethods() {
		s, err := l.signatureText(m.Name(), m.Signature())
		if err != nil {
			return "", err
		}
		parts = append(parts, s)
	}
	for e := range t.EmbeddedTypes() {
		s, err := l.typeText(e)
		if err != nil {
			return "", err
		}
		parts = append(parts, s)
	}
	return "interface{ " + strings.Join(parts, "; ") + " }", nil
}
