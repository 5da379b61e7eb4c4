//go:build linux && (amd64 || arm64)

package judge

import (
	"bytes"
	"errors"
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
	polls int
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
	case m.scratchOver(use.proc):
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

// scratchOver adds up the blocks of the scratch folder's files, those without a name included. proc is the /proc folder of
// a thread of the candidate. What cannot be looked into counts as too much: a folder too deep to name, or closed to us.
func (m *meter) scratchOver(proc string) bool {
	var total int64
	files, hidden := 0, false
	_ = filepath.WalkDir(m.dir, func(_ string, d fs.DirEntry, err error) error {
		hidden = err != nil && !errors.Is(err, fs.ErrNotExist)
		if files++; hidden || files > maxScratchFiles {
			return filepath.SkipAll
		}
		if err == nil {
			if info, err := d.Info(); err == nil {
				total += blocks(info)
			}
		}
		return nil
	})
	return hidden || files > maxScratchFiles || total+m.nameless(proc) > maxScratchBytes
}

// nameless adds up the deleted files of the scratch folder that a descriptor holds, and every few polls, since the list may be long, those
// that only a mapping holds: each of those counts as large as a file may be, as nothing tells its size.
func (m *meter) nameless(proc string) int64 {
	var total int64
	held := map[uint64]bool{}
	entries, _ := os.ReadDir(filepath.Join(proc, "fd"))
	for _, e := range entries {
		path := filepath.Join(proc, "fd", e.Name())
		if target, err := os.Readlink(path); err != nil || !m.deleted(target) {
			continue
		}
		if info, err := os.Stat(path); err == nil && !held[inode(info)] {
			held[inode(info)] = true
			total += blocks(info)
		}
	}
	const everyPolls = 8
	if m.polls++; m.polls%everyPolls != 0 {
		return total
	}
	maps, _ := os.ReadFile(filepath.Join(proc, "maps"))
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // range, rights, offset, device, inode, path
		if len(fields) < 6 || !m.deleted(strings.Join(fields[5:], " ")) {
			continue
		}
		if number, err := strconv.ParseUint(fields[4], 10, 64); err == nil && !held[number] {
			held[number] = true
			total += maxScratchBytes / 2
		}
	}
	return total
}

// deleted says whether a link of /proc names a file of the scratch folder that has no name any more.
func (m *meter) deleted(target string) bool {
	return strings.HasPrefix(target, m.dir) && strings.HasSuffix(target, " (deleted)")
}

// blocks is what a file takes on disk, which for a sparse one is less than its size.
func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

// usage is what /proc says of one process.
type usage struct {
	proc     string // folder of a thread that lives
	parent   int
	cpu      time.Duration
	threads  int
	resident int64 // bytes
}

// readStat reads /proc/PID/stat; false: no such process, or nothing of it lives. A process whose first thread has ended
// looks dead, without memory or descriptors, while its other threads run on: then one of those is asked.
func readStat(pid int) (usage, bool) {
	proc := fmt.Sprintf("/proc/%d", pid)
	use, dead, err := readTask(proc)
	if err != nil || !dead {
		return use, err == nil
	}
	tasks, _ := filepath.Glob(filepath.Join(proc, "task", "*"))
	for _, task := range tasks {
		if other, dead, err := readTask(task); err == nil && !dead {
			use.proc, use.resident = task, other.resident
			return use, true
		}
	}
	return usage{}, false
}

// readTask reads the file stat in a /proc folder of a process or a thread; dead: a zombie.
func readTask(proc string) (use usage, dead bool, err error) {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return usage{}, false, err
	}
	// The name in parentheses may hold anything; what follows the last one are fields 3 on (proc(5)).
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 22 {
		return usage{}, false, fmt.Errorf("%s/stat has %d fields", proc, len(fields))
	}
	field := func(n int) int64 { // numbered as in proc(5)
		v, _ := strconv.ParseInt(fields[n-3], 10, 64)
		return v
	}
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	return usage{
		proc:     proc,
		parent:   int(field(4)),
		cpu:      time.Duration(field(14)+field(15)) * time.Second / ticksPerSecond,
		threads:  int(field(20)),
		resident: field(24) * int64(os.Getpagesize()),
	}, fields[0] == "Z" || fields[0] == "X", nil
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
	parent, err := filepath.EvalSymlinks(parent) // /proc names files by their true path
	if err != nil {
		return "", fmt.Errorf("make a scratch folder: %w", err)
	}
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
