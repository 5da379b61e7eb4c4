//go:build linux && (amd64 || arm64)

package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skep/problems"
	"skep/problems/spec"
	"skep/problems/value"
)

// shared is one judge for the tests below.
var shared = sync.OnceValues(func() (*Judge, error) {
	return Open(context.Background(), Options{Evaluators: 2, Limits: spec.Limits{CPU: 5 * time.Second, Wall: 10 * time.Second, MemoryBytes: 768 << 20}})
})

func open(t *testing.T) *Judge {
	t.Helper()
	j, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// body is a program whose run does what the lines say.
func body(lines string) string {
	return "import numpy as np\ndef run():\n    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n"
}

// TestInitialProgram: the known value and score, through Python, the walls and the frame.
func TestInitialProgram(t *testing.T) {
	p, err := problems.Get("circles_square_26")
	if err != nil {
		t.Fatal(err)
	}
	r, err := open(t).Evaluate(t.Context(), p, p.Initial())
	if err != nil || r.Outcome != spec.OK {
		t.Fatalf("%s %q %v", r.Outcome, r.Message, err)
	}
	if *r.Verdict.Value != 0.9597642169962064 || *r.Verdict.Numbers.SearchScore != 0.3641176744353876 {
		t.Errorf("value %v, score %v", *r.Verdict.Value, *r.Verdict.Numbers.SearchScore)
	}
	again, err := DecodeFrame(r.Frame)
	if err != nil || !equal(again, r.Returned) {
		t.Errorf("the stored frame gives %v, %v", again, err)
	}
	if r.Tier != "C" || r.Host == "" || r.CPU <= 0 || r.Wall < r.CPU/2 {
		t.Errorf("tier %q host %q CPU %v wall %v", r.Tier, r.Host, r.CPU, r.Wall)
	}
}

// TestOutcomes: what programs of every kind come to.
func TestOutcomes(t *testing.T) {
	cases := []struct {
		name    string
		code    string
		outcome spec.Outcome
		message string
	}{
		{"a plain result", body("return [1.5, np.float64(2), np.arange(3.0)]"), spec.OK, ""},
		{"raises", body("print('before')\nraise ValueError('no\\udc80good')"), spec.Exception, "ValueError: no?good"},
		{"raises, where", body("x = 1\nreturn x.radius"), spec.Exception, `File "candidate.py", line 4, in run`},
		{"lies about its message", "class E(Exception):\n    def __str__(self): raise self\ndef run(): raise E", spec.Exception, "E:"},
		{"GeneratorExit", body("raise GeneratorExit"), spec.Exception, "GeneratorExit"},
		{"exits politely", body("raise SystemExit(0)"), spec.Exception, "SystemExit"},
		{"no entry function", "x = 1", spec.Exception, "defines no function run"},
		{"entry is no function", "run = 3", spec.Exception, "TypeError"},
		{"does not parse", "def run(:", spec.SyntaxError, "SyntaxError"},
		{"too deep to parse", "x = " + strings.Repeat("-", 200_000) + "1", spec.SyntaxError, ""},
		{"null byte", "x = '\x00'", spec.SyntaxError, "null byte"},
		{"other encoding", "#!/usr/bin/python\n# -*- coding: utf-7 -*-\nx = 1", spec.SyntaxError, `"utf-7"`},
		{"other encoding, vim's way", "# vim: set fileencoding=latin-1 :\nx = 1", spec.SyntaxError, `"latin-1"`},
		{"UTF-8 declared", "# coding: UTF-8\ndef run():\n    return 'é'", spec.OK, ""},
		{"encoding behind code does not count", "x = 1\n# coding: latin-1\ndef run():\n    return 1", spec.OK, ""},
		{"encoding on line three does not count", "\n\n# coding: latin-1\ndef run():\n    return 1", spec.OK, ""},
		{"256 KiB and a byte", "#" + strings.Repeat("x", 256<<10), spec.SyntaxError, "at most 262144"},
		{"leaves without a word", body("import os\nos._exit(3)"), spec.NoResult, "exit status 3"},
		{"aborts", body("import os\nos.abort()"), spec.Crash, "signal 6"},
		{"kills itself", body("import os\nos.kill(os.getpid(), 9)"), spec.Crash, "signal 9"},
		{"sleeps", body("import time\ntime.sleep(60)"), spec.TimeoutWall, "still running"},
		{"stops itself", body("import os\nos.kill(os.getpid(), 19)"), spec.TimeoutWall, ""},
		{"one big integer", body("return 10**10**10"), spec.TimeoutCPU, "5s of processor time"},
		{"memory", body("return np.ones(2**28)"), spec.OutOfMemory, "768 MiB"},
		{"a terabyte", body("return np.empty(2**37)"), spec.OutOfMemory, "MemoryError"},
		{"endless recursion", "import sys\nsys.setrecursionlimit(2**30)\ndef run(): return run()", spec.Crash, ""},
		{"many files", body("for i in range(10**6): open(str(i), 'w').close()"), spec.OutputLimit, "scratch"},
		{"files without a name", body("import os\nfds = []\nfor i in range(200):\n    fds.append(os.open('f', os.O_CREAT | os.O_RDWR)); os.unlink('f'); os.write(fds[-1], bytes(8 << 20))\nimport time; time.sleep(9)"), spec.OutputLimit, "scratch"},
		{"a thread bomb", body("import threading, time\nthreading.stack_size(65536)\nfor i in range(100_000): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"), spec.Crash, "threads"},
		{"no plain object", body("return object()"), spec.BadResult, "builtins.object"},
		{"masked array", body("return np.ma.array([1.0], mask=[True])"), spec.BadResult, "MaskedArray"},
		{"two-faced array", body("class A(np.ndarray): pass\nreturn np.zeros(3).view(A)"), spec.BadResult, "A, which is no plain data"},
		{"float of its own", body("class F(float): pass\nreturn F(1)"), spec.BadResult, "F, which is no plain data"},
		{"array of objects", body("return np.array([None])"), spec.BadResult, "array of object"},
		{"structured array", body("return np.zeros(1, dtype=[('a', 'f8')])"), spec.BadResult, "no plain data"},
		{"long doubles", body("return np.zeros(1, dtype=np.longdouble)"), spec.BadResult, "float128"},
		{"a generator", body("return (x for x in [1])"), spec.BadResult, "generator"},
		{"nested for ever", body("x = []\nx.append(x)\nreturn x"), spec.BadResult, "nested deeper"},
		{"a lone surrogate", body("return '\\ud800'"), spec.BadResult, "lone surrogate"},
		{"a key with a tag", body("return {'$int': 1}"), spec.BadResult, "starts with $"},
		{"a large array", body("return np.zeros(3 << 20)"), spec.ResultLimit, "16777216 bytes"},
		{"a large list", body("return list(range(10**6))"), spec.ResultLimit, "1000000 values"},
		{"a long integer", body("return 7**200_000"), spec.ResultLimit, "100000 digits"},
		{"two frames", body("import os\nos.write(3, " + pythonFrame + ")\nreturn 1"), spec.BadResult, "bytes follow"},
		{"a frame of its own, then gone", body("import os\nos.write(3, " + pythonFrame + "); os._exit(0)"), spec.OK, ""},
		{"a system call of the x32 kind", syscallProgram(unix.SYS_GETPID, "0x40000000 | "), x32Outcome(), ""},
		{"forges our fault", body("import os\nos.write(3, " + strings.ReplaceAll(pythonFrame, `"ok"`, `"infra_error"`) + "); os._exit(0)"), spec.BadResult, "unknown status"},
	}
	j := open(t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := j.Evaluate(context.Background(), echo{}, test.code)
			if err != nil {
				t.Fatal(err)
			}
			if r.Outcome == spec.OutOfMemory && test.name == "endless recursion" {
				return // Python 3.11 and later keep pure Python frames on the heap; earlier ones run out of stack
			}
			if r.Outcome != test.outcome || !strings.Contains(r.Message, test.message) {
				t.Errorf("%s %q, want %s with %q", r.Outcome, clip(r.Message, 500), test.outcome, test.message)
			}
		})
	}
}

// pythonFrame is a Python expression for a frame that holds 7.5.
const pythonFrame = `(lambda h: b"SKEPFR1\n" + len(h).to_bytes(4, "little") + h + b"SKEPEND\n")(b'{"status":"ok","value":7.5,"arrays":[]}')`

// syscallProgram makes one system call by number and returns its error number.
func syscallProgram(number int, prefix string, args ...string) string {
	call := strings.Join(append([]string{fmt.Sprint(prefix, number)}, args...), ", ")
	return body("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nr = libc.syscall(" + call + ")\nreturn ctypes.get_errno() if r < 0 else 0")
}

// x32Outcome is what a call under the x32 mark comes to, which only x86-64 knows.
func x32Outcome() spec.Outcome {
	if runtime.GOARCH == "amd64" {
		return spec.ForbiddenSyscall
	}
	return spec.OK
}

// TestFilter: single system calls by number and arguments; what must be refused and what must work.
func TestFilter(t *testing.T) {
	const eperm, enosys = 1, 38
	cases := []struct {
		name   string
		number int
		args   []string
		want   int64
	}{
		{"a process", unix.SYS_CLONE, []string{"17", "0", "0", "0", "0"}, eperm},
		{"a user namespace by clone", unix.SYS_CLONE, []string{"0x10000000 | 0x10000", "0", "0", "0", "0"}, eperm},
		{"clone3", unix.SYS_CLONE3, []string{"0", "0"}, enosys},
		{"openat2", unix.SYS_OPENAT2, []string{"0", "0", "0", "0"}, enosys},
		{"a call newer than the filter", 470, nil, enosys},
		{"a signal to the supervisor", unix.SYS_KILL, []string{"__import__('os').getppid()", "0"}, eperm},
		{"a signal to the group", unix.SYS_KILL, []string{"0", "0"}, eperm},
		{"a signal to itself", unix.SYS_KILL, []string{"__import__('os').getpid()", "0"}, 0},
		{"limits of another process", unix.SYS_PRLIMIT64, []string{"__import__('os').getppid()", "0", "0", "0"}, eperm},
		{"its own limits", unix.SYS_PRLIMIT64, []string{"0", "0", "0", "0"}, 0},
		{"a datagram pair", unix.SYS_SOCKETPAIR, []string{"1", "2", "0", "(ctypes.c_int * 2)()"}, eperm},
		{"a stream pair", unix.SYS_SOCKETPAIR, []string{"1", "1 | 0o2000000", "0", "(ctypes.c_int * 2)()"}, 0},
		{"an internet pair", unix.SYS_SOCKETPAIR, []string{"2", "1", "0", "(ctypes.c_int * 2)()"}, eperm},
		{"signals through a descriptor", unix.SYS_FCNTL, []string{"0", "8", "1"}, eperm},
		{"which signal", unix.SYS_FCNTL, []string{"0", "10", "9"}, eperm},
		{"a larger pipe", unix.SYS_FCNTL, []string{"0", "1031", "1 << 20"}, eperm},
		{"emptying a file opened for reading", unix.SYS_OPENAT, []string{"-100", "np.__file__.encode()", "0o1000"}, eperm},
		{"reading that file", unix.SYS_OPENAT, []string{"-100", "np.__file__.encode()", "0"}, 0},
		{"outliving the supervisor", unix.SYS_PRCTL, []string{"1", "0", "0", "0", "0"}, eperm},
		{"hiding from the meter", unix.SYS_PRCTL, []string{"4", "0", "0", "0", "0"}, eperm},
		{"a core to itself", unix.SYS_PRCTL, []string{"62", "1", "0", "0", "0"}, eperm},
		{"its name", unix.SYS_PRCTL, []string{"15", `b"x"`, "0", "0", "0"}, 0},
		{"a thread with descriptors of its own", unix.SYS_CLONE, []string{"0x10900", "0", "0", "0", "0"}, eperm},
		{"shared memory", unix.SYS_MMAP, []string{"0", "8192", "3", "0x21", "-1", "0"}, eperm},
		{"shared memory, validated", unix.SYS_MMAP, []string{"0", "8192", "3", "0x23", "-1", "0"}, eperm},
		{"shared memory of 4 GiB and a page", unix.SYS_MMAP, []string{"0", "ctypes.c_long(2**32 + 4096)", "3", "0x21", "-1", "0"}, eperm},
		{"one shared page", unix.SYS_MMAP, []string{"0", "4096", "3", "0x21", "-1", "0"}, 0},
		{"huge pages", unix.SYS_MMAP, []string{"0", "1 << 21", "3", "0x40022", "-1", "0"}, eperm},
		{"private memory", unix.SYS_MMAP, []string{"0", "4096", "3", "0x22", "-1", "0"}, 0},
		{"swapping itself out", unix.SYS_MADVISE, []string{"0", "0", "21"}, eperm},
		{"letting memory go", unix.SYS_MADVISE, []string{"0", "0", "4"}, 0},
		{"extended attributes", unix.SYS_FREMOVEXATTR, []string{"0", `b"user.x"`}, eperm},
		{"watching files", unix.SYS_INOTIFY_INIT1, []string{"0"}, eperm},
		{"message queues", unix.SYS_MQ_OPEN, []string{`b"x"`, "0o100", "0o600", "0"}, eperm},
	}
	j := open(t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := j.Evaluate(context.Background(), echo{}, syscallProgram(test.number, "", test.args...))
			if err != nil || r.Outcome != spec.OK || !equal(r.Returned, value.Int(test.want)) {
				t.Errorf("errno %v, want %d (%s %q %v)", r.Returned, test.want, r.Outcome, r.Message, err)
			}
		})
	}
}

// TestHonest: what ordinary candidates do must keep working behind the walls.
func TestHonest(t *testing.T) {
	cases := map[string]string{
		"threads":      "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n    return sum(pool.map(float, range(10))) == 45",
		"asyncio":      "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return True\nreturn asyncio.run(f())",
		"scratch file": "import tempfile\nwith tempfile.TemporaryFile() as f:\n    f.write(b'x'); f.seek(0)\n    return f.read() == b'x'",
		"linprog":      "from scipy.optimize import linprog\nreturn bool(abs(linprog([-1, -1], A_ub=[[1, 2], [3, 1]], b_ub=[4, 6]).fun + 2.8) < 1e-9)",
		"slsqp":        "from scipy.optimize import minimize\nreturn bool(minimize(lambda x: ((x - 1) ** 2).sum(), np.zeros(5), method='SLSQP').success)",
		"sympy":        "import sympy\nx = sympy.Symbol('x')\nreturn sympy.integrate(2 * x, (x, 0, 3)) == 9",
		"lapack":       "return bool(abs(np.linalg.det(np.eye(300)) - 1) < 1e-9)",
		"hash seed":    "return hash('skep') == hash('skep') and list({'a', 'b', 'c'}) == list({'a', 'b', 'c'})",
		"main guard":   "return __name__ != '__main__'",
		"environment":  "import os\nreturn sorted(k for k in os.environ if 'KEY' in k or 'TOKEN' in k) == [] and os.getcwd() == os.environ['HOME']",
	}
	t.Setenv("SOME_API_KEY", canary)
	j := open(t)
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := j.Evaluate(context.Background(), echo{}, body(lines))
			if err != nil || r.Outcome != spec.OK || r.Returned != value.Bool(true) {
				t.Errorf("%s %v %q %v", r.Outcome, r.Returned, r.Message, err)
			}
		})
	}
}

// TestSameEveryTime: the hash seed is fixed, so set order does not change from run to run.
func TestSameEveryTime(t *testing.T) {
	code := "def run():\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n"
	var first value.Value
	for range 3 {
		r, err := open(t).Evaluate(t.Context(), echo{}, code)
		if err != nil || r.Outcome != spec.OK {
			t.Fatalf("%s %q %v", r.Outcome, r.Message, err)
		}
		if first == nil {
			first = r.Returned
		}
		if !equal(first, r.Returned) {
			t.Errorf("%v, then %v", first, r.Returned)
		}
	}
}

// TestNoMemory: what a candidate leaves behind, the next one does not find.
func TestNoMemory(t *testing.T) {
	code := body("import os, tempfile\nfound = os.listdir(os.environ['HOME']) + os.listdir(tempfile.gettempdir())\nopen('cache', 'w').write('7')\nreturn found")
	for range 2 {
		r, err := open(t).Evaluate(t.Context(), echo{}, code)
		if err != nil || r.Outcome != spec.OK || len(r.Returned.(value.List)) != 0 {
			t.Errorf("%s %v %q %v", r.Outcome, r.Returned, r.Message, err)
		}
	}
}

// TestLingering: a complete frame counts although its sender would never end.
func TestLingering(t *testing.T) {
	code := body("import os, time\nos.write(3, " + pythonFrame + ")\nwhile True: time.sleep(1)")
	r, err := open(t).Evaluate(t.Context(), echo{}, code)
	if err != nil || r.Outcome != spec.OK || r.Returned != value.Float(7.5) || !r.Lingering {
		t.Errorf("%s %v lingering %v after %v %q %v", r.Outcome, r.Returned, r.Lingering, r.Wall, r.Message, err)
	}
	r, err = open(t).Evaluate(t.Context(), echo{}, "import threading, time\nthreading.Thread(target=lambda: time.sleep(1e6)).start()\ndef run():\n    return 1.0\n")
	if err != nil || r.Outcome != spec.OK {
		t.Errorf("with a thread that never ends: %s %v", r.Outcome, err)
	}
}

func TestOutputIsKept(t *testing.T) {
	r, err := open(t).Evaluate(t.Context(), echo{}, "import sys\ndef run():\n    print('head'); print('x' * 100_000); print('tail \\udcff'.encode('utf-8', 'replace').decode())\n    sys.stderr.write('complaint'); return 1\n")
	if err != nil || r.Outcome != spec.OK {
		t.Fatalf("%s %q %v", r.Outcome, r.Message, err)
	}
	if !strings.HasPrefix(r.Stdout, "head\n") || !strings.HasSuffix(r.Stdout, "tail ?\n") || !strings.Contains(r.Stdout, "bytes left out") || len(r.Stdout) > 9000 {
		t.Errorf("stdout of %d bytes: %.40q … %.40q", len(r.Stdout), r.Stdout, r.Stdout[len(r.Stdout)-20:])
	}
	if r.Stderr != "complaint" {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// TestCancel: the end of ctx ends the candidate, soon, and is the error.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	_, err := open(t).Evaluate(ctx, echo{}, body("import time\ntime.sleep(9)"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// orphanVariable makes TestKilledParent's child evaluate a sleeping candidate for ever.
const orphanVariable = "SKEP_TEST_ORPHAN"

// TestKilledParent: when the judge's own process is killed, its candidate and the scratch folder go too.
func TestKilledParent(t *testing.T) {
	if os.Getenv(orphanVariable) != "" {
		_, err := open(t).Evaluate(context.Background(), echo{}, "import time\nprint('up', flush=True)\nopen('here', 'w').close()\ntime.sleep(600)\n")
		t.Fatal("ended: ", err)
	}
	dir := openFolder(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledParent$")
	cmd.Env = append(os.Environ(), orphanVariable+"=1", "TMPDIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inside := func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "skep-candidate-*", "here"))
		return len(found) > 0
	}
	until(t, "the candidate runs", inside)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says: killed
	until(t, "the scratch folder is gone", func() bool {
		left, err := os.ReadDir(dir)
		return err == nil && len(left) == 0
	})
	for _, pid := range processes() {
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && strings.HasPrefix(cwd, dir) {
			t.Errorf("process %d is left in %s", pid, cwd)
		}
	}
}

// until waits for a condition, for at most a minute.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestRefusals: Open never takes weaker walls than were asked for.
func TestRefusals(t *testing.T) {
	for tier, want := range map[string]string{"A": "not built yet", "off": "no sandbox tier", "degraded": "no sandbox tier"} {
		if _, err := Open(t.Context(), Options{Tier: tier}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tier %s: %v", tier, err)
		}
	}
	r := Report{Layers: []Layer{
		{Name: "landlock", Needed: true, Detail: "operation not supported", Fix: "boot with lsm=landlock"},
		{Name: "seccomp", Needed: true, Have: true}, {Name: "yama"},
	}}
	err := r.Missing()
	if err == nil || !strings.Contains(err.Error(), "landlock is missing (operation not supported): boot with lsm=landlock") || strings.Contains(err.Error(), "yama") {
		t.Errorf("%v", err)
	}
}
