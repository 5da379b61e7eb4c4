// Command generate writes the tables through which notebook cells see compiled packages: symbols in yaegi's format, one
// file per package, and type data in Go's export format. Run it by `go generate ./cmd/skep/bind` after changing an
// exported name of engine, plotting, problems or kernel/display; CI fails when the tables are not current.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"go/token"
	"go/types"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/traefik/yaegi/extract"
	"golang.org/x/tools/go/gcexportdata"
)

// library is what cells may import beside the standard library, whose symbols come with yaegi.
var library = []string{
	"gonum.org/v1/gonum/floats", "gonum.org/v1/gonum/mat", "gonum.org/v1/gonum/stat",
	"gonum.org/v1/plot", "gonum.org/v1/plot/palette", "gonum.org/v1/plot/palette/moreland", "gonum.org/v1/plot/plotter", "gonum.org/v1/plot/plotutil", "gonum.org/v1/plot/vg", "gonum.org/v1/plot/vg/draw",
}

// own is this project's part.
var own = []string{"skep/engine", "skep/kernel/display", "skep/plotting", "skep/problems"}

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal("generate: ", err)
	}
}

func generate() error {
	old, err := filepath.Glob("symbols_*.go")
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	std, err := standard()
	if err != nil {
		return err
	}
	all, err := closure(slices.Concat(library, own), std)
	if err != nil {
		return err
	}
	for _, path := range all {
		if err := symbols(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	isOwn := func(path string) bool { return strings.HasPrefix(path, "skep/") }
	if err := typeData("library.types.zip", append(std, slices.DeleteFunc(slices.Clone(all), isOwn)...)); err != nil {
		return err
	}
	return typeData("skep.types.zip", slices.DeleteFunc(all, func(path string) bool { return !isOwn(path) }))
}

// closure adds the packages whose types appear in the exported interface of paths: a cell that keeps such a value in a
// variable must be able to name its type.
func closure(paths, std []string) ([]string, error) {
	for i := 0; i < len(paths); i++ {
		pkg, err := exportData(paths[i : i+1])
		if err != nil {
			return nil, err
		}
		for _, path := range mentioned(pkg[0]) {
			internal := strings.Contains("/"+path+"/", "/internal/")
			if !internal && !slices.Contains(paths, path) && !slices.Contains(std, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// mentioned lists the packages of the named types in a package's exported functions, methods, fields and variables.
func mentioned(pkg *types.Package) []string {
	var paths []string
	seen := map[types.Type]bool{}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Named:
			if p := t.Obj().Pkg(); p != nil && p != pkg {
				paths = append(paths, p.Path())
				return // its own inside is its package's matter
			}
			visit(t.Underlying())
			for m := range t.Methods() {
				if m.Exported() {
					visit(m.Type())
				}
			}
		case *types.Alias:
			visit(types.Unalias(t))
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case interface{ Elem() types.Type }: // pointer, slice, array, channel
			visit(t.Elem())
		case *types.Signature:
			for v := range t.Params().Variables() {
				visit(v.Type())
			}
			for v := range t.Results().Variables() {
				visit(v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					visit(f.Type())
				}
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			visit(obj.Type())
		}
	}
	return paths
}

// symbols writes one package's table.
func symbols(path string) error {
	e := extract.Extractor{Dest: "bind"}
	if path == "gonum.org/v1/gonum/floats" {
		e.Exclude = []string{"^Reverse$"} // deprecated, slices has it
	}
	var b bytes.Buffer
	if _, err := e.Extract(path, "", &b); err != nil {
		return err
	}
	name := "symbols_" + strings.NewReplacer("/", "_", ".", "_").Replace(path) + ".go"
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// standard lists the public packages of the standard library.
func standard() ([]string, error) {
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		return nil, err
	}
	var public []string
	for path := range strings.FieldsSeq(string(out)) {
		if !slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "internal" || s == "vendor" }) {
			public = append(public, path)
		}
	}
	return public, nil
}

// exportData reads the exported types of packages from the go command's build cache.
func exportData(paths []string) ([]*types.Package, error) {
	args := append([]string{"list", "-export", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	fset, imports := token.NewFileSet(), map[string]*types.Package{}
	var pkgs []*types.Package
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if path == "unsafe" {
			continue
		}
		pkg, err := read(fset, imports, path, file)
		if err != nil {
			return nil, fmt.Errorf("types of %s: %w", path, err)
		}
		pkgs = append(pkgs, pkg)
	}
	return pkgs, nil
}

// typeData writes the exported types of packages, one archive member each.
func typeData(name string, paths []string) error {
	pkgs, err := exportData(paths)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, pkg := range pkgs {
		w, err := archive.Create(pkg.Path())
		if err != nil {
			return err
		}
		// Positions are left out: they would name folders of this machine.
		if err := gcexportdata.Write(w, token.NewFileSet(), pkg); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

func read(fset *token.FileSet, imports map[string]*types.Package, path, file string) (*types.Package, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	//lint:ignore SA1019 go list -export names compiler archives, which this reads until Go 1.29
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return nil, err
	}
	return gcexportdata.Read(r, fset, imports, path)
}
