package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traefik/yaegi/stdlib"
)

// sourceTypes reads types from the Go sources of this machine: an oracle independent of the embedded type data.
var sourceTypes = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

// notebook is an engine with what it wrote.
type notebook struct {
	engine Engine
	out    *lockedBuffer
	n      int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.b.String()
	l.b.Reset()
	return s
}

func open(t *testing.T) *notebook {
	return openYaegi(t)
}

func openYaegi(t testing.TB) *notebook {
	t.Helper()
	out := &lockedBuffer{}
	e, err := NewYaegi(Options{
		Symbols: stdlib.Symbols, Types: sourceTypes(), Stdin: strings.NewReader(""), Stdout: out, Stderr: out,
		OSStdout: os.Stdout, OSStderr: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &notebook{engine: e, out: out}
}

// run runs a cell and returns "output=>values" or "output!error".
func (nb *notebook) run(code string) string {
	nb.n++
	values, err := nb.engine.Run(context.Background(), nb.n, code)
	out := nb.out.take()
	if err != nil {
		return out + "!" + err.Error()
	}
	if len(values) == 0 {
		return out
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
		if h, ok := v.(HTMLer); ok {
			texts[i] = h.HTML()
		}
	}
	return out + "=>" + strings.Join(texts, " ")
}

// TestCells runs small sessions. Expected outputs are what `go run` prints for the same statements.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		name  string
		cells []string
		want  string // of the last cell
	}{
		{"expression", []string{"1+2"}, "=>3"},
		{"state", []string{"x := 40", "x += 2", "x"}, "=>42"},
		{"println shows no count", []string{`import "fmt"` + "\n" + `fmt.Println("hi")`}, "hi\n"},
		{"assignment shows nothing", []string{"x := 3"}, ""},
		{"nil shows nothing", []string{"[]int{1}", "nil"}, ""},
		{"several values", []string{`func f() (int, string) { return 1, "a" }`, "f()"}, "=>1 a"},
		{"mixed cell", []string{"import \"fmt\"\ntype T struct{ N int }\nfunc (t T) Twice() int { return 2 * t.N }\nt := T{4}\nfmt.Print(t.Twice())"}, "8"},
		{"import twice", []string{`import "strings"`, "import \"strings\"\nstrings.ToUpper(\"a\")"}, "=>A"},
		{"variable named as a package", []string{`bytes := 3`, "import \"bytes\"\nvar b bytes.Buffer\nb.WriteString(\"x\")\nb.String()"}, "=>x"},
		{"redeclared with another type", []string{"x := 1", `x := "a"`, "x"}, "=>a"},
		{"own old value", []string{"x := 1", "x := x + 1", "x"}, "=>2"},
		{"newest function", []string{"func f() int { return 1 }\nfunc g() int { return f() }", "func f() int { return 2 }", "g()"}, "=>2"},
		{"newest method", []string{"type T struct{}\nfunc (T) M() int { return 1 }", "func (T) M() int { return 2 }", "T{}.M()"}, "=>2"},
		{"method in a later cell", []string{"type T struct{ a int }", "func (t T) M() int { return t.a }", "T{5}.M()"}, "=>5"},
		{"redefined type", []string{"type C struct{ N string }", "type C struct{ N string; V int }", "C{\"a\", 3}.V"}, "=>3"},
		{"same type again keeps values", []string{"type C struct{ N int }", "c := C{1}", "type C struct{ N int }", "c = C{2}\nc.N"}, "=>2"},
		{"comma ok", []string{"m := map[string]int{\"a\": 1}\nv, ok := m[\"b\"]", "import \"fmt\"\nfmt.Sprint(v, ok)"}, "=>0 false"},
		{"loop variables", []string{"fs := []func() int{}\nfor i := 0; i < 3; i++ {\n fs = append(fs, func() int { return i })\n}\nfs[0]() + 10*fs[1]() + 100*fs[2]()"}, "=>210"},
		{"range over int", []string{"s := 0\nfor i := range 4 {\n s += i\n}\ns"}, "=>6"},
		{"defer evaluates at once", []string{"import \"fmt\"\nfunc f() { x := 1; defer fmt.Print(x); x = 2 }\nf()"}, "1"},
		{"main runs once", []string{"import \"fmt\"\nfunc main() { fmt.Print(\"m\") }", "fmt.Print(\"x\")"}, "x"},
		{"main runs", []string{"import \"fmt\"\nfunc main() { fmt.Print(\"m\") }"}, "m"},
		{"function uses a variable of its cell", []string{"n := 5\nfunc inc() { n++ }\ninc()\nn"}, "=>6"},
		{"must", []string{"import \"strconv\"\nv := must(strconv.Atoi(\"12\"))", "v + 1"}, "=>13"},
		{"must fails", []string{"import \"strconv\"\nv := must(strconv.Atoi(\"x\"))"}, `!error: strconv.Atoi: parsing "x": invalid syntax`},
		{"call statement fails", []string{"import (\"errors\"; \"fmt\")\nfunc f() error { return errors.New(\"no\") }", "f()\nfmt.Print(\"not reached\")"}, "!error: no"},
		{"error value fails", []string{"import \"errors\"\nerr := errors.New(\"bad\")", "err"}, "!error: bad"},
		{"nil error is dropped", []string{"import \"strconv\"", "strconv.Atoi(\"7\")"}, "=>7"},
		{"undefined", []string{"x := nofn()"}, "!compile error: In[1]:1:6: undefined: nofn"},
		{"a failed cell changes nothing", []string{"x := 1", "x = 2\nx = nofn()", "x"}, "=>1"},
		{"wrong return", []string{"func f() int { return 1.5 }"}, "!compile error: In[1]:1:23: cannot use 1.5 (untyped float constant) as int value in return statement (truncated)"},
		{"syntax", []string{"x := )"}, "!syntax error: In[1]:1:6: expected operand, found ')'"},
		{"panic", []string{"panic(\"x\")"}, "!panic: x"},
		{"index", []string{"a := []int{1}\ni := 5", "a[i]"}, "!panic: runtime error: index out of range"},
		{"nil pointer", []string{"var p *int", "*p"}, "!panic: runtime error: invalid memory address or nil pointer dereference"},
		{"exit", []string{"import \"os\"\nos.Exit(3)"}, "!panic: os.Exit(3)"},
		{"ctx", []string{"ctx.Err() == nil"}, "=>true"},
		{"shadowed ctx", []string{"import \"context\"\nctx, cancel := context.WithCancel(ctx)\ncancel()", "ctx.Err()"}, "!error: context canceled"},
		{"goroutine and channel", []string{"c := make(chan int)\ngo func(n int) { c <- n * 2 }(21)\n<-c"}, "=>42"},
		{"generic", []string{"func Map[T, U any](s []T, f func(T) U) []U { var r []U; for _, x := range s { r = append(r, f(x)) }; return r }", "Map[int, string]([]int{1}, func(i int) string { return \"a\" })"}, "=>[a]"},
		{"const and iota", []string{"const (\n A = iota\n B\n)", "A + 10*B"}, "=>10"},
		{"closure state", []string{"func counter() func() int { n := 0; return func() int { n++; return n } }", "c := counter()", "c()\nc()"}, "=>2"},
		{"literal first", []string{"func() int { return 3 }()", "1"}, "=>1"},
		{"method value deferred", []string{"import (\"sync\"; \"fmt\")\nvar wg sync.WaitGroup\nfor i := range 3 {\n wg.Add(1)\n go func() { defer wg.Done(); _ = i }()\n}\nwg.Wait()\nfmt.Print(\"ok\")"}, "ok"},
		{"stringer", []string{"type S struct{ a int }\nfunc (s S) String() string { return \"S!\" }", "S{1}"}, "=>S!"},
		{"dot import kept", []string{"import . \"strings\"", "ToUpper(\"b\")"}, "=>B"},
		{"generic over earlier types", []string{"type N struct{ v int }\nfunc (n N) Val() int { return n.v }", "type V interface{ Val() int }\nfunc Sum[T V](xs []T) int { s := 0; for _, x := range xs { s += x.Val() }; return s }", "Sum([]N{{1}, {2}})"}, "=>3"},
		{"inference", []string{"func Map[T, U any](s []T, f func(T) U) []U { var r []U; for _, x := range s { r = append(r, f(x)) }; return r }", "Map([]int{1, 2}, func(i int) string { return \"a\" })"}, "=>[a a]"},
		{"interpreted renderer", []string{"type H struct{ a int }\nfunc (H) HTML() string { return \"<b>h</b>\" }", "H{1}"}, "=><b>h</b>"},
		{"dot import", []string{"import . \"strings\"\nToUpper(\"b\")"}, "=>B"},
		{"two packages of one name", []string{"import \"math/rand\"\nrand.Intn(1)", "import \"crypto/rand\"\nrand.Reader != nil"}, "=>true"},
		{"labels", []string{"n := 0\nouter:\nfor i := range 3 {\n for j := range 3 {\n  if j == 1 { continue outer }\n  n += 1 + i - i + j\n }\n}\nn"}, "=>3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nb := open(t)
			got := ""
			for _, code := range c.cells {
				got = nb.run(code)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// interrupt runs code, cancels it after a moment and returns how long it took to end.
func (nb *notebook) interrupt(code string) (time.Duration, error) {
	nb.n++
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var at time.Time
	time.AfterFunc(100*time.Millisecond, func() { at = time.Now(); cancel() })
	_, err := nb.engine.Run(ctx, nb.n, code)
	return time.Since(at), err
}

func TestInterrupt(t *testing.T) {
	for _, code := range []string{
		"for {}", "for { n := 1; _ = n }", "func f() { for {} }\nf()", "select {}", "c := make(chan int)\n<-c",
		"import \"time\"\ntime.Sleep(time.Hour)", "<-ctx.Done()", "must(func() (int, error) { <-ctx.Done(); return 0, ctx.Err() }())",
		"wait()", "spin()", "func r(n int) int { if n < 0 { return 0 }; return r(n+1) - r(n-1) }\nfor { r(-5) }",
	} {
		t.Run(code, func(t *testing.T) {
			nb := open(t)
			nb.run("count := func() func() int { n := 9; return func() int { n++; return n } }()")
			nb.run("import \"time\"\nfunc wait() { time.Sleep(time.Hour) }\nfunc spin() { for {} }")
			took, err := nb.interrupt(code)
			if took > 3*time.Second {
				t.Errorf("the cell ended %v after the interrupt", took)
			}
			var e *Error
			if code != "<-ctx.Done()" && (!errors.As(err, &e) || e.Name != "interrupted") {
				t.Errorf("error %v, want interrupted", err)
			}
			if got := nb.run("count()"); got != "=>10" {
				t.Errorf("a closure of an earlier cell gives %q after the interrupt, want 10", got)
			}
			if got := nb.run("s := 0\nfor i := 0; i < 1000; i++ { s += i }\ns"); got != "=>499500" {
				t.Errorf("the next loop gives %q", got)
			}
		})
	}
}

// TestGoroutinePanicIsShown starts goroutines that panic, in a literal and in a function: the text names the cell and
// the session lives.
func TestGoroutinePanicIsShown(t *testing.T) {
	nb := open(t)
	out := nb.run("func bad(n int) { panic(n) }\ngo bad(7)\ngo func() { panic(\"boom\") }()")
	for wait := time.Now().Add(10 * time.Second); time.Now().Before(wait) && strings.Count(out, "\n") < 2; time.Sleep(time.Millisecond) {
		out += nb.out.take()
	}
	for _, want := range []string{"panic in a goroutine of In[1]: boom\n", "panic in a goroutine of In[1]: 7\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output %q lacks %q", out, want)
		}
	}
	if got := nb.run("1"); got != "=>1" {
		t.Fatalf("the session gives %q afterwards", got)
	}
}

// TestPanicTrace looks at what a reader gets: the words, the statement with its line, the function it happened in.
func TestPanicTrace(t *testing.T) {
	nb := open(t)
	nb.run("func div(a, b int) int {\n\treturn a / b\n}")
	nb.n++
	_, err := nb.engine.Run(context.Background(), nb.n, "x := 1\n\ndiv(x, 0)")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	trace := strings.Join(e.Traceback, "\n")
	for _, want := range []string{"integer divide by zero", "In[2]:3:1", "    div(x, 0)", "In[1]:"} {
		if !strings.Contains(trace, want) {
			t.Errorf("traceback lacks %q:\n%s", want, trace)
		}
	}
}

// TestCheck checks positions, hints and that a check changes nothing.
func TestCheck(t *testing.T) {
	nb := open(t)
	nb.run("Total := 3")
	for code, want := range map[string]string{
		"total + 1":                  "In[0]:1:1: undefined: total (did you mean Total?)",
		"a := 1\nstrings.ToUpper(a)": "In[0]:2:1: undefined: strings (add: import \"strings\")",
		"import \"no/such\"":         "In[0]:1:8: could not import no/such",
		"ctx = nil":                  "",
		"func f() {":                 "In[0]:1:12: expected '}', found 'EOF'",
	} {
		err := nb.engine.Check(code)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", code, err, want)
		}
	}
	if got := nb.run("ctx = nil"); !strings.Contains(got, "ctx is predeclared") {
		t.Errorf("assigning ctx gives %q", got)
	}
	if vars := fmt.Sprint(nb.engine.Vars()); vars != "[{Total int}]" {
		t.Errorf("variables %s", vars)
	}
}
