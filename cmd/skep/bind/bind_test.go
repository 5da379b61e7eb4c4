package bind

import (
	"context"
	"encoding/json"
	"go/types"
	"io"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"
	"time"

	"skep/engine"
	"skep/kernel/cell"
	"skep/kernel/display"
)

// TestSymbolsAndTypesAgree compares the two generated sources: every bound package has types, and what types call an
// exported function, variable or type is bound (generic ones cannot be).
func TestSymbolsAndTypesAgree(t *testing.T) {
	p, err := newPackages()
	if err != nil {
		t.Fatal(err)
	}
	for key, names := range Symbols {
		pkg, err := p.Import(path.Dir(key))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range pkg.Scope().Names() {
			obj := pkg.Scope().Lookup(name)
			if !obj.Exported() || isGeneric(obj) || key == "gonum.org/v1/gonum/floats/floats" && name == "Reverse" {
				continue
			}
			if _, ok := names[name]; !ok {
				t.Errorf("%s.%s has a type but is not bound: run go generate ./cmd/skep/bind", path.Dir(key), name)
			}
		}
	}
}

func isGeneric(obj types.Object) bool {
	switch o := obj.(type) {
	case *types.Func:
		return o.Signature().TypeParams().Len() > 0
	case *types.TypeName:
		switch t := o.Type().(type) {
		case *types.Named:
			if t.TypeParams().Len() > 0 {
				return true
			}
		case *types.Alias:
			if t.TypeParams().Len() > 0 {
				return true
			}
		}
		i, ok := o.Type().Underlying().(*types.Interface)
		return ok && !i.IsMethodSet() // a constraint
	}
	return false
}

// TestTypesMatchTheProgram compares method names in the type data with those of the compiled types.
func TestTypesMatchTheProgram(t *testing.T) {
	p, err := newPackages()
	if err != nil {
		t.Fatal(err)
	}
	for key, names := range Symbols {
		if !strings.HasPrefix(key, "skep/") {
			continue
		}
		pkg, err := p.Import(path.Dir(key))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range names {
			if strings.HasPrefix(name, "_") || v.Kind() != reflect.Pointer || !v.IsNil() {
				continue
			}
			obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				t.Errorf("%s.%s is bound but has no type: run go generate ./cmd/skep/bind", path.Dir(key), name)
				continue
			}
			compiled := v.Type()
			if compiled.Elem().Kind() == reflect.Interface {
				compiled = compiled.Elem()
			}
			for i := range compiled.NumMethod() {
				m := compiled.Method(i).Name
				if found, _, _ := types.LookupFieldOrMethod(obj.Type(), true, pkg, m); found == nil {
					t.Errorf("%s.%s.%s is not in the type data: run go generate ./cmd/skep/bind", path.Dir(key), name, m)
				}
			}
		}
	}
}

// TestNotebooksCheck type-checks every notebook of the repository, cell after cell, without running them: each cell is
// put behind all cells before it.
func TestNotebooksCheck(t *testing.T) {
	b, err := Session("yaegi")
	if err != nil {
		t.Fatal(err)
	}
	dir := "../../../notebooks"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".ipynb" {
			continue
		}
		raw, err := os.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var nb struct {
			Cells []struct {
				Type   string   `json:"cell_type"`
				Source []string `json:"source"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(raw, &nb); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		e2, err := cell.NewYaegi(cell.Options{Symbols: b.Symbols, Types: b.Types, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		before := ""
		for i, c := range nb.Cells {
			if c.Type != "code" {
				continue
			}
			source := strings.Join(c.Source, "")
			if err := e2.Check(before + source); err != nil {
				t.Errorf("%s, cell %d: %v", e.Name(), i+1, err)
			}
			if !isExpression(source) { // a value in the middle of a cell would be an error of its own
				before += source + "\n"
			}
		}
	}
}

func isExpression(source string) bool {
	return !strings.Contains(source, ":=") && !strings.Contains(source, "import") && !strings.Contains(source, "(ctx")
}

// TestCellsUsePackages runs cells over the bound packages, in both engines.
func TestCellsUsePackages(t *testing.T) {
	for _, engine := range Engines {
		t.Run(engine, func(t *testing.T) { cellsUsePackages(t, engine) })
	}
}

func cellsUsePackages(t *testing.T, engine string) {
	b, err := Session(engine)
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Engine(cell.Options{Symbols: b.Symbols, Types: b.Types, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range []string{
		"import (\"gonum.org/v1/plot\"; \"gonum.org/v1/plot/plotter\"; \"gonum.org/v1/plot/vg\")",
		"p := plot.New()\nline := must(plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 2}}))\np.Add(line)",
		"w := 4 * vg.Inch",
		"import \"gonum.org/v1/gonum/mat\"\nmat.Det(mat.NewDense(2, 2, []float64{1, 2, 3, 4}))",
		"import \"skep/engine\"\no := engine.Options{Problem: \"circles_square_26\", Seed: 1}\no.Problem",
		"import \"skep/problems\"\nlen(problems.All()) > 0",
		"import \"os/exec\"\nstring(must(exec.Command(\"echo\", \"child\").Output()))",
		"p",
	} {
		values, err := e.Run(context.Background(), i+1, code)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		switch code {
		case "p":
			d, ok := b.Render(values[0])
			if svg, _ := d.Data[display.MIMETypeSVG].([]byte); !ok || !strings.Contains(string(svg), "<svg") || d.Data[display.MIMETypePNG] == nil {
				t.Errorf("a plot shows as %v", d.Data)
			}
		}
	}
}

// TestProgress sends events and looks at the one display they become.
func TestProgress(t *testing.T) {
	var shown []display.Data
	p := &progress{show: func(v any) (display.DisplayID, error) {
		shown = append(shown, v.(display.Data))
		return "", nil
	}}
	p.Progress(engine.Event{Round: 1, Stage: "reason", Swarm: 0, Done: 3, Total: 8, Unit: "steps", Took: time.Second})
	for i := range 1000 {
		p.Progress(engine.Event{Round: 1, Stage: "write", Swarm: 1, Done: i, Unit: "tokens", Text: "<b>line</b>\nsecond"})
	}
	p.flush()
	if len(shown) < 2 || len(shown) > 100 {
		t.Fatalf("%d displays for 1001 events", len(shown))
	}
	last := shown[len(shown)-1].Data
	text, html := last[display.MIMETypeText].(string), last[display.MIMETypeHTML].(string)
	for _, want := range []string{"round 1 · reason · swarm 0: 3 of 8 steps", "round 1 · write · swarm 1: 999 tokens"} {
		if !strings.Contains(text, want) {
			t.Errorf("text %q lacks %q", text, want)
		}
	}
	if !strings.Contains(html, "width:37.5%") || !strings.Contains(html, "&lt;b&gt;line") || strings.Contains(html, "<b>line") {
		t.Errorf("html %s", html)
	}
}
