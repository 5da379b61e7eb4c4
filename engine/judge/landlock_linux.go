//go:build linux && (amd64 || arm64)

package judge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock through our own calls and not the go-landlock library: that one restricts every thread of its process,
// while the supervisor restricts one thread only, the one that starts the candidate, and stays free itself.

const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE

	landlockWrite = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE

	landlockDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
)

// landlockABI returns the kernel's Landlock ABI version; the error says why there is none. ABI 1 is enough here: what
// later ones add (refer 2, truncate 3, TCP 4, devices 5, signals 6) the system call filter refuses as well.
func landlockABI() (int, error) {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, fmt.Errorf("landlock_create_ruleset: %w", e)
	}
	return int(abi), nil
}

// ruleset is everything that this ABI can control, so that what no rule allows is refused.
func ruleset(abi int) unix.LandlockRulesetAttr {
	rights := map[int]uint{1: 13, 2: 14, 3: 15, 4: 15}[abi] // bits of file access
	if abi >= 5 {
		rights = 16
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<rights - 1}
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// restrictThread walls off the calling thread, and what it starts, for good: it can read the trees readOnly, write in
// scratch, use /dev/null and urandom, and nothing else: /dev/zero maps as memory that does not count as resident. The caller must have locked the thread and never unlock it.
func restrictThread(readOnly []string, scratch string) error {
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	attr := ruleset(abi)
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", e)
	}
	defer unix.Close(int(fd))
	rules := map[string]uint64{scratch: landlockWrite, "/dev/null": landlockDevice, "/dev/urandom": landlockDevice}
	for _, path := range readOnly {
		rules[path] = landlockRead | unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	for path, access := range rules {
		if err := allowBeneath(int(fd), path, access&attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", e)
	}
	return nil
}

// allowBeneath adds one rule; a path that does not exist needs none.
func allowBeneath(ruleset int, path string, access uint64) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("landlock rule: %w", err)
	}
	if !info.IsDir() {
		access &= landlockRead | landlockDevice | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("landlock rule: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if e != 0 {
		return fmt.Errorf("landlock rule for %s: %w", path, e)
	}
	return nil
}
