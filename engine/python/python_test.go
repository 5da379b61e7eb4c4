package python

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const sample = `"""Doc."""
import math

RADIUS = 0.5  # not 0.7
@cached
def ring(n, r=1e-3):
    '''text 42'''
    x = [i * 2 for i in range(n)]  # comment 9
    s = f"{n} 77"
    return (x,
            -r, 0x1F, 1_000, 3.j, .25)


class A:
    k = 3

def run(a: int = 10) -> float:
    return ring(2) if a else \
        4.
`

// TestLiteralsAgreeWithPython compares with the tokenize module of Python itself.
func TestLiteralsAgreeWithPython(t *testing.T) {
	for _, source := range []string{sample, "x=1\nif x>.5e-3:\n\ty=0b101+1E5-0o17\n", "a = b'1' + rb\"\"\"2\n3\"\"\"\nz=5.e3j\n", "print(1if 2else 3)\n"} {
		script := `import tokenize,io,sys,json
print(json.dumps([[t.string,t.start[0]] for t in tokenize.generate_tokens(io.StringIO(sys.stdin.read()).readline) if t.type==tokenize.NUMBER]))`
		cmd := exec.Command("python3", "-c", script)
		cmd.Stdin = strings.NewReader(source)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("python3: %v", err)
		}
		var want, got [][2]any
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatal(err)
		}
		for _, l := range Literals(source) {
			got = append(got, [2]any{l.Text, float64(l.Line)})
			if source[l.Start:l.Start+len(l.Text)] != l.Text {
				t.Errorf("%q does not stand at byte %d", l.Text, l.Start)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n got %v\nwant %v", source, got, want)
		}
	}
}

// TestFunctionsAgreeWithPython compares names and extents with Python's ast.
func TestFunctionsAgreeWithPython(t *testing.T) {
	script := `import ast,sys,json
s=sys.stdin.read()
print(json.dumps([[n.name,min([n.lineno]+[d.lineno for d in n.decorator_list]),n.end_lineno] for n in ast.parse(s).body if isinstance(n,(ast.FunctionDef,ast.AsyncFunctionDef,ast.ClassDef))]))`
	for _, source := range []string{sample, "async def f():\n  pass\ndef g(): return 1\nx = 1\ndef h(\n  a,\n):\n  if a:\n\n    return 2\n# end\nprint(h)\n"} {
		cmd := exec.Command("python3", "-c", script)
		cmd.Stdin = strings.NewReader(source)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("python3: %v", err)
		}
		var want, got [][3]any
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatal(err)
		}
		lineOf := func(pos int) float64 { return float64(1 + strings.Count(source[:pos], "\n")) }
		for _, f := range Functions(source) {
			got = append(got, [3]any{f.Name, lineOf(f.Start), lineOf(f.End)})
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	source := "a = 2 - 0.5\n"
	lits := Literals(source)
	for _, c := range []struct {
		lit         int
		value, want string
	}{
		{0, "3", "a = 3 - 0.5\n"}, {1, "-1e-3", "a = 2 - (-1e-3)\n"}, {1, "+.25", "a = 2 - .25\n"}, {0, "2.0", "a = 2.0 - 0.5\n"},
		{0, "2", ""}, {1, "0.50", ""}, {1, "x", ""}, {1, "1;import os", ""}, {0, "007", ""}, {0, "1__0", ""}, {0, "5_", ""}, {0, "0x2", ""}, {0, "0x1F", "a = 0x1F - 0.5\n"}, {1, "5e-1", ""}, {1, ".5", ""}, {1, "1_0.2_5", "a = 2 - 1_0.2_5\n"}, {1, "2j", "a = 2 - 2j\n"}, {1, "", ""}, {1, "-", ""}, {1, ".", ""}, {1, "1 ", ""},
	} {
		got, err := Replace(source, lits[c.lit], c.value)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("Replace(%q) = %q, %v; want %q", c.value, got, err, c.want)
		}
	}
}

func TestHashIgnoresLooks(t *testing.T) {
	base := "def f(x):\n    # why\n    return x+1\n"
	for _, same := range []string{"def f(x):\n  return x + 1", "def f( x ):\n\t'''Doc.'''\n\treturn x+1  # y\n\n\n", "\n" + base} {
		if Hash(same) != Hash(base) {
			t.Errorf("%q counts as another program", same)
		}
	}
	for _, other := range []string{"def f(x):\n    return x+2\n", "def f(x):\n    pass\nreturn x+1\n", "def f(x):\n    return x+'1'\n", "def f(x):\n    return x+ +1\n", "def f(x):\n    if x:\n        y=1\n    return x+1\n"} {
		if Hash(other) == Hash(base) {
			t.Errorf("%q counts as the same program", other)
		}
	}
}

// TestImports runs what it repaired: Python must find every name.
func TestImports(t *testing.T) {
	for source, want := range map[string][]string{
		"x = math.sqrt(4)\n":              {"import math"},
		"import math\nx = math.sqrt(4)\n": nil,
		"\"\"\"d\"\"\"\nfrom __future__ import annotations\nprint(random.random(), itertools.count())\n": {"import itertools", "import random"},
		"from math import sqrt\nx = sqrt(2)\n":                          nil,
		"time = 3\nprint(time.real)\n":                                  nil,
		"def f(copy):\n    return copy.real\nf(1)\n":                    nil,
		"class C:\n    pass\nc = C()\nc.math = 1\nprint(c.math.real)\n": nil,
		"for random in [1]:\n    print(random.real)\n":                  nil,
		"math.\n":                                                              {"import math"},
		"time: float = 3.0\nprint(time.real)\n":                                nil,
		"f = lambda copy: copy.real\nf(1)\n":                                   nil,
		"f = lambda x=math.pi, *, copy=1: copy.real + x\nf()\n":                {"import math"},
		"print([random.real for random in [1]])\n":                             nil,
		"print([x for x in [1] if math.sqrt(x)])\n":                            {"import math"},
		"if (time := 3) and time.real:\n    pass\n":                            nil,
		"import os.path as math\nprint(os.sep)\n":                              {"import os"},
		"import os.path\nprint(os.sep)\n":                                      nil,
		"from math import sqrt as time\nprint(time.__name__)\n":                nil,
		"from math import sqrt as s\nprint(math.pi)\n":                         {"import math"},
		"try: import math\nexcept ImportError: math = None\nmath.pi\n":         nil,
		"print(f'{math.pi:.3f} {{time.x}}')\n":                                 {"import math"},
		"print(f\"{'{'}{', '.join(str(math.pi)):>{random.randint(9, 9)}}\")\n": {"import math", "import random"},
		"print(dict(time=1), time.time())\n":                                   {"import time"},
		"x = [0]; x[0], (copy, y) = 1, (2, 3); print(copy.real)\n":             nil,
		"async def f(re):\n    async with re.x as time:\n        time.y\n":     nil,
		"def f(a: math.pi = 1) -> math.pi:\n    return 1\n":                    {"import math"},
		"def f(*re, **json):\n    return re.x, json.y\n":                       nil,
		"with open('/dev/null') as (json):\n    json.read\n":                   nil,
		"from math import *\nx = 1 + \\\n  random.random()\n":                  {"import random"},
		"from scipy.all import *\nlinalg.norm\n":                               nil,
		"\ufeffx = math.pi\r\ny = 1 + \\\r\n  2\r\n":                           {"import math"},
		"größe = math.pi\nx̂ = größe\nprint(x̂)\n":                             {"import math"},
		"class time(json.JSONEncoder):\n    pass\nprint(time.default)\n":       {"import json"},
		"return_ = 1\nprint(return_, math.pi)\n":                               {"import math"},
		"copy: int\ndef g():\n    copy.x\n":                                    nil,
	} {
		got, added := Imports(source)
		if !slices.Equal(added, want) {
			t.Errorf("%q: added %q, want %q", source, added, want)
			continue
		}
		if strings.HasSuffix(source, ".\n") || strings.Contains(source, "scipy.all") {
			continue
		}
		cmd := exec.Command("python3", "-c", strings.TrimPrefix(got, byteOrderMark))
		var stderr bytes.Buffer
		if cmd.Stderr = &stderr; cmd.Run() != nil {
			t.Errorf("%q does not run: %s", got, stderr.String())
		}
	}
}

func TestReply(t *testing.T) {
	for _, c := range []struct{ text, words, code string }{
		{"Use a grid.\n```python\nimport math\nx = 1\n```\nDone.", "Use a grid.", "import math\nx = 1"},
		{"A\n```python\nx = 1\n", "A", "x = 1"},
		{"A\n```\nlong long block\n```\n```py\nx\n```", "A", "x"},
		{"A\n```text\nno\n```\n```\nyes yes\n```", "A", "yes yes"},
		{"Idea first.\nimport numpy as np\ndef f():\n    return 1\n", "Idea first.", "import numpy as np\ndef f():\n    return 1"},
		{"In a list:\n   ```python\n   def f():\n       return 1\n   ```\n", "In a list:", "def f():\n    return 1"},
		{"A\r\n```python\r\nx = 1\r\n```\r\n", "A", "x = 1"},
		{"only words", "only words", ""},
		{"", "", ""},
	} {
		words, code := Reply(c.text)
		if words != c.words || code != c.code {
			t.Errorf("%q:\n got %q, %q\nwant %q, %q", c.text, words, code, c.words, c.code)
		}
	}
}

func TestSplice(t *testing.T) {
	parent := "import math\n\ndef a():\n    return 1\n\n\ndef b():\n    return a() + 1\n"
	got, ok := Splice(parent, "import random\n\ndef helper():\n    return 4\n\ndef a():\n    return helper()\n")
	if !ok {
		t.Fatal("not spliced")
	}
	out, err := exec.Command("python3", "-c", got+"\nprint(b(), random.__name__)").CombinedOutput()
	if err != nil || string(out) != "5 random\n" {
		t.Errorf("spliced program prints %q: %v\n%s", out, err, got)
	}
	got, _ = Splice(parent, "LIMIT = 3\n\ndef a():\n    return helper()\n\ndef helper():\n    return LIMIT\n\nprint('at the end', b())\n")
	if out, err := exec.Command("python3", "-c", got).CombinedOutput(); err != nil || string(out) != "at the end 4\n" {
		t.Errorf("a call behind the functions prints %q: %v\n%s", out, err, got)
	}
	if _, ok := Splice(parent, "def c():\n    return 1\n"); ok {
		t.Error("spliced a part that redefines nothing")
	}
}

// TestHashTellsBrokenFromWhole: a program does not count as the broken one that has spaces inside its operators.
func TestHashTellsBrokenFromWhole(t *testing.T) {
	for whole, broken := range map[string]string{"x = a <= b\n": "x = a < = b\n", "x = a ** b\n": "x = a * * b\n", "x += 1\n": "x + = 1\n"} {
		if Hash(whole) == Hash(broken) {
			t.Errorf("%q and %q count as one program", whole, broken)
		}
	}
}

// FuzzScan holds what every caller relies on: tokens in order, inside the source, and no panic on broken programs.
func FuzzScan(f *testing.F) {
	f.Add(sample)
	f.Add("x = '''\n")
	f.Add("def\n@\n```python")
	f.Fuzz(func(t *testing.T, source string) {
		end := 0
		for _, tok := range scan(source) {
			if tok.start < end || tok.end <= tok.start || source[tok.start:tok.end] != tok.text {
				t.Fatalf("token %+v after byte %d", tok, end)
			}
			end = tok.end
		}
		Hash(source)
		Imports(source)
		Reply(source)
		Splice(source, sample)
		Splice(sample, source)
		for _, l := range Literals(source) {
			Replace(source, l, "7")
		}
	})
}

func TestLines(t *testing.T) {
	var got []string
	for _, l := range Lines(sample) {
		got = append(got, l.Text)
		for _, at := range l.Literals {
			if c := l.Text[at]; !isDigit(c) && c != '.' {
				t.Errorf("no number at byte %d of %q", at, l.Text)
			}
		}
	}
	if lines := Lines("def f(x):\n    if x: y = 3\n    else: y = 4\n    z = {'a': 1}\n    return z[1:2]\n"); len(lines) != 2 || lines[0].Number != 4 {
		t.Errorf("lines %+v, want the simple statements only", lines)
	}
	want := []string{"    x = [i * 2 for i in range(n)]  # comment 9", "    k = 3"}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	changed := Rewrite(sample, Lines(sample)[1], "    k = 4")
	if strings.Count(changed, "\n") != strings.Count(sample, "\n") || !strings.Contains(changed, "class A:\n    k = 4\n") {
		t.Errorf("rewritten:\n%s", changed)
	}
}

func TestBalanced(t *testing.T) {
	for text, want := range map[string]bool{"x = [(1), {2: 3}]": true, "x = ')'": true, "": true, "f(1": false, "f(1))": false, "x = (1]": false, "x = 'a\\'": false, "x = \"a'": false, "x = '''a'": false, "x = f\"{y[\"a\"]}\"": true, "x = 'a": false, "x = \"": false, ")(": false} {
		if Balanced(text) != want {
			t.Errorf("Balanced(%q) is not %v", text, want)
		}
	}
}
