//go:build linux && (amd64 || arm64)

package judge

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"skep/problems/spec"
)

// quick is a judge whose limits are the problem's: four candidates at a time, as many of them only wait.
var quick = sync.OnceValues(func() (*Judge, error) {
	return Open(context.Background(), Options{Python: os.Getenv(testPythonVariable), Evaluators: 4})
})

// program is one candidate and what it must come to. want is part of the message, or of the returned value as Go prints it.
type program struct {
	name    string
	code    string
	outcome spec.Outcome
	want    string
}

// judged evaluates programs under hostileLimits, several at a time.
func judged(t *testing.T, programs []program) {
	j, err := quick()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r, err := j.Evaluate(context.Background(), echo{hostileLimits}, p.code)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Message
			if r.Outcome == spec.OK {
				got = fmt.Sprint(r.Returned)
			}
			if r.Outcome != p.outcome && !(busyOutcome(p.outcome) && busyOutcome(r.Outcome)) || !strings.Contains(got, p.want) {
				t.Errorf("%s %q, want %s with %q; stderr %q", r.Outcome, clip(got, 500), p.outcome, p.want, clip(r.Stderr, 1000))
			}
		})
	}
}

// busyOutcome: which of the two limits ends a loop depends on the machine's load.
func busyOutcome(o spec.Outcome) bool { return o == spec.TimeoutCPU || o == spec.TimeoutWall }

// returning is a program that returns one expression.
func returning(expression string) string { return body("return " + expression) }

// TestSources: forms of a source file that Python itself takes, and those that nobody does.
func TestSources(t *testing.T) {
	const one = "def run():\n    return 1\n"
	judged(t, []program{
		{"byte order mark", "\ufeff" + one, spec.OK, "1"},
		{"byte order mark, encoding", "\ufeff# coding: utf-8\n" + one, spec.OK, "1"},
		{"Windows line ends", strings.ReplaceAll(one, "\n", "\r\n"), spec.OK, "1"},
		{"old Macintosh line ends", strings.ReplaceAll(one, "\n", "\r"), spec.OK, "1"},
		{"form feeds and tabs", "\f\ndef run():\n\treturn 1\n\f\n", spec.OK, "1"},
		{"no newline at the end", "def run(): return 1", spec.OK, "1"},
		{"Emacs's encoding", "# -*- coding: utf-8-unix -*-\n" + one, spec.OK, "1"},
		{"UTF-16", "\xff\xfed\x00e\x00f\x00", spec.SyntaxError, "not valid UTF-8"},
		{"UTF-16 without a mark", "d\x00e\x00f\x00", spec.SyntaxError, "null byte"},
		{"ASCII declared, none", "# coding: ascii\n" + "def run():\n    return 'é'\n", spec.SyntaxError, ""},
		{"a byte order mark inside", "x = 1\n\ufeff" + one, spec.SyntaxError, "U+FEFF"},
		{"mixed indentation", "def run():\n\tx = 1\n        return x\n", spec.SyntaxError, "TabError"},
		{"empty", "", spec.Exception, "defines no function run"},
		{"only comments", "# nothing\n# more", spec.Exception, "defines no function run"},
		{"300 KiB", "#" + strings.Repeat("x", 300<<10), spec.SyntaxError, "at most 262144"},
		{"words about a program", "Here is the improved program:\n```python\n" + one + "```", spec.SyntaxError, "SyntaxError"},
		{"return outside", "return 1", spec.SyntaxError, "outside function"},
		{"from the future", "'''doc'''\nfrom __future__ import annotations\ndef run(x: nothing = 1):\n    return x", spec.OK, "1"},
		{"a future that there is not", "from __future__ import braces", spec.SyntaxError, "not a chance"},
		{"main guard only", "if __name__ == '__main__':\n    def run(): return 1", spec.Exception, "defines no function run"},
		{"defined by condition", "import sys\nif sys.maxsize > 2:\n    def run(): return 1\nelse:\n    def run(): return 2", spec.OK, "1"},
		{"defined by assignment", "run = lambda: 1", spec.OK, "1"},
		{"defined by exec", "exec('def run(): return 1')", spec.OK, "1"},
		{"relative import", "from . import helper\n" + one, spec.Exception, "ImportError"},
		{"module that is not there", "import torch\n" + one, spec.Exception, "No module named 'torch'"},
		{"its own file", "import os\nHERE = os.path.dirname(os.path.abspath(__file__))\ndef run(): return HERE == os.getcwd()", spec.OK, "true"},
		{"raises after a form feed", "x = 1\n\f\ndef run():\n    return missing_name\n", spec.Exception, "return missing_name"},
		{"dataclass", "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: float\ndef run(): return P(2.5).x", spec.OK, "2.5"},
	})
}

// TestSloppy: honest mistakes; the outcome names the mistake.
func TestSloppy(t *testing.T) {
	slow := "import signal\ndef late(*_): raise TimeoutError('late')\n"
	judged(t, []program{
		{"required argument", "def run(n): return n", spec.Exception, "required positional argument"},
		{"a class", "class run:\n    pass", spec.BadResult, "candidate.run"},
		{"a callable object", "class C:\n    def __call__(self): return 1\nrun = C()", spec.OK, "1"},
		{"async", "async def run(): return 1", spec.BadResult, "coroutine"},
		{"a generator", "def run(): yield 1", spec.BadResult, "generator"},
		{"returns nothing", "def run(): pass", spec.OK, "{}"},
		{"leaves by exit", "def run(): exit()", spec.Exception, ""},
		{"leaves by sys.exit", "import sys\ndef run(): sys.exit(3)", spec.Exception, "SystemExit: 3"},
		{"leaves on import", "import sys\nsys.exit()\ndef run(): return 1", spec.Exception, "SystemExit"},
		{"asks", "def run(): return input('n? ')", spec.Exception, "EOFError"},
		{"recursion", "def run(): return run()", spec.Exception, "RecursionError"},
		{"all time on import", "while True: pass", spec.TimeoutCPU, ""},
		{"sleeps on import", "import time\ntime.sleep(99)\ndef run(): return 1", spec.TimeoutWall, ""},
		{"prints a lot", "def run():\n    for i in range(100_000): print(i)\n    return 1", spec.OK, "1"},
		{"a process pool", "from multiprocessing import Pool\ndef run():\n    with Pool(2) as p: return p.map(abs, [1])", spec.Exception, "Error"},
		{"an executor of processes", "from concurrent.futures import ProcessPoolExecutor\ndef run():\n    with ProcessPoolExecutor(2) as p: return list(p.map(abs, [1]))", spec.Exception, "Error"},
		{"a subprocess", "import subprocess\ndef run(): return subprocess.check_output(['ls'])", spec.Exception, "Error"},
		{"a download", "import urllib.request\ndef run(): return urllib.request.urlopen('http://127.0.0.1/').read()", spec.Exception, "Error"},
		{"warnings as errors", body("import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')\nreturn np.array([np.inf, np.nan, 5e-324])"), spec.OK, "[3]"},
		{"a warning raised", body("import warnings\nwarnings.simplefilter('error')\nreturn np.float64(1) / 0"), spec.Exception, "RuntimeWarning"},
		{"an alarm that is never cancelled", slow + "def run():\n    signal.signal(signal.SIGVTALRM, late); signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)\n    return [0.5] * 150_000", spec.OK, "[0.5 0.5"},
		{"an alarm without a handler", slow + "def run():\n    signal.setitimer(signal.ITIMER_VIRTUAL, 0.02, 0.01)\n    return [0.5] * 150_000", spec.OK, "[0.5 0.5"},
		{"an alarm that goes off", slow + "def run():\n    signal.signal(signal.SIGALRM, late); signal.setitimer(signal.ITIMER_REAL, 0.03)\n    while True: pass", spec.Exception, "TimeoutError: late"},
		{"a low recursion limit", "import sys\ndef run():\n    x = 1\n    for _ in range(40): x = [x]\n    sys.setrecursionlimit(30)\n    return x", spec.OK, "[[[[1]]]]"},
		{"stdout taken away", "import sys, io\ndef run():\n    sys.stdout = io.StringIO(); sys.stderr = None; print('x')\n    return 1", spec.OK, "1"},
		{"stdout closed", "import sys\ndef run():\n    sys.stdout.close(); sys.stderr.close()\n    return 1", spec.OK, "1"},
		{"a helper called len", "len = type = str = print = None\ndef run(): return [1, 'a']", spec.OK, "[1 a]"},
		{"a helper called json", "import json, struct\njson.dumps = struct.pack = struct.unpack_from = None\ndef run(): return 1", spec.OK, "1"},
		{"an error without a name", "class M(type):\n    __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\ndef run(): raise E", spec.Exception, ""},
		{"an error with a long text", "def run(): raise ValueError('x' * 10_000_000)", spec.Exception, "xxxx"},
		{"an error with a cause", "def run():\n    try: 1 / 0\n    except ZeroDivisionError as e: raise KeyError('k') from e", spec.Exception, "KeyError: 'k'"},
		{"an error group", "def run():\n    import sys\n    if sys.version_info < (3, 11): raise ValueError('two')\n    raise ExceptionGroup('two', [ValueError(1), KeyError(2)])", spec.Exception, "two"},
		{"an interrupt", "def run(): raise KeyboardInterrupt", spec.Exception, "KeyboardInterrupt"},
		{"MemoryError of its own", "def run(): raise MemoryError('mine')", spec.OutOfMemory, "mine"},
	})
}

// TestReturnedKinds: what crosses the boundary and what does not, whatever a class says of itself.
func TestReturnedKinds(t *testing.T) {
	lying := func(base string) string {
		return body("class L(" + base + "):\n    __class__ = " + base + "\n    def __iter__(self): return iter([9])\n    def __float__(self): return 9.0\n    def __len__(self): return 9\nreturn L()")
	}
	judged(t, []program{
		{"lying float", lying("float"), spec.BadResult, "L, which is no plain data"},
		{"lying int", lying("int"), spec.BadResult, "L, which is no plain data"},
		{"lying list", lying("list"), spec.BadResult, "L, which is no plain data"},
		{"lying tuple", lying("tuple"), spec.BadResult, "L, which is no plain data"},
		{"lying dict", lying("dict"), spec.BadResult, "L, which is no plain data"},
		{"lying text", lying("str"), spec.BadResult, "L, which is no plain data"},
		{"lying numpy float", lying("np.float64"), spec.BadResult, "L, which is no plain data"},
		{"a class that says it is numpy's", body("class F(np.float64):\n    __module__ = 'numpy'\n    def __array__(self, *a, **k): return np.array(9.0)\n    def __float__(self): return 9.0\nreturn F(1)"), spec.BadResult, "no plain data"},
		{"named tuple", body("import collections\nreturn collections.namedtuple('P', 'x y')(1, 2)"), spec.BadResult, "P, which is no plain data"},
		{"default dict", body("import collections\nreturn collections.defaultdict(int)"), spec.BadResult, "defaultdict"},
		{"deque", body("import collections\nreturn collections.deque([1])"), spec.BadResult, "deque"},
		{"range", returning("range(3)"), spec.BadResult, "range"},
		{"zip", returning("[zip([1], [2])]"), spec.BadResult, "zip"},
		{"bytes", returning("b'1'"), spec.BadResult, "bytes"},
		{"Decimal", body("import decimal\nreturn decimal.Decimal('0.1')"), spec.BadResult, "Decimal"},
		{"Fraction", body("import fractions\nreturn fractions.Fraction(-2, 6)"), spec.OK, "-1/3"},
		{"a Fraction that lies", body("import fractions\nf = fractions.Fraction(1, 3)\nf._denominator = 0\nreturn f"), spec.BadResult, "denominator"},
		{"sympy number", body("import sympy\nreturn sympy.Rational(1, 3)"), spec.BadResult, "sympy"},
		{"lazy object", body("class Lazy:\n    def __array__(self, *a, **k): return np.zeros(3)\nreturn Lazy()"), spec.BadResult, "Lazy"},
		{"matrix", returning("np.matrix([[1.0]])"), spec.BadResult, "matrix"},
		{"record array", returning("np.rec.array([(1.0, 2)])"), spec.BadResult, "no plain data"},
		{"memory map", body("m = np.memmap('f', dtype='f8', mode='w+', shape=3)\nreturn m"), spec.BadResult, "memmap"},
		{"text array", returning("np.array(['1.0'])"), spec.BadResult, "<U3"},
		{"dates", returning("np.array(['2020-01-01'], dtype='M8[D]')"), spec.BadResult, "datetime64"},
		{"void", returning("np.zeros(3, dtype='V0')"), spec.BadResult, "no plain data"},
		{"nine dimensions", returning("np.zeros((1,) * 9)"), spec.BadResult, "9 dimensions"},
		{"no dimensions", returning("np.array(2.5)"), spec.OK, "f8 [] "},
		{"half", returning("np.float16(1)"), spec.OK, "f2 [] [0 60]"},
		{"big-endian", returning("np.array([1.0], dtype='>f8')"), spec.OK, "f8 [1] [0 0 0 0 0 0 240 63]"},
		{"every second", returning("np.arange(6, dtype='u1')[::-2]"), spec.OK, "u1 [3] [5 3 1]"},
		{"column order", returning("np.asfortranarray(np.arange(4, dtype='u1').reshape(2, 2))"), spec.OK, "u1 [2 2] [0 1 2 3]"},
		{"broadcast", returning("np.broadcast_to(np.uint8(7), (2, 2))"), spec.OK, "u1 [2 2] [7 7 7 7]"},
		{"broadcast to a terabyte", returning("np.broadcast_to(1.0, (10**12,))"), spec.ResultLimit, "bytes"},
		{"broadcast to more than 2^63 bytes", returning("np.broadcast_to(np.uint8(1), (2**31, 2**31))"), spec.ResultLimit, "bytes"},
		{"read-only", body("a = np.ones(1, dtype='u1'); a.flags.writeable = False\nreturn a"), spec.OK, "u1 [1] [1]"},
		{"numpy boolean", returning("np.bool_(True)"), spec.OK, "b1 [] [1]"},
		{"special floats", returning("[float('nan'), float('inf'), -float('inf'), -0.0, 5e-324]"), spec.OK, "[NaN +Inf -Inf -0 5e-324]"},
		{"complex", returning("complex(1, float('inf'))"), spec.OK, "(1+Infi)"},
		{"text of digits", returning("['12', '１２']"), spec.OK, "[12 １２]"},
		{"null in a text", returning("'a\\0b'"), spec.OK, "a\x00b"},
		{"sets", returning("[{1.5}, frozenset()]"), spec.OK, "[[1.5] []]"},
		{"one-element tuple", returning("(1.0,)"), spec.OK, "[1]"},
		{"keys that are no text", returning("{1: 2}"), spec.BadResult, "key that is no text"},
		{"cyclic dict", body("d = {}\nd['d'] = d\nreturn d"), spec.BadResult, "nested deeper"},
		{"itself in an object array", body("a = np.empty(1, dtype=object); a[0] = a\nreturn a"), spec.BadResult, "object"},
		{"a million digits", returning("10**999_999"), spec.ResultLimit, "100000 digits"},
		{"one long integer many times", returning("[7**100_000] * 500_000"), spec.ResultLimit, "bytes"},
		{"one long text many times", returning("['x' * 1_000_000] * 500_000"), spec.ResultLimit, "bytes"},
		{"a billion nothings", body("x = [None] * 100\nfor _ in range(5): x = [x] * 100\nreturn x"), spec.ResultLimit, "1000000 values"},
		{"unseeded random numbers", returning("bool(0 <= np.random.rand() < 1)"), spec.OK, "true"},
	})
}
