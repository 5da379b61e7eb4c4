package cell

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"golang.org/x/tools/go/gcexportdata"
)

//go:generate go run ./generate

// genericSources holds sources of the Go authors, with their licence.
//
//go:embed generic.zip
var genericSources []byte

// sourced are the packages in generic.zip, in the order in which they import each other.
var sourced = []string{"cmp", "sync/atomic", "sync", "errors", "iter", "slices", "maps"}

// Library is the types of the packages that cells can import: export data, and for the standard packages with generic
// functions their source. It is safe for concurrent use.
type Library struct {
	open    func(path string) (io.ReadCloser, error)
	archive *zip.Reader

	mu      sync.Mutex
	fset    *token.FileSet
	loaded  map[string]*types.Package
	sources map[*types.Package]*source
}

// source is a package with its syntax.
type source struct {
	files []*ast.File
	info  *types.Info
}

// NewLibrary returns a library over export data: open returns that of one package, or an error that says why there is none.
func NewLibrary(open func(path string) (io.ReadCloser, error)) (*Library, error) {
	archive, err := zip.NewReader(bytes.NewReader(genericSources), int64(len(genericSources)))
	if err != nil {
		return nil, fmt.Errorf("cell: sources: %w", err)
	}
	l := &Library{open: open, archive: archive, fset: token.NewFileSet(), loaded: map[string]*types.Package{}, sources: map[*types.Package]*source{}}
	// First, so that export data read later refers to these packages and no other of their name.
	for _, p := range sourced {
		if err := l.check(p); err != nil {
			return nil, fmt.Errorf("cell: source of %s: %w", p, err)
		}
	}
	return l, nil
}

// Import returns a package's types.
func (l *Library) Import(p string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load(p)
}

func (l *Library) load(p string) (*types.Package, error) {
	if p == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := l.loaded[p]; pkg != nil && pkg.Complete() {
		return pkg, nil
	}
	var r io.ReadCloser
	r, err := l.archive.Open(path.Join("types", p))
	if errors.Is(err, fs.ErrNotExist) {
		r, err = l.open(p)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return gcexportdata.Read(r, l.fset, l.loaded, p)
}

// source returns a package's syntax, nil if only its types are there.
func (l *Library) source(p *types.Package) *source {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sources[p]
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(p string) (*types.Package, error) { return f(p) }

// check type-checks a package from its source.
func (l *Library) check(p string) error {
	var files []*ast.File
	for _, f := range l.archive.File {
		if path.Dir(f.Name) != path.Join("src", p) {
			continue
		}
		text, err := fs.ReadFile(l.archive, f.Name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(l.fset, f.Name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	if p == "iter" {
		var err error
		if files, err = l.withoutCoroutines(files); err != nil {
			return err
		}
	}
	info := newInfo()
	pkg, err := (&types.Config{Importer: importerFunc(l.load), Sizes: types.SizesFor("gc", "amd64"), GoVersion: "go1.26"}).Check(p, l.fset, files, info)
	if err != nil {
		return err
	}
	l.loaded[p], l.sources[pkg] = pkg, &source{files, info}
	return nil
}

func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
		Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{},
	}
}

// pullSource is iter.Pull over goroutines: the original is linked to the coroutines of the Go run time.
const pullSource = `package iter

type pulled[T any] struct {
	value    T
	ok       bool
	panicked any
}

func pull[T any](run func(yield func(T) bool)) (next func() (T, bool), stop func()) {
	want, give := make(chan bool), make(chan pulled[T])
	started, done := false, false
	body := func() {
		end := pulled[T]{}
		defer func() {
			end.panicked = recover()
			give <- end
		}()
		if <-want {
			run(func(v T) bool {
				give <- pulled[T]{v, true, nil}
				return <-want
			})
		}
	}
	step := func(more bool) (v T, ok bool) {
		if done {
			return v, false
		}
		if !started {
			started = true
			if !more {
				done = true
				return v, false
			}
			go body()
		}
		want <- more
		p := <-give
		done = !p.ok
		if p.panicked != nil {
			panic(p.panicked)
		}
		return p.value, p.ok
	}
	return func() (T, bool) { return step(true) }, func() { step(false); done = true }
}

func Pull[V any](seq Seq[V]) (next func() (V, bool), stop func()) { return pull[V](seq) }

type both[K, V any] struct {
	k K
	v V
}

func Pull2[K, V any](seq Seq2[K, V]) (next func() (K, V, bool), stop func()) {
	n, stop := pull(func(yield func(both[K, V]) bool) {
		seq(func(k K, v V) bool { return yield(both[K, V]{k, v}) })
	})
	return func() (K, V, bool) { p, ok := n(); return p.k, p.v, ok }, stop
}
`

// withoutCoroutines keeps the types of package iter and takes the rest from pullSource.
func (l *Library) withoutCoroutines(files []*ast.File) ([]*ast.File, error) {
	own, err := parser.ParseFile(l.fset, "iter/pull.go", pullSource, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				return true
			}
			name := g.Specs[0].(*ast.TypeSpec).Name.Name
			return name != "Seq" && name != "Seq2"
		})
		f.Imports = nil
	}
	return append(files, own), nil
}
