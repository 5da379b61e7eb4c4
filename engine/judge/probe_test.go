//go:build linux && (amd64 || arm64)

package judge

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// withoutVariable makes TestNoLandlock's child refuse itself Landlock, as an old container profile does.
const withoutVariable = "SKEP_TEST_WITHOUT_LANDLOCK"

// TestNoLandlock: where a layer is missing, Open is an error that names it and the setting, and nothing is run.
func TestNoLandlock(t *testing.T) {
	if os.Getenv(withoutVariable) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestNoLandlock$", "-test.v")
		cmd.Env = append(os.Environ(), withoutVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused as it must") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	refuse(t, unix.SYS_LANDLOCK_CREATE_RULESET)
	_, err := Open(t.Context(), Options{})
	for _, want := range []string{"landlock is missing", "function not implemented", "lsm=", "skep doctor"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	if r := Probe(); r.Tier != "" {
		t.Fatalf("tier %q without Landlock", r.Tier)
	}
	t.Log("refused as it must")
}

// refuse lets every thread of this process get ENOSYS from one system call.
func refuse(t *testing.T, number uint32) {
	t.Helper()
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1},
		ret(errno(unix.ENOSYS)),
		ret(allow),
	})
	if err != nil {
		t.Fatal(err)
	}
	var code []unix.SockFilter
	for _, in := range raw {
		code = append(code, unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K})
	}
	const allThreads = 1 // SECCOMP_FILTER_FLAG_TSYNC
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	runtime.LockOSThread() // no_new_privs must be set on the thread that loads the filter
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, allThreads, uintptr(unsafe.Pointer(&program))); e != 0 {
		t.Fatal(e)
	}
}
