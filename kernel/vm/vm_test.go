package vm

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/go/ssa"
)

// program builds a package without imports whose function out writes to the returned slice.
func program(t *testing.T, src string) (*Machine, *ssa.Package, *[]string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", "package main\nfunc out(v any)\n"+src, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
		Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{},
	}
	pkg, err := (&types.Config{Error: func(error) {}}).Check("main", fset, []*ast.File{f}, info)
	if err != nil && !strings.Contains(err.Error(), "missing function body") {
		t.Fatal(err)
	}
	p := ssa.NewProgram(fset, ssa.InstantiateGenerics)
	built := p.CreatePackage(pkg, []*ast.File{f}, info, false)
	built.Build()
	m, err := New(Options{Program: p})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	m.Bind(built.Func("out"), func(_ Caller, args []reflect.Value) { lines = append(lines, fmt.Sprintf("%v", args[0])) })
	return m, built, &lines
}

// TestPrograms compares with the same statements in this compiled test.
func TestPrograms(t *testing.T) {
	sum := 0.0
	for i := range 100 {
		sum += float64(i) / 3
	}
	for src, want := range map[string]string{
		"func run() { s := 0.0; for i := range 100 { s += float64(i) / 3 }; out(s) }":                                                                                                                 fmt.Sprint(sum),
		"func run() { var x uint8 = 250; x += 10; out(x) }":                                                                                                                                           "4",
		"type T struct{ n int }\nfunc (t T) String() string { return \"T!\" }\nfunc run() { out([]T{{1}}) }":                                                                                          "[T!]",
		"func f() (r int) { defer func() { r = recover().(int) + r }(); r = 2; panic(40) }\nfunc run() { out(f()) }":                                                                                  "42",
		"func g[K comparable, V any](m map[K]V, k K) V { return m[k] }\nfunc run() { out(g(map[string]int{\"a\": 3}, \"a\")) }":                                                                       "3",
		"func run() { c := make(chan int); go func() { c <- 1; close(c) }(); n := 0; for v := range c { n += v }; out(n) }":                                                                           "1",
		"func seq(y func(int) bool) { for i := 0; y(i); i++ {} }\nfunc f() (r int) { for v := range seq { if v > 4 { break }; defer func() { r = 10*r + v }() }; return 0 }\nfunc run() { out(f()) }": "43210",
	} {
		m, p, lines := program(t, src)
		if err := errors.Join(m.Prepare(p.Func("run")), m.Call(NewRun(), p.Func("run"))); err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if got := strings.Join(*lines, ","); got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

// TestEnds ends programs from outside, by recursion and by a panic, and looks at the error and the deferred call.
func TestEnds(t *testing.T) {
	for body, check := range map[string]func(error) bool{
		"for {}":           func(err error) bool { return errors.Is(err, ErrStopped) },
		"<-make(chan int)": func(err error) bool { return errors.Is(err, ErrStopped) },
		"select {}":        func(err error) bool { return errors.Is(err, ErrStopped) },
		"var r func(int) int; r = func(n int) int { return r(n+1) + 1 }; r(0)": func(err error) bool { return strings.Contains(fmt.Sprint(err), "stack overflow") },
		"panic(\"x\")":                  func(err error) bool { var p *Panic; return errors.As(err, &p) && p.Value == "x" && len(p.Trace) > 0 },
		"var a []int; i := 3; a[i] = 1": func(err error) bool { return strings.Contains(fmt.Sprint(err), "index out of range [3] with length 0") },
	} {
		m, p, lines := program(t, "func run() { defer out(\"deferred\"); "+body+" }")
		r := NewRun()
		after := 300 * time.Millisecond
		if strings.Contains(body, "r(0)") {
			after = time.Minute // it ends by itself
		}
		timer := time.AfterFunc(after, r.Stop)
		err := m.Call(r, p.Func("run"))
		timer.Stop()
		if !check(err) || strings.Join(*lines, ",") != "deferred" {
			t.Errorf("%s: %v, %v", body, err, *lines)
		}
	}
}
