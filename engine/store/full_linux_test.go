package store

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func init() {
	mountSmall = func(dir string) (func() error, error) {
		larger := func() error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=32m") }
		return larger, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m")
	}
}

// The real thing: a file system of 2 MiB, mounted in a name space of the child's own. Where the system lets nobody
// mount (some containers), TestNoSpace covers the same path.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	cmd := inRole("fill", dir)
	cmd.Env = append(cmd.Env, "SKEP_STORE_MOUNT=1")
	cmd.SysProcAttr = ownMounts()
	if err := mountable(dir); err != nil {
		t.Logf("this system mounts nothing for us: %v", err)
		return
	}
	checkFill(t, cmd)
}

// ownMounts starts a process that may mount without touching the system: as root in a mount name space, as anyone
// else in a user name space too.
func ownMounts() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // unlike a clone flag it makes mounts private
	if os.Geteuid() != 0 {
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// mountable tries it out.
func mountable(dir string) error {
	cmd := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir)
	cmd.SysProcAttr = ownMounts()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
