package judge

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

// foreignNumbers kills calls of the x32 ABI, which share the architecture's mark; the loaded word is the number.
func foreignNumbers() []bpf.Instruction {
	const x32Bit = 0x40000000
	return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Bit, SkipTrue: 1}, ret(kill)}
}

// legacyDenied are old forms that later architectures did without.
var legacyDenied = []uint32{
	unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES,
	unix.SYS_FUTIMESAT, unix.SYS_MKNOD, unix.SYS_INOTIFY_INIT, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_VSERVER,
}

func legacySpecial() map[uint32][]bpf.Instruction {
	return map[uint32][]bpf.Instruction{unix.SYS_OPEN: readTruncating(1)}
}
