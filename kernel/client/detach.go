package client

import (
	"os/exec"
	"syscall"
)

// detach gives the kernel a process group of its own: Ctrl-C in our terminal is ours to handle.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
