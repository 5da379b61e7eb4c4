//go:build linux && (amd64 || arm64)

package judge

import (
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skep/plotting"
	"skep/problems/spec"
	"skep/problems/value"
)

//go:embed testdata/hostile
var hostileFiles embed.FS

// hostile is one program of testdata/hostile. Weak spots of tier C, which has no file system of its own: 15 gets
// some hundred MB onto the disk before the poll ends it; 42 holds 8 MB in pipes that no limit counts; sizes and times of files outside can
// still be asked for (stat is not restricted by Landlock).
type hostile struct {
	file     string
	outcomes []spec.Outcome // of the program as it is: one of these
	heard    string         // pattern of what it reports when it can; "" where it never gets to report
}

func one(o spec.Outcome) []spec.Outcome { return []spec.Outcome{o} }

var (
	noise  = one(spec.BadResult) // its report on descriptor 3 is no frame
	closed = `^blocked PermissionError`
	busy   = []spec.Outcome{spec.TimeoutCPU, spec.TimeoutWall} // on a machine that starves it, the clock runs out first
)

var hostilePrograms = []hostile{
	{"01_env_keys.py", one(spec.Exception), ""}, // it lists /proc, which is closed
	{"02_read_heldout.py", noise, closed},
	{"03_read_home_etc.py", noise, `^blocked all`},
	{"04_net_tcp.py", noise, `^\['PermissionError', 'PermissionError', 'PermissionError'\]`},
	{"06_kill_parent.py", noise, `^\[\(\d+, 'PermissionError'\), \(1, 'PermissionError'\), \(-1, 'PermissionError'\)\]`},
	{"07_timeout_loop.py", busy, ""},
	{"08_ignore_signals_sleep.py", one(spec.TimeoutWall), ""},
	{"09_fork_bomb.py", noise, `^forked 0 then \[Errno 1\]`},
	{"10_double_fork_setsid_orphan.py", noise, closed},
	{"11_mem_bomb_list.py", one(spec.OutOfMemory), ""},
	{"13_mem_bomb_procs.py", noise, `^blocked after 0: PermissionError`},
	{"14_memfd_bomb.py", noise, `^blocked at 0 MB PermissionError`},
	{"15_tmp_fill.py", one(spec.OutputLimit), ""},
	{"16_devshm_fill.py", noise, `^blocked at 0 MB`},
	{"18_big_file_fsize.py", noise, `^blocked File too large`},
	{"19_sparse_file.py", noise, `^blocked File too large`},
	{"20_stdout_2gb.py", one(spec.OutputLimit), ""},
	{"21_stderr_2gb_then_hang.py", one(spec.OutputLimit), ""},
	{"22_result_1gb.py", one(spec.ResultLimit), ""},
	{"24_userns_mount.py", noise, `^unshare -1 Operation not permitted`},
	{"25_syscalls.py", noise, `^(\w+=Operation no ){11}clone3=Function not`},
	{"26_exec_other_binary.py", noise, closed},
	{"27_write_site_packages.py", noise, `^blocked all`},
	{"29_segv.py", one(spec.Crash), ""},
	{"30_exit0_no_result.py", one(spec.NoResult), ""},
	{"31_sys_exit_str.py", one(spec.Exception), ""},
	{"33_fd_scan.py", noise, `^\[(\(\d, '(open|pipe:\[\d+\])'\)(, )?){4}\]\n$`},
	{"34_proc_list.py", noise, closed},
	{"35_thread_bomb.py", noise, ""}, // it leaves by _exit: what it says is lost
	{"36_fd_exhaust.py", noise, `^blocked at 252`},
	{"37_mlock_nice.py", noise, `^\['nice blocked', 'AS raise blocked', 'affinity blocked'\]`},
	{"38_zombies.py", noise, `^blocked at 0`},
	{"39_tty_inject.py", noise, `^blocked Operation not permitted`},
	{"41_chmod_suid.py", noise, `^\["PermissionError`},
	{"42_pipe_mem.py", noise, `^pipes hold 7680 KB`},
	{"44_int80.py", one(spec.ForbiddenSyscall), ""},
	{"46_clock.py", noise, `^patched clocks`},
	{"53_bad_utf8.py", one(spec.SyntaxError), ""},
	{"56_const_fold.py", one(spec.OutOfMemory), ""},
	{"58_thread_nondaemon.py", noise, `^done`},
	{"60_close_fds.py", one(spec.NoResult), ""},
	{"61_warn_flood.py", one(spec.OutputLimit), ""},
	{"62_regex_redos.py", busy, ""},
	{"64_mem_str_mul.py", one(spec.OutOfMemory), ""},
	{"65_numpy_thread_oversub.py", one(spec.Exception), ""}, // it counts its threads in /proc
	{"67_proc_self_mem.py", one(spec.Exception), ""},
	{"69_exec_deep_pickle.py", noise, ""},
}

// generatedPrograms are those of generated.json, too large for files.
func generatedPrograms() map[string]string {
	return map[string]string{
		"50_nested_parens": strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000),
		"51_unary_bomb":    "x=" + strings.Repeat("-", 2_000_000) + "1",
		"55_huge_src":      "x=[\n" + strings.Repeat("1,\n", 6_000_000) + "]",
	}
}

// echo is a problem that takes any result as it is.
type echo struct{ limits spec.Limits }

func (e echo) Info() spec.Info                    { return spec.Info{Name: "echo", Entry: "run", Limits: e.limits} }
func (echo) Statement() string                    { return "" }
func (echo) Initial() string                      { return "" }
func (echo) Verify(value.Value) spec.Verdict      { return spec.Verdict{Outcome: spec.OK} }
func (echo) Picture(value.Value) *plotting.Figure { return nil }

var hostileLimits = spec.Limits{CPU: 2 * time.Second, Wall: 4 * time.Second, MemoryBytes: 512 << 20}

const canary = "SECRET_CANARY-7f3a"

// arena is where the hostile programs run: a judge, and things that they must not get at.
type arena struct {
	judge     *Judge
	dir       string // TMPDIR, open to all; holds nothing but what is being judged
	fill      *strings.Replacer
	connected atomic.Int32
}

// newArena opens a judge on python. The canaries are a file, an environment variable and a listening socket.
func newArena(t *testing.T, python string) *arena {
	t.Helper()
	dir, secret := openFolder(t), filepath.Join(openFolder(t), "heldout.txt")
	t.Setenv("TMPDIR", dir)
	t.Setenv("SECRET_CANARY_KEY", canary)
	if err := os.WriteFile(secret, []byte(canary), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	a := &arena{dir: dir}
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
			a.connected.Add(1)
		}
	}()
	a.fill = strings.NewReplacer("@CANARY_FILE@", secret, "@HOME@", "/root", "@SCRIPT_DIR@", filepath.Dir(secret),
		"@LISTEN_PORT@", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
	if a.judge, err = Open(t.Context(), Options{Python: python, Evaluators: 3}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v", a.judge)
	return a
}

// openFolder makes a folder that every user can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "skep-judge-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (a *arena) source(t *testing.T, file string) string {
	t.Helper()
	text, err := hostileFiles.ReadFile("testdata/hostile/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return a.fill.Replace(string(text))
}

// hear rewrites a program so that what it would say on descriptor 3 becomes its result.
func hear(source string) string {
	return "_said = []\n" + strings.ReplaceAll(source, "os.write(3,", "_said.append(") + "\ndef run():\n    return [bytes(b).decode() for b in _said]\n"
}

// try judges one program and checks that no canary came out.
func (a *arena) try(t *testing.T, name, source string) Result {
	r, err := a.judge.Evaluate(t.Context(), echo{hostileLimits}, source)
	if err != nil {
		t.Errorf("%s: the judge failed: %v", name, err)
	}
	if all := fmt.Sprint(r.Message, r.Stdout, r.Stderr, r.Returned); strings.Contains(all, canary) {
		t.Errorf("%s: the canary got out: %.300s", name, all)
	}
	return r
}

// all runs every hostile program, two at a time, beside a well-behaved neighbour whose verdict must not change.
func (a *arena) all(t *testing.T) {
	stop := make(chan struct{})
	var neighbour sync.WaitGroup
	neighbour.Go(func() {
		patient := echo{spec.Limits{CPU: 20 * time.Second, Wall: time.Minute, MemoryBytes: 512 << 20}}
		for {
			r, err := a.judge.Evaluate(t.Context(), patient, "import numpy as np\ndef run():\n    return float(np.arange(1000.0).sum())\n")
			if err != nil || r.Outcome != spec.OK || r.Returned != value.Float(499500) {
				t.Errorf("the neighbour's verdict: %s %v %q %v", r.Outcome, r.Returned, r.Message, err)
			}
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	spawn := func(f func()) {
		slots <- struct{}{}
		group.Go(func() { f(); <-slots })
	}
	for _, h := range hostilePrograms {
		spawn(func() { a.asItIs(t, h) })
		if h.heard != "" {
			spawn(func() { a.heard(t, h) })
		}
	}
	for name, source := range generatedPrograms() {
		spawn(func() {
			if r := a.try(t, name, source); r.Outcome != spec.SyntaxError {
				t.Errorf("%s: %s %q, want syntax_error", name, r.Outcome, r.Message)
			}
		})
	}
	group.Wait()
	close(stop)
	neighbour.Wait()
	a.empty(t)
}

func (a *arena) asItIs(t *testing.T, h hostile) {
	r := a.try(t, h.file, a.source(t, h.file))
	if !slices.Contains(h.outcomes, r.Outcome) {
		t.Errorf("%s: %s %q, want one of %v", h.file, r.Outcome, clip(r.Message, 400), h.outcomes)
	}
}

func (a *arena) heard(t *testing.T, h hostile) {
	r := a.try(t, h.file, hear(a.source(t, h.file)))
	said, _ := r.Returned.(value.List)
	if len(said) == 0 {
		t.Errorf("%s: said nothing: %s %q", h.file, r.Outcome, clip(r.Message, 400))
		return
	}
	if text := string(said[len(said)-1].(value.String)); !regexp.MustCompile(h.heard).MatchString(text) {
		t.Errorf("%s: said %q, want %s", h.file, text, h.heard)
	}
}

// empty checks that nothing was reached and nothing is left: no connection, no process, no file.
func (a *arena) empty(t *testing.T) {
	t.Helper()
	if n := a.connected.Load(); n > 0 {
		t.Errorf("%d connections reached the canary's port", n)
	}
	if left, err := os.ReadDir(a.dir); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v %v", left, err)
	}
	for _, pid := range processes() {
		if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && strings.HasPrefix(cwd, a.dir) {
			t.Errorf("process %d is left in %s", pid, cwd)
		}
	}
}

// TestHostile runs the suite as whoever runs the tests; as root without anything that keeps nobody out of the Python
// environment, candidates run as nobody.
func TestHostile(t *testing.T) {
	python := os.Getenv(testPythonVariable)
	if python == "" {
		python = environment(t)
	}
	newArena(t, python).all(t)
}

// testPythonVariable names the Python of a test that runs as another user.
const testPythonVariable = "SKEP_TEST_PYTHON"

// TestHostileUnprivileged runs the suite and the tricks as a fresh ordinary user, in a process of that user.
func TestHostileUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: TestHostile was this test")
		return
	}
	const user = 54321
	dir := openFolder(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "judge.test") // go test keeps its own in a folder that others cannot enter
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(binary, self, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^(TestHostile|TestTricks)$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "HOME=" + dir, testPythonVariable + "=" + openPython(t)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("candidates run as user %d", user)) {
		t.Errorf("as user %d: %v\n%s", user, err, out)
	}
}

// TestNobody: with a Python that everybody can reach, root's candidates run as nobody, with the same walls.
func TestNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: candidates run as the user")
		return
	}
	a := newArena(t, openPython(t))
	r := a.try(t, "identity", "import os\ndef run():\n    return [os.getuid(), os.getgid(), os.getgroups()]\n")
	if got := fmt.Sprint(r.Returned); got != "[65534 65534 []]" {
		t.Errorf("identity %s: %s", got, r.Message)
	}
	for _, h := range hostilePrograms {
		if slices.Contains([]string{"02_read_heldout.py", "06_kill_parent.py", "09_fork_bomb.py", "15_tmp_fill.py", "27_write_site_packages.py", "41_chmod_suid.py"}, h.file) {
			a.asItIs(t, h)
			if h.heard != "" {
				a.heard(t, h)
			}
		}
	}
	a.empty(t)
}

// openPython is a Python with numpy that every user can reach: the environment itself where it is open, else one made
// from the system's Python, with numpy copied over where the versions allow it.
func openPython(t *testing.T) string {
	t.Helper()
	python := environment(t)
	about, err := describe(t.Context(), python)
	if err != nil {
		t.Fatal(err)
	}
	shut := func(path string) bool { return closedToOthers(path) != "" }
	if !slices.ContainsFunc(about.trees(), shut) {
		return python
	}
	const system = "/usr/bin/python3"
	base, err := describe(t.Context(), system)
	if err != nil {
		t.Fatalf("a Python that every user can reach is needed at %s: %v", system, err)
	}
	dir := openFolder(t)
	if !slices.Equal(base.Version[:2], about.Version[:2]) {
		t.Setenv("PATH", "/usr/bin:/bin")
		python, err := Environment(t.Context(), EnvOptions{Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		return python
	}
	run := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	venv := filepath.Join(dir, "venv")
	run(system, "-m", "venv", "--without-pip", venv)
	minor := fmt.Sprintf("lib/python3.%d/site-packages", base.Version[1])
	from := filepath.Join(filepath.Dir(filepath.Dir(python)), minor)
	run("cp", "-r", filepath.Join(from, "numpy"), filepath.Join(from, "numpy.libs"), filepath.Join(venv, minor))
	return filepath.Join(venv, "bin/python")
}
