//go:build linux && (amd64 || arm64)

package judge

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// nobody is the unprivileged user and group that root's candidates run as.
const nobody = 65534

// identity is who a candidate runs as.
type identity struct {
	User    int    // numeric user and group; -1: the caller's own
	Strip   bool   // drop every capability, since the user stays root
	Because string // why it is not nobody, for doctor
}

// chooseIdentity: an ordinary user stays what it is. Root becomes nobody if nobody can reach all of paths (Landlock narrows
// what may be read, it cannot grant anything); else root without any capability, which is an ordinary user that owns
// root's files: Landlock and the system call filter keep those closed.
func chooseIdentity(paths []string) identity {
	if os.Geteuid() != 0 {
		return identity{User: -1}
	}
	if !hasCapability(unix.CAP_SETUID) || !hasCapability(unix.CAP_SETGID) {
		return identity{User: -1, Strip: true, Because: "this root may not change its user"}
	}
	for _, path := range paths {
		if closed := closedToOthers(path); closed != "" {
			return identity{User: -1, Strip: true, Because: fmt.Sprintf("%s is closed to other users", closed)}
		}
	}
	return identity{User: nobody}
}

func (id identity) String() string {
	switch {
	case id.User >= 0:
		return fmt.Sprintf("candidates run as user %d (nobody)", id.User)
	case id.Strip:
		return "candidates run as root without any capability: " + id.Because
	default:
		return fmt.Sprintf("candidates run as user %d", os.Geteuid())
	}
}

// closedToOthers returns the first folder on the way to path that users other than its owner may not enter, or path
// itself if they may not read it; "" if all is open or path does not exist.
func closedToOthers(path string) string {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	const read, enter = 0o4, 0o1
	need := os.FileMode(read)
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return at
		}
		if info.IsDir() {
			need |= enter
		}
		if info.Mode().Perm()&need != need {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
		need = enter
	}
}

func hasCapability(c int) bool {
	var data [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[c/32].Effective&(1<<(c%32)) != 0
}

// stripThread takes every capability from the calling thread, for what it starts too. A capability that cannot be dropped
// from the bounding set was not there; no_new_privs keeps it from coming back in any case.
func stripThread() error {
	const noRoot = 1<<0 | 1<<1 // SECBIT_NOROOT and its lock: linux/securebits.h
	if hasCapability(unix.CAP_SETPCAP) {
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
			return fmt.Errorf("prctl(PR_SET_SECUREBITS): %w", err)
		}
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
