//go:build linux && (amd64 || arm64)

package judge

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The system call filter of a candidate: a deny-list, but for numbers newer than what was known when it was written,
// which do not exist for a candidate (ENOSYS). A call of a foreign architecture kills: under int 0x80 the numbers mean
// other calls, and a list that only skips them lets everything through (measured on a published library). Threads are
// allowed; processes are not, so nothing needs a limit on a whole tree. A refused call returns EPERM: a program may
// cope with that.

// selfPID stands for the candidate's own process id, which only its bootstrap knows, in the filter's constants.
const selfPID = 0x5ca1ab1e

// newestCall is the last system call number that passes; what came later is unknown here.
const newestCall = unix.SYS_FUTEX_REQUEUE

// Offsets in struct seccomp_data. Arguments are compared by their low 32 bits, as every one that is looked at is an int or
// has its meaning there, but for sizes.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
)

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

var refused = errno(unix.EPERM)

// ret ends the filter with one answer.
func ret(answer uint32) bpf.Instruction { return bpf.RetConstant{Val: answer} }

// arg loads the low half of an argument.
func arg(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offsetArgs + 8*n, Size: 4} }

// highArg loads the high half of an argument, for one that is no int.
func highArg(n uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offsetArgs + 8*n + 4, Size: 4} }

// only answers yes where the loaded argument is one of values, else no.
func only(yes, no uint32, values ...uint32) []bpf.Instruction {
	var code []bpf.Instruction
	for _, v := range values {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: v, SkipTrue: 1}, ret(yes))
	}
	return append(code, ret(no))
}

// conditional are the calls that are refused for some arguments only. Each program ends in an answer on every path.
func conditional() map[uint32][]bpf.Instruction {
	self := append([]bpf.Instruction{arg(0)}, only(allow, refused, selfPID)...)
	zeroOrSelf := append([]bpf.Instruction{arg(0)}, only(allow, refused, 0, selfPID)...)
	calls := map[uint32][]bpf.Instruction{
		// Threads only, as pthread_create makes them: in no new namespace, with no descriptors of their own, which the
		// meter would not see. clone3 hides its flags behind a pointer; glibc falls back to clone.
		unix.SYS_CLONE: append([]bpf.Instruction{
			arg(0),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: wholeThread | newNamespaces},
		}, only(allow, refused, wholeThread)...),
		unix.SYS_CLONE3:  {ret(errno(unix.ENOSYS))},
		unix.SYS_OPENAT2: {ret(errno(unix.ENOSYS))}, // flags behind a pointer

		unix.SYS_KILL:      self,
		unix.SYS_TGKILL:    self,
		unix.SYS_PRLIMIT64: zeroOrSelf,

		// A stream pair reaches nobody else; a datagram socket could be sent to any address.
		unix.SYS_SOCKETPAIR: append([]bpf.Instruction{
			arg(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1}, ret(refused),
			arg(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf},
		}, only(allow, refused, unix.SOCK_STREAM)...),

		// Signals and leases through a descriptor; a larger pipe is memory that no limit counts.
		unix.SYS_FCNTL: append([]bpf.Instruction{arg(1)},
			only(refused, allow, unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_SETSIG, unix.F_SETLEASE, unix.F_NOTIFY, unix.F_SETPIPE_SZ)...),
		unix.SYS_IOCTL: append([]bpf.Instruction{arg(1)},
			only(allow, refused, unix.TCGETS, unix.TIOCGWINSZ, fioNRead, fioNBIO, fioCLEX, fioNCLEX)...),
		// Names, and what allocators ask for. Not: a death signal of its own, a process that the meter cannot look into
		// (PR_SET_DUMPABLE), a processor to itself (PR_SCHED_CORE).
		unix.SYS_PRCTL: append([]bpf.Instruction{arg(0)},
			only(allow, refused, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_DUMPABLE, unix.PR_GET_PDEATHSIG,
				unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ,
				unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK, unix.PR_SET_THP_DISABLE, unix.PR_GET_THP_DISABLE, unix.PR_SET_VMA)...),

		// Memory that does not count as resident: shared and anonymous, which stays when its pages are let go (one page is
		// harmless, as the kernel limits the number of mappings); huge pages of the system's pool; pages pushed out to swap.
		unix.SYS_MMAP: {
			arg(3),
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.MAP_HUGETLB, SkipFalse: 1}, ret(refused),
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.MAP_SHARED | unix.MAP_ANONYMOUS, SkipTrue: 1}, ret(allow),
			highArg(1), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, ret(refused),
			arg(1), bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: 4096, SkipTrue: 1}, ret(allow),
			ret(refused),
		},
		unix.SYS_MADVISE: append([]bpf.Instruction{arg(2)}, only(refused, allow, unix.MADV_COLD, unix.MADV_PAGEOUT)...),

		// Before Landlock's third ABI, opening for reading with O_TRUNC empties a file.
		unix.SYS_OPENAT: readTruncating(2),
	}
	for number, code := range legacySpecial() {
		calls[number] = code
	}
	return calls
}

// readTruncating refuses O_TRUNC without a writing mode; flags is the argument that has them.
func readTruncating(flags uint32) []bpf.Instruction {
	return append([]bpf.Instruction{
		arg(flags),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.O_TRUNC | unix.O_ACCMODE},
	}, only(refused, allow, unix.O_TRUNC)...)
}

// ioctl requests that package unix lacks; asm-generic/ioctls.h.
const (
	fioNRead = 0x541b
	fioNBIO  = 0x5421
	fioNCLEX = 0x5450
	fioCLEX  = 0x5451
)

// wholeThread is a thread that shares all that a thread can share.
const wholeThread = unix.CLONE_THREAD | unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// denied are the calls that are refused whatever their arguments, by what they would do.
var denied = [][]uint32{
	{ // other programs
		unix.SYS_EXECVE, unix.SYS_EXECVEAT,
	}, { // namespaces and mounts
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR,
	}, { // sockets
		unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_SENDMSG, unix.SYS_SENDMMSG, // descriptors on their way hold files that the meter does not see
	}, { // other processes; scheduling, which starves them
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_PROCESS_MRELEASE, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_KCMP,
		unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
		unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET,
	}, { // memory that no limit of ours counts
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET,
		unix.SYS_MSGSND, unix.SYS_MSGCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	}, { // large kernel surfaces
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_SECCOMP, unix.SYS_PERSONALITY,
	}, { // what Landlock does not cover: the attributes of the user's own files, watching them, reaching them by handle
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_FREMOVEXATTR, unix.SYS_TRUNCATE, unix.SYS_MKNODAT, unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT,
		unix.SYS_FANOTIFY_MARK, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	}, { // identity
		unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
		unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS, unix.SYS_CAPSET,
	}, { // the machine
		unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_SYNC,
		unix.SYS_SYNCFS,
	},
}

// filter assembles the seccomp program as the kernel takes it: struct sock_filter, 8 bytes each, little-endian.
func filter() ([]byte, error) {
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		ret(kill),
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	code = append(code, foreignNumbers()...)
	code = append(code, bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: newestCall, SkipTrue: 1}, ret(errno(unix.ENOSYS)))
	for _, group := range append(denied, legacyDenied) {
		for _, number := range group {
			code = append(code, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, ret(refused))
		}
	}
	for number, answer := range conditional() {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(answer))})
		code = append(code, answer...)
	}
	code = append(code, ret(allow))
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, fmt.Errorf("judge: assemble the system call filter: %w", err)
	}
	var out []byte
	for _, in := range raw {
		out = binary.LittleEndian.AppendUint16(out, in.Op)
		out = append(out, in.Jt, in.Jf)
		out = binary.LittleEndian.AppendUint32(out, in.K)
	}
	return out, nil
}
