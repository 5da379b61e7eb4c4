package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/unrestricted"
	"golang.org/x/tools/go/gcexportdata"
)

// exportFiles maps standard packages to the compiler's export data, which the go command keeps.
var exportFiles = sync.OnceValues(func() (map[string]string, error) {
	out, err := exec.Command("go", "list", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", "std").Output()
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return files, err
})

// exportData opens the export data of a standard package.
func exportData(path string) (io.ReadCloser, error) {
	files, err := exportFiles()
	if err != nil {
		return nil, err
	}
	if files[path] == "" {
		return nil, fmt.Errorf("no package %q", path)
	}
	f, err := os.Open(files[path])
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 go list -export names compiler archives, which this reads until Go 1.29
	r, err := gcexportdata.NewReader(f)
	return struct {
		io.Reader
		io.Closer
	}{r, f}, err
}

// testSymbols are yaegi's tables, with processes.
var testSymbols = sync.OnceValue(func() Symbols {
	all := Symbols{}
	for _, tables := range []Symbols{stdlib.Symbols, unrestricted.Symbols} {
		for pkg, names := range tables {
			if all[pkg] == nil {
				all[pkg] = map[string]reflect.Value{}
			}
			for name, v := range names {
				all[pkg][name] = v
			}
		}
	}
	return all
})

var library = sync.OnceValues(func() (*Library, error) { return NewLibrary(exportData) })

func openVM(t testing.TB) *notebook {
	t.Helper()
	types, err := library()
	if err != nil {
		t.Fatal(err)
	}
	out := &lockedBuffer{}
	e, err := NewVM(Options{
		Symbols: testSymbols(), Types: types, Stdin: strings.NewReader(""), Stdout: out, Stderr: out,
		OSStdout: os.Stdout, OSStderr: os.Stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &notebook{engine: e, out: out}
}

// tableCase is a case of testdata/cells.json.
type tableCase struct {
	Name  string   `json:"name"`
	Cells []string `json:"cells"`
	Want  string   `json:"want"`
}

// judge runs a case and says "right", "refused" or "wrong", with what came.
func (nb *notebook) judge(c tableCase) (verdict, got string) {
	var values []any
	var err error
	refused, out := "", ""
	for i, code := range c.Cells {
		nb.n++
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		values, err = nb.engine.Run(ctx, nb.n, code)
		cancel()
		out = nb.out.take()
		if err != nil && i < len(c.Cells)-1 {
			refused += err.Error() + "; "
		}
	}
	value := "nil"
	if len(values) > 0 {
		value = fmt.Sprint(values[0])
	}
	got = out + "=>" + value
	if err != nil {
		got = "err:" + err.Error()
	}
	for _, want := range c.wants() {
		if text, ok := strings.CutPrefix(want, "err"); ok {
			text = strings.TrimPrefix(text, ":")
			if err != nil && (text == "*" || strings.Contains(err.Error(), text)) {
				return "right", got
			}
			continue
		}
		i := strings.LastIndex(want, "=>")
		if err == nil && out == want[:i] && (want[i+2:] == "*" || want[i+2:] == value) {
			return "right", got
		}
	}
	if err != nil || refused != "" {
		return "refused", refused + got
	}
	return "wrong", got
}

// wants lists the accepted results.
func (c tableCase) wants() []string {
	i := strings.LastIndex(c.Want, "=>")
	if strings.HasPrefix(c.Want, "err:") || i < 0 {
		return []string{c.Want}
	}
	var list []string
	for _, v := range strings.Split(c.Want[i+2:], "|") {
		if v == "err" && strings.Contains(c.Want[i:], "|") || strings.HasPrefix(v, "err:") {
			list = append(list, v)
			continue
		}
		list = append(list, c.Want[:i]+"=>"+v)
	}
	return list
}

// TestTable runs the 200 cases. Those that testdata/limits.json lists must fail, and no others.
func TestTable(t *testing.T) {
	raw, err := os.ReadFile("testdata/cells.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []tableCase `json:"cases"`
	}
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile("testdata/limits.json")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]string{} // case → why it fails
	if err := json.Unmarshal(raw, &limits); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, c := range table.Cases {
		verdict, got := openVM(t).judge(c)
		counts[verdict]++
		switch reason, listed := limits[c.Name]; {
		case verdict != "right" && !listed:
			t.Errorf("%s: %s: got %q, want %q", c.Name, verdict, got, c.Want)
		case verdict == "right" && listed:
			t.Errorf("%s is right now: take it out of testdata/limits.json (%s)", c.Name, reason)
		}
	}
	t.Logf("%v", counts)
}

// TestOrderOfEvaluation: what go run prints for these is written beside them; the machine reads the variable earlier, so
// each must be refused.
func TestOrderOfEvaluation(t *testing.T) {
	for _, code := range []string{
		"func f() []int { x := 1; g := func() int { x++; return x }; return []int{x, g()} }",                             // [2 2]
		"a := 1\nfunc f() int { a++; return a }\nb := a + f()",                                                           // 4
		"func f() map[int]int { m := map[int]int{}; i := 0; h := func() int { i = 5; return 7 }; m[i] = h(); return m }", // map[5:7]
		"type T struct{ n int }\nfunc (t *T) Inc() int { t.n++; return t.n }\nt := &T{}\nu := t.n + t.Inc()",             // 2
	} {
		if got := openVM(t).run(code); !strings.HasPrefix(got, "!not supported: ") {
			t.Errorf("%s: %q", code, got)
		}
	}
	nb := openVM(t)
	nb.run("total := 1\nfunc double(n int) int { return 2 * n }")
	if got := nb.run("total + double(4)"); got != "=>9" {
		t.Errorf("a call that changes nothing gives %q", got)
	}
}

// TestStopsAsleep: a cell that is interrupted in time.Sleep ends as interrupted.
func TestStopsAsleep(t *testing.T) {
	if _, err := openVM(t).interrupt("import \"time\"\ntime.Sleep(time.Hour)"); err == nil || !strings.HasPrefix(err.Error(), "interrupted") {
		t.Errorf("ended with %v", err)
	}
}

func BenchmarkEngines(b *testing.B) {
	for name, code := range map[string][2]string{
		"fib27": {"func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }", "fib(27)"},
		"float": {"func f() float64 { s := 0.0; for i := 0; i < 10000000; i++ { s += float64(i) * 0.5 }; return s }", "f()"},
		"slice": {"func f() int { a := make([]int, 10000000); s := 0; for _, v := range a { s += v }; return s }", "f()"},
		"map":   {"func f() int { m := map[int]int{}; for i := 0; i < 1000000; i++ { m[i%1000]++ }; return len(m) }", "f()"},
	} {
		for engine, open := range map[string]func(testing.TB) *notebook{"vm": openVM, "yaegi": openYaegi} {
			b.Run(name+"/"+engine, func(b *testing.B) {
				nb := open(b)
				nb.run(code[0])
				for b.Loop() {
					nb.run(code[1])
				}
			})
		}
	}
}
