// Package bind hands the program's packages to the notebook session: the standard library, gonum, and skep's engine,
// plotting, problems and display, as symbol tables and type data (generated), with the progress of searches shown on
// one display. It is the only place where kernel and its siblings meet.
package bind

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"reflect"
	"strings"

	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/syscall"
	"github.com/traefik/yaegi/stdlib/unrestricted"
	"github.com/traefik/yaegi/stdlib/unsafe"
	"golang.org/x/tools/go/gcexportdata"

	"skep/kernel/cell"
	"skep/kernel/session"
)

//go:generate go run ./generate

// Symbols holds the generated tables of library and own packages; their init functions fill it.
var Symbols = map[string]map[string]reflect.Value{}

//go:embed library.types.zip
var libraryTypes []byte

//go:embed skep.types.zip
var skepTypes []byte

// Engines are the names of the cell engines, the default one first.
var Engines = []string{"yaegi", "vm"}

// Session returns what cells can use, for one of [Engines].
func Session(engine string) (session.Binding, error) {
	imports, err := newPackages()
	if err != nil {
		return session.Binding{}, err
	}
	b := session.Binding{Symbols: allSymbols(), Types: imports, Context: withProgress, Render: renderPlot, Engine: cell.NewYaegi}
	switch engine {
	case "yaegi":
		return b, nil
	case "vm":
		b.Engine = cell.NewVM
		b.Types, err = cell.NewLibrary(imports.open)
		return b, err
	}
	return b, fmt.Errorf("no engine %q: there are %s", engine, strings.Join(Engines, " and "))
}

// allSymbols joins the tables. What unrestricted adds is what a notebook needs: processes, the real environment, exit.
func allSymbols() map[string]map[string]reflect.Value {
	all := map[string]map[string]reflect.Value{}
	for _, table := range []map[string]map[string]reflect.Value{stdlib.Symbols, syscall.Symbols, unsafe.Symbols, unrestricted.Symbols, Symbols} {
		for pkg, names := range table {
			if all[pkg] == nil {
				all[pkg] = map[string]reflect.Value{}
			}
			for name, v := range names {
				all[pkg][name] = v
			}
		}
	}
	all["skep/engine/engine"]["Open"] = reflect.ValueOf(openHere)
	return all
}

// packages is a types.Importer over the embedded type data. It reads a package when it is first asked for; it is not
// safe for concurrent use (an engine asks under its own lock).
type packages struct {
	fset   *token.FileSet
	loaded map[string]*types.Package
	files  map[string]*zip.File
}

func newPackages() (*packages, error) {
	p := &packages{fset: token.NewFileSet(), loaded: map[string]*types.Package{}, files: map[string]*zip.File{}}
	for _, data := range [][]byte{libraryTypes, skepTypes} {
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return nil, fmt.Errorf("bind: type data: %w", err)
		}
		for _, f := range archive.File {
			p.files[f.Name] = f
		}
	}
	return p, nil
}

func (p *packages) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := p.loaded[path]; pkg != nil && pkg.Complete() {
		return pkg, nil
	}
	r, err := p.open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return gcexportdata.Read(r, p.fset, p.loaded, path)
}

// open returns the export data of a package.
func (p *packages) open(path string) (io.ReadCloser, error) {
	f := p.files[path]
	if f == nil {
		return nil, fmt.Errorf("package %q is not available in notebooks: they know the standard library, gonum (floats, mat, stat, plot) and skep", path)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("bind: types of %s: %w", path, err)
	}
	return r, nil
}
