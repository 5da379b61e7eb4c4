package judge

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_AARCH64

func foreignNumbers() []bpf.Instruction { return nil }

var legacyDenied = []uint32{unix.SYS_KEXEC_FILE_LOAD}

func legacySpecial() map[uint32][]bpf.Instruction { return nil }
