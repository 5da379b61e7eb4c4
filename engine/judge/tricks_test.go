//go:build linux && (amd64 || arm64)

package judge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"

	"skep/problems/spec"
	"skep/problems/value"
)

// send is a program that writes bytes to the frame's descriptor from run, then does what follows.
func send(bytes, then string) string {
	return body("import os, time\nframe = " + pythonFrame + "\nos.write(3, " + bytes + ")\n" + then)
}

// TestForgedFrames: what a candidate writes to the frame's descriptor itself. A whole frame and nothing else counts as
// what the candidate returned, since it could have returned that; everything else is refused.
func TestForgedFrames(t *testing.T) {
	judged(t, []program{
		{"half a frame, then hangs", send("frame[:20]", "time.sleep(99)"), spec.TimeoutWall, ""},
		{"half a frame, then leaves", send("frame[:20]", "os._exit(0)"), spec.BadResult, "breaks off"},
		{"half a frame, then dies", send("frame[:20]", "os.kill(os.getpid(), 15)"), spec.Crash, "signal 15"},
		{"half a frame, then the true one", send("frame[:20]", "return 1"), spec.BadResult, ""},
		{"a header of 4 GiB", send(`b"SKEPFR1\n\xff\xff\xff\xff"`, "os._exit(0)"), spec.ResultLimit, "header"},
		{"a header that does not come", send(`b"SKEPFR1\n\0\0\x0f\0"`, "os._exit(0)"), spec.BadResult, "breaks off"},
		{"a frame and garbage", send("frame + b'x'", "os._exit(0)"), spec.BadResult, "1 bytes follow"},
		{"a frame, garbage later", send("frame", "time.sleep(0.1); os.write(3, b'x'); time.sleep(99)"), spec.BadResult, "1 bytes follow"},
		{"another ready byte", send("b'R' + frame", "os._exit(0)"), spec.BadResult, "wrong first bytes"},
		{"a frame on import", "import os\nos.write(3, " + pythonFrame + "); os._exit(1)", spec.OK, "7.5"},
		{"arrays without bytes", send(`(lambda h: b"SKEPFR1\n" + len(h).to_bytes(4, "little") + h + b"SKEPEND\n")(b'{"status":"ok","value":{"$nd":0},"arrays":[{"dtype":"f8","shape":[1000]}]}')`, "os._exit(0)"), spec.BadResult, "breaks off"},
		{"a thread that writes too", body("import os, threading\ndef noise():\n    while True: os.write(3, b'noise')\nthreading.Thread(target=noise, daemon=True).start()\nimport time; time.sleep(0.2)\nreturn 1"), spec.BadResult, ""},
		{"closes the descriptor", body("import os\nos.close(3)\nreturn 1"), spec.NoResult, ""},
		{"closes everything", body("import os\nos.closerange(0, 256)\nreturn 1"), spec.NoResult, ""},
		{"puts stdout there", body("import os\nos.dup2(1, 3)\nreturn 1"), spec.NoResult, ""},
		{"puts a file there", body("import os\nos.close(3); os.open('f', os.O_CREAT | os.O_RDWR)\nreturn 1"), spec.NoResult, ""},
		{"prints there", body("import os\nos.dup2(3, 1)\nprint('hello')\nreturn 1"), spec.BadResult, "wrong first bytes"},
		{"does not wait there", body("import os\nos.set_blocking(3, False)\nreturn np.zeros(200_000)"), spec.OK, "f8 [200000]"},
		{"a fault of ours in words", send(`frame.replace(b'"ok"', b'"no"')`, "os._exit(0)"), spec.BadResult, "unknown status"},
	})
}

// TestTricks: programs that go for the bootstrap, the clock, or what no limit counts.
func TestTricks(t *testing.T) {
	thread := func(work string) string { // leaves work running while the first thread of the process is gone
		return "import ctypes, threading, time, os\nlibc = ctypes.CDLL(None)\ndef work():\n    " + work + "\nthreading.Thread(target=work).start()\ntime.sleep(0.2)\nlibc.pthread_exit(None)\n"
	}
	fill := "os.write(os.open(NAME, os.O_CREAT | os.O_RDWR), bytes(8 << 20))"
	judged(t, []program{
		{"replaces what the bootstrap calls", body("import os, sys, json, struct\nos.write = os._exit = sys.exit = None\njson.JSONEncoder = struct.Struct = None\nreturn 1"), spec.OK, "1"},
		{"replaces the builtins", body("import builtins\nfor n in ('len', 'type', 'isinstance', 'BaseException', 'MemoryError'): setattr(builtins, n, None)\nreturn 1"), spec.Exception, ""},
		{"empties sys.modules", body("import sys\nsys.modules.clear()\nreturn 1"), spec.OK, "1"},
		{"false numpy", body("import sys, types\nsys.modules['numpy'] = types.ModuleType('numpy')\nreturn np.zeros(3)"), spec.Exception, ""},
		{"replaces asarray", body("np.asarray = lambda x: np.zeros(3)\nreturn np.ones(1, dtype='u1')"), spec.OK, ""},
		{"reaches the bootstrap's frames", body("import sys\nf = sys._getframe()\nwhile f.f_back: f = f.f_back\nf.f_globals['frame'] = f.f_globals['failure'] = lambda *a, **k: b'x'\nreturn 1"), spec.BadResult, ""},
		{"finds the packer by gc", body("import gc, sys\nfor o in gc.get_objects():\n    if getattr(o, '__name__', '') == 'Packer': o.pack = lambda s, x, depth=0: {'$f': 'inf'}\nreturn 1"), spec.OK, "+Inf"},
		{"traces", body("import sys\nsys.settrace(lambda *a: 1 / 0)\nreturn 1"), spec.Exception, "ZeroDivisionError"},
		{"profiles", body("import sys\nsys.setprofile(lambda *a: 1 / 0)\nreturn 1"), spec.Exception, "ZeroDivisionError"},
		{"leaves at exit", "import atexit, os\natexit.register(os._exit, 7)\ndef run(): return 1", spec.OK, "1"},
		{"finalizers", "import weakref, os\nclass C:\n    def __del__(self): os._exit(7)\nc = C()\nweakref.finalize(c, os._exit, 7)\ndef run(): return 1", spec.OK, "1"},
		{"a finalizer that never ends", body("class C:\n    def __del__(self):\n        while True: pass\nc = C(); c.me = c; del c\nimport gc; gc.collect()\nreturn 1"), spec.TimeoutCPU, ""},
		{"escapes in a message", body("raise ValueError('\\x1b]0;title\\x07\\x1b[2Jgone\\r\\0\\x9b')"), spec.Exception, "gone"},
		{"a SIGXCPU handler", body("import signal, resource\nsignal.signal(signal.SIGXCPU, lambda *a: None)\nwhile True: pass"), spec.TimeoutCPU, ""},
		{"repeating timers", body("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN); signal.setitimer(signal.ITIMER_REAL, 1e-5, 1e-5)\nwhile True: pass"), spec.TimeoutCPU, ""},
		{"stops itself", body("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"), spec.TimeoutWall, ""},
		{"a first thread that is gone, sleeping", thread("time.sleep(99)"), spec.TimeoutWall, ""},
		{"a first thread that is gone, busy", thread("while True: pass"), spec.TimeoutCPU, ""},
		{"a first thread that is gone, eating", thread("x = [bytearray(b'x' * (64 << 20)) for _ in range(20)]; time.sleep(99)"), spec.OutOfMemory, ""},
		{"a first thread that is gone, filling", thread("[(os.write(os.open('f', os.O_CREAT | os.O_RDWR), bytes(8 << 20)), os.unlink('f')) for _ in range(20)]; time.sleep(99)"), spec.OutputLimit, "scratch"},
		{"shared memory that it lets go of", body("import mmap\nheld = []\nfor _ in range(24):\n    m = mmap.mmap(-1, 32 << 20); m.write(b'x' * (32 << 20)); m.madvise(mmap.MADV_DONTNEED); held.append(m)\nreturn len(held)"), spec.Exception, "PermissionError"},
		{"private memory", body("import mmap\nheld = []\nfor _ in range(24):\n    m = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.write(b'x' * (32 << 20)); held.append(m)\nimport time; time.sleep(1)"), spec.OutOfMemory, ""},
		{"a map of a terabyte", body("import mmap\nmmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)"), spec.Exception, "Error"},
		{"folders too deep to name", body("import os, time\nfor _ in range(40): os.mkdir('d' * 250); os.chdir('d' * 250)\nfor i in range(20): " + strings.ReplaceAll(fill, "NAME", "str(i)") + "\ntime.sleep(99)"), spec.OutputLimit, "scratch"},
		{"a folder that nobody may list", body("import os, time\nos.mkdir('x', 0o300)\nfor i in range(20): " + strings.ReplaceAll(fill, "NAME", "'x/%d' % i") + "\ntime.sleep(99)"), spec.OutputLimit, "scratch"},
		{"a folder that nobody may remove", body("import os\nos.makedirs('a/b'); open('a/b/c', 'w').close(); os.mkdir('a/d', 0)\nreturn 1"), spec.OK, "1"},
		{"files that never had a name", body("import os, time\nfor i in range(20): os.write(os.open('.', os.O_TMPFILE | os.O_RDWR), bytes(8 << 20))\ntime.sleep(99)"), spec.OutputLimit, "scratch"},
		{"files that only a map holds", body("import os, time, ctypes\nmap = ctypes.CDLL(None).mmap\nfor i in range(20):\n    f = os.open('f', os.O_CREAT | os.O_RDWR); os.write(f, bytes(8 << 20)); map(None, 4096, 1, 2, f, 0); os.close(f); os.unlink('f')\ntime.sleep(99)"), spec.OutputLimit, "scratch"},
		{"a core file", body("import os, resource\ntry: resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))\nexcept (ValueError, OSError): os.abort()\nreturn 1"), spec.Crash, "signal 6"},
		{"sockets of every family", body("import socket\ngot = []\nfor f in (1, 2, 10, 16, 17, 21, 38, 40):\n    for k in (1, 2, 3, 5):\n        try: socket.socket(f, k); got.append(f)\n        except PermissionError: pass\nreturn got"), spec.OK, "[]"},
		{"name service", body("import socket\nsocket.gethostbyname('example.com')"), spec.Exception, "gaierror"},
		{"everything under /proc/self", body("import os\ngot = []\nfor n in ('environ', 'mem', 'maps', 'cmdline', 'root/etc/passwd', 'cwd/..', 'task', 'attr/current', 'coredump_filter'):\n    try: os.close(os.open('/proc/self/' + n, os.O_RDONLY)); got.append(n)\n    except PermissionError: pass\nreturn got"), spec.OK, "[]"},
		{"the neighbours' folders", body("import os\ngot = []\nfor d in ('..', '/', '/tmp', '/root', '/home', '/root/.ssh', '/var', '/dev/shm', '/sys', '/run'):\n    try: os.listdir(d); got.append(d)\n    except (PermissionError, FileNotFoundError): pass\nreturn got"), spec.OK, "[]"},
		{"a link to what is outside", body("import os\ngot = []\nfor to in ('/etc/passwd', np.__file__, '..'):\n    try: os.symlink(to, 's'); os.close(os.open('s', os.O_WRONLY if to == np.__file__ else 0)); got.append(to)\n    except OSError: pass\n    os.unlink('s')\n    try: os.link(to, 'h'); got.append('link ' + to)\n    except OSError: pass\nreturn got"), spec.OK, "[]"},
		{"writes beside the packages", body("import os\ngot = []\nd = os.path.dirname(np.__file__)\nfor n in ('x.py', '__pycache__/x.pyc', '../sitecustomize.py', '../x.pth'):\n    try: open(os.path.join(d, n), 'w'); got.append(n)\n    except OSError: pass\nfor act in (os.unlink, os.rmdir, lambda p: os.rename(p, 'x'), lambda p: os.utime(p), lambda p: os.truncate(p, 0)):\n    try: act(np.__file__); got.append('act')\n    except OSError: pass\nreturn got"), spec.OK, "[]"},
	})
}

// TestRefusedCalls: system calls by which a program could reach past its walls, without any argument that makes sense.
func TestRefusedCalls(t *testing.T) {
	calls := map[string]int{
		"ptrace": unix.SYS_PTRACE, "mount": unix.SYS_MOUNT, "chroot": unix.SYS_CHROOT, "setns": unix.SYS_SETNS, "bpf": unix.SYS_BPF,
		"perf": unix.SYS_PERF_EVENT_OPEN, "keyctl": unix.SYS_KEYCTL, "io_uring": unix.SYS_IO_URING_SETUP, "userfaultfd": unix.SYS_USERFAULTFD,
		"seccomp": unix.SYS_SECCOMP, "clock_settime": unix.SYS_CLOCK_SETTIME, "sched_setscheduler": unix.SYS_SCHED_SETSCHEDULER,
		"sched_setaffinity": unix.SYS_SCHED_SETAFFINITY, "setpriority": unix.SYS_SETPRIORITY, "memfd": unix.SYS_MEMFD_CREATE,
		"pidfd": unix.SYS_PIDFD_OPEN, "process_vm": unix.SYS_PROCESS_VM_READV, "shmget": unix.SYS_SHMGET, "socket": unix.SYS_SOCKET,
		"fanotify": unix.SYS_FANOTIFY_INIT, "handles": unix.SYS_OPEN_BY_HANDLE_AT, "acct": unix.SYS_ACCT, "swapon": unix.SYS_SWAPON,
		"setuid": unix.SYS_SETUID, "capset": unix.SYS_CAPSET, "personality": unix.SYS_PERSONALITY, "sendmsg": unix.SYS_SENDMSG,
		"sendmmsg": unix.SYS_SENDMMSG,
	}
	var text strings.Builder
	for name, number := range calls {
		fmt.Fprintf(&text, "%q: %d, ", name, number)
	}
	code := body("import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nopen_ = []\nfor name, n in {" + text.String() + "}.items():\n    if libc.syscall(n, -1, 0, 0, 0, 0, 0) >= 0 or ctypes.get_errno() != 1: open_.append(name)\nreturn open_")
	judged(t, []program{{"all", code, spec.OK, "[]"}})
}

// TestMessagesAreText: what a candidate says of itself reaches prompts and terminals, so it is short, and plain text, even
// where it wrote the frame itself.
func TestMessagesAreText(t *testing.T) {
	j, err := quick()
	if err != nil {
		t.Fatal(err)
	}
	forged := `(lambda h: b"SKEPFR1\n" + len(h).to_bytes(4, "little") + h + b"SKEPEND\n")(b'{"status":"exception","type":"\\u001b[2J","message":"' + b"x" * 900_000 + b'","traceback":"\\r\\n\\u009b"}')`
	for name, code := range map[string]string{
		"forged": send(forged, "os._exit(0)"),
		"raised": body("raise ValueError('\\x1b[2J\\x9b\\0' + 'x' * 10_000)"),
	} {
		r, err := j.Evaluate(context.Background(), echo{hostileLimits}, code)
		if err != nil || r.Outcome != spec.Exception || !strings.Contains(r.Message, "xxxx") || len(r.Message) > 10_000 {
			t.Errorf("%s: %s, %d bytes, %v", name, r.Outcome, len(r.Message), err)
		}
		for _, c := range r.Message {
			if unicode.IsControl(c) && c != '\n' && c != '\t' {
				t.Errorf("%s: the control character %U in the message", name, c)
			}
		}
	}
}

// TestScratchThroughLink: a temporary folder that is a symbolic link hides no deleted file from the meter, and nothing stays in it.
func TestScratchThroughLink(t *testing.T) {
	dir := openFolder(t)
	link := filepath.Join(openFolder(t), "tmp")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", link)
	j, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := j.Evaluate(t.Context(), echo{hostileLimits}, body("import os, time\nfor i in range(20):\n    os.write(os.open('f', os.O_CREAT | os.O_RDWR), bytes(8 << 20)); os.unlink('f')\ntime.sleep(99)"))
	if err != nil || r.Outcome != spec.OutputLimit {
		t.Errorf("%s %q %v", r.Outcome, r.Message, err)
	}
	r, err = j.Evaluate(t.Context(), echo{hostileLimits}, body("import os\nreturn os.getcwd() == os.environ['HOME']"))
	if err != nil || r.Returned != value.Bool(true) {
		t.Errorf("%s %v %q %v", r.Outcome, r.Returned, r.Message, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch folder: %v %v", left, err)
	}
}
