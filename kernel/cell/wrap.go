package cell

import (
	"fmt"
	"reflect"

	"skep/kernel/display"
)

// A value of an interpreted type has no methods for compiled code. yaegi wraps it when it is passed to a function that
// is registered with the interfaces it looks for, each of which needs a name, and a wrapper struct "_Name" bound in the
// interface's own package. These are the ways in which a result can show itself.
type (
	Renderer       interface{ Render() display.Data }
	SimpleRenderer interface{ SimpleRender() display.MIMEMap }
	HTMLer         interface{ HTML() string }
	Markdowner     interface{ Markdown() string }
	SVGer          interface{ SVG() string }
	PNGer          interface{ PNG() []byte }
)

// wrapPath is this package's import path.
const wrapPath = "skep/kernel/cell"

type wrappedRenderer struct {
	IValue  any
	WRender func() display.Data
}

func (w wrappedRenderer) Render() display.Data { return w.WRender() }

type wrappedSimpleRenderer struct {
	IValue        any
	WSimpleRender func() display.MIMEMap
}

func (w wrappedSimpleRenderer) SimpleRender() display.MIMEMap { return w.WSimpleRender() }

type wrappedHTMLer struct {
	IValue any
	WHTML  func() string
}

func (w wrappedHTMLer) HTML() string   { return w.WHTML() }
func (w wrappedHTMLer) String() string { return fmt.Sprint(w.IValue) }

type wrappedMarkdowner struct {
	IValue    any
	WMarkdown func() string
}

func (w wrappedMarkdowner) Markdown() string { return w.WMarkdown() }
func (w wrappedMarkdowner) String() string   { return w.WMarkdown() }

type wrappedSVGer struct {
	IValue any
	WSVG   func() string
}

func (w wrappedSVGer) SVG() string    { return w.WSVG() }
func (w wrappedSVGer) String() string { return fmt.Sprint(w.IValue) }

type wrappedPNGer struct {
	IValue any
	WPNG   func() []byte
}

func (w wrappedPNGer) PNG() []byte    { return w.WPNG() }
func (w wrappedPNGer) String() string { return fmt.Sprint(w.IValue) }

// wrappers is the symbol table of this package: interfaces and their wrappers.
func wrappers() map[string]reflect.Value {
	return map[string]reflect.Value{
		"_Renderer": reflect.ValueOf((*wrappedRenderer)(nil)), "_SimpleRenderer": reflect.ValueOf((*wrappedSimpleRenderer)(nil)),
		"_HTMLer": reflect.ValueOf((*wrappedHTMLer)(nil)), "_Markdowner": reflect.ValueOf((*wrappedMarkdowner)(nil)),
		"_SVGer": reflect.ValueOf((*wrappedSVGer)(nil)), "_PNGer": reflect.ValueOf((*wrappedPNGer)(nil)),
	}
}

// renderTypes are the interfaces through which the result of a cell keeps its methods; the first that fits wins.
func renderTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[Renderer](), reflect.TypeFor[SimpleRenderer](), reflect.TypeFor[HTMLer](),
		reflect.TypeFor[Markdowner](), reflect.TypeFor[SVGer](), reflect.TypeFor[PNGer](),
		reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[error](),
	}
}
