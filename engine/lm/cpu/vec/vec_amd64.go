package vec

import "golang.org/x/sys/cpu"

// available lists the assembly versions that this machine runs, best first.
func available() []*Ops {
	var list []*Ops
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		list = append(list, &opsavx2)
	}
	if len(list) == 1 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
		list = []*Ops{&opsavx512, &opsavx2}
	}
	return list
}

// Pause lets a waiting loop rest for some 50 ns.
func Pause()
