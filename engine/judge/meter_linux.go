//go:build linux && (amd64 || arm64)

package judge

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits that the kernel does not keep here. The scratch folder is a real folder in this tier, polled and not enforced: a fast writer gets some
// hundred MB beyond them before it is killed.
const (
	maxScratchBytes = 64 << 20
	maxScratchFiles = 4096

	maxThreads = 1024 // of one candidate; RLIMIT_NPROC does not bind root
)

// meter reads what a candidate uses, every pollEvery. One goroutine uses it.
type meter struct {
	order
	pid   int
	dir   string
	start time.Time
	peak  int64
}

// over returns the first limit that is passed, or "".
func (m *meter) over() cause {
	use, ok := readStat(m.pid)
	if !ok {
		return "" // it has just ended: the reaper knows how
	}
	m.peak = max(m.peak, use.resident)
	switch {
	case use.cpu > m.CPU:
		return overCPU
	case m.late():
		return overWall
	case use.resident > m.Memory:
		return overMemory
	case use.threads > maxThreads:
		return overThreads
	case m.scratchOver():
		return overScratch
	}
	return ""
}

// late says whether the wall limit is passed, without the time spent waiting for a processor.
func (m *meter) late() bool {
	passed := time.Since(m.start)
	return passed > m.Wall && (passed-runDelay(m.pid) > m.Wall || passed > maxStarved*m.Wall)
}

// runDelay is how long a process's main thread has been ready to run and did not; 0 where the kernel does not tell.
func runDelay(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	ns, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(ns)
}

// scratchOver adds up the blocks of the scratch folder's files, those that only a descriptor still holds included.
func (m *meter) scratchOver() bool {
	var total int64
	files := 0
	_ = filepath.WalkDir(m.dir, func(_ string, d fs.DirEntry, err error) error {
		if files++; files > maxScratchFiles {
			return filepath.SkipAll
		}
		if err == nil {
			if info, err := d.Info(); err == nil {
				total += blocks(info)
			}
		}
		return nil
	})
	descriptors := fmt.Sprintf("/proc/%d/fd", m.pid)
	entries, _ := os.ReadDir(descriptors)
	for _, e := range entries {
		path := filepath.Join(descriptors, e.Name())
		if target, err := os.Readlink(path); err != nil || !strings.HasPrefix(target, m.dir) || !strings.HasSuffix(target, " (deleted)") {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			total += blocks(info)
		}
	}
	return files > maxScratchFiles || total > maxScratchBytes
}

// blocks is what a file takes on disk, which for a sparse one is less than its size.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// usage is what /proc says of one process.
type usage struct {
	parent   int
	cpu      time.Duration
	threads  int
	resident int64 // bytes
}

// readStat reads /proc/PID/stat; false: no such process, or already a zombie.
func readStat(pid int) (usage, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, false
	}
	// The name in parentheses may hold anything; what follows the last one are fields 3 on (proc(5)).
	_, rest, _ := strings.Cut(string(text), "(")
	fields := strings.Fields(rest[strings.LastIndexByte(rest, ')')+1:])
	if len(fields) < 22 || fields[0] == "Z" {
		return usage{}, false
	}
	field := func(n int) int64 { // numbered as in proc(5)
		v, _ := strconv.ParseInt(fields[n-3], 10, 64)
		return v
	}
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return usage{
		parent:   int(field(4)),
		cpu:      time.Duration(field(14)+field(15)) * time.Second / ticksPerSecond,
		threads:  int(field(20)),
		resident: field(24) * int64(os.Getpagesize()),
	}, true
}

// processes lists the ids under /proc.
func processes() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func childrenOf(parent int) []int {
	var children []int
	for _, pid := range processes() {
		if use, ok := readStat(pid); ok && use.parent == parent {
			children = append(children, pid)
		}
	}
	return children
}

// tasksOf counts the threads of a user, which RLIMIT_NPROC compares with.
func tasksOf(user int) int {
	n := 0
	for _, pid := range processes() {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == user {
			use, _ := readStat(pid)
			n += max(use.threads, 1)
		}
	}
	return n
}

// makeScratch makes the candidate's folder inside parent, owned by user unless that is negative.
func makeScratch(parent string, user int) (string, error) {
	dir, err := os.MkdirTemp(parent, "skep-candidate-")
	if err != nil {
		return "", fmt.Errorf("make a scratch folder: %w", err)
	}
	if user >= 0 {
		err = os.Chown(dir, user, user)
	}
	if err != nil {
		removeScratch(dir)
		return "", fmt.Errorf("give the scratch folder away: %w", err)
	}
	return dir, nil
}

// removeScratch removes the folder whatever modes its folders were made with.
func removeScratch(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
