package python

import (
	"bufio"
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// sourceFile is a file of Python's standard library and what Python's own tools say of it.
type sourceFile struct {
	Path, Source, Reformatted, Bare string
	Functions                       [][3]any
	Numbers                         [][2]any
	Missing, MissingWhole           []string // names that an import must be added for in Bare and in Source
}

// corpus reads 200 files of the standard library of the Python that is installed.
func corpus(t *testing.T) (all []sourceFile) {
	t.Helper()
	args := append([]string{"testdata/corpus.py", "200"}, slices.Sorted(maps.Keys(packages))...)
	cmd := exec.Command("python3", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var f sourceFile
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("python3: %v\n%s", err, stderr.String())
	}
	if len(all) < 100 {
		t.Fatalf("only %d files", len(all))
	}
	return all
}

// TestStandardLibrary compares with Python's ast and tokenize on real programs.
func TestStandardLibrary(t *testing.T) {
	repaired := 0
	for _, f := range corpus(t) {
		lineOf := func(pos int) float64 { return float64(1 + strings.Count(f.Source[:pos], "\n")) }
		var functions [][3]any
		for _, x := range Functions(f.Source) {
			functions = append(functions, [3]any{x.Name, lineOf(x.Start), lineOf(x.End)})
		}
		if !slices.Equal(functions, f.Functions) {
			t.Errorf("%s: functions\n got %v\nwant %v", f.Path, functions, f.Functions)
		}
		var numbers [][2]any
		for _, l := range Literals(f.Source) {
			numbers = append(numbers, [2]any{l.Text, float64(l.Line)})
		}
		if !slices.Equal(numbers, f.Numbers) {
			t.Errorf("%s: numbers\n got %v\nwant %v", f.Path, numbers, f.Numbers)
		}
		crlf := strings.ReplaceAll(f.Source, "\n", "\r\n")
		if len(Literals(crlf)) != len(numbers) || len(Functions(crlf)) != len(functions) {
			t.Errorf("%s: other numbers or functions with CRLF", f.Path)
		}
		if Hash(f.Reformatted) != Hash(f.Source) {
			t.Errorf("%s: another hash with other white space", f.Path)
		}
		if !Balanced(f.Source) {
			t.Errorf("%s: not balanced", f.Path)
		}
		for source, want := range map[string][]string{f.Source: f.MissingWhole, f.Bare: f.Missing} {
			var lines []string
			for _, n := range want {
				lines = append(lines, packages[n])
			}
			slices.Sort(lines)
			if _, added := Imports(source); !slices.Equal(added, slices.Compact(lines)) {
				t.Errorf("%s: added %q, want %q", f.Path, added, lines)
			}
			repaired += len(want)
		}
	}
	if repaired < 50 {
		t.Errorf("only %d names were missing: the corpus shows little", repaired)
	}
}
