//go:build linux && (amd64 || arm64)

package judge

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Probe looks at what this machine offers; it changes nothing and is safe for concurrent use.
func Probe() Report {
	r := Report{Platform: runtime.GOOS + "/" + runtime.GOARCH, Layers: []Layer{
		probeLandlock(), probeSeccomp(), probeSubreaper(), probeProc(), probeUser(), probeNamespaces(), probeCgroup(), probeYama(),
	}}
	if r.Missing() == nil {
		r.Tier = "C"
	}
	return r
}

func probeLandlock() Layer {
	l := Layer{Name: "landlock", Needed: true}
	abi, err := landlockABI()
	if err != nil {
		l.Detail = err.Error()
		l.Fix = "boot a kernel of 5.13 or later with landlock among the values of the lsm= parameter, or let the container's seccomp profile pass the landlock_* calls"
		return l
	}
	l.Have, l.Detail = true, fmt.Sprintf("ABI %d", abi)
	return l
}

func probeSeccomp() Layer {
	l := Layer{Name: "seccomp", Needed: true, Detail: "system call filter, kill and errno"}
	for _, action := range []uint32{unix.SECCOMP_RET_KILL_PROCESS, unix.SECCOMP_RET_ERRNO} {
		if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
			l.Detail = fmt.Sprintf("seccomp(GET_ACTION_AVAIL): %v", e)
			l.Fix = "use a kernel built with CONFIG_SECCOMP_FILTER, and a container profile that passes the seccomp call"
			return l
		}
	}
	l.Have = true
	return l
}

func probeSubreaper() Layer {
	l := Layer{Name: "subreaper", Needed: true, Detail: "a supervisor adopts orphans"}
	var value int
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	if l.Have = err == nil; err != nil {
		l.Detail, l.Fix = fmt.Sprintf("prctl: %v", err), "use a kernel of 3.4 or later"
	}
	return l
}

func probeProc() Layer {
	l := Layer{Name: "proc", Needed: true, Detail: "limits are polled in /proc"}
	if _, l.Have = readStat(os.Getpid()); !l.Have {
		l.Detail, l.Fix = "/proc/self/stat cannot be read", "mount /proc"
	}
	return l
}

func probeUser() Layer {
	l := Layer{Name: "user", Have: true, Detail: fmt.Sprintf("ordinary user %d", os.Geteuid())}
	if os.Geteuid() == 0 {
		l.Have = hasCapability(unix.CAP_SETUID) && hasCapability(unix.CAP_SETGID)
		l.Detail = "root; candidates become nobody where nobody can reach the Python environment, else root without capabilities"
	}
	return l
}

func probeNamespaces() Layer {
	l := Layer{Name: "user namespaces", Detail: "not used by tier C"}
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	l.Have = err == nil && strings.TrimSpace(string(text)) != "0"
	return l
}

func probeCgroup() Layer {
	l := Layer{Name: "cgroup v2", Detail: "not used by tier C; no controllers"}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		text, err := os.ReadFile(root + "/cgroup.controllers")
		if controllers := strings.TrimSpace(string(text)); err == nil && controllers != "" {
			l.Have, l.Detail = true, "not used by tier C; controllers "+controllers
		}
	}
	return l
}

func probeYama() Layer {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return Layer{Name: "yama", Detail: "absent; the system call filter refuses ptrace in any case"}
	}
	return Layer{Name: "yama", Have: true, Detail: "ptrace_scope " + strings.TrimSpace(string(text))}
}
