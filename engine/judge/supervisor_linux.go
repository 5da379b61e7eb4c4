//go:build linux && (amd64 || arm64)

package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The supervisor is a small process of our own around one candidate: `skep` again, started by Main. It builds the
// scratch folder and the walls, starts Python, polls limits that the kernel does not keep, kills the candidate and
// whatever descends from it (it is their subreaper), removes the scratch folder, and reports. It is a process
// of its own because waiting for unknown descendants would take the exits of the caller's other children, and because
// it outlives a caller that is killed: the end of its stdin means kill.
//
// Descriptors: 0 the order as JSON and then the leash, 1 the report, 2 panics; 3 to 6 become the candidate's 0 to 3.

// order is what the supervisor is told. Paths are absolute.
type order struct {
	Python   string
	Args     []string // from argv[0] on
	Env      []string
	ReadOnly []string // trees that may be read
	Scratch  string   // folder in which to make the scratch folder
	Identity identity
	CPU      time.Duration
	Wall     time.Duration
	Memory   int64 // resident bytes
}

const (
	pollEvery    = 20 * time.Millisecond
	killPatience = 10 * time.Second // for the last descendant to go: on a loaded machine gigabytes take seconds to free
)

// superviseMain is the supervisor's whole life; it returns the exit code.
func superviseMain() int {
	var o order
	r := report{}
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		r.Error = fmt.Sprintf("read the order: %v", err)
	} else {
		r = supervise(o)
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return 1 // nobody is left to read it
	}
	return 0
}

// supervise runs one candidate to its end.
func supervise(o order) report {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return report{Error: fmt.Sprintf("prctl(PR_SET_CHILD_SUBREAPER): %v", err)}
	}
	// Whatever an ancestor left open must not reach the candidate.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		for fd := 3; fd < 1024; fd++ {
			unix.CloseOnExec(fd)
		}
	}
	dir, err := makeScratch(o.Scratch, o.Identity.User)
	if err != nil {
		return report{Error: err.Error()}
	}
	defer removeScratch(dir)

	start := time.Now()
	pid, release, err := startWalled(o, dir)
	if err != nil {
		return report{Error: err.Error()}
	}
	defer release()
	r := watch(o, pid, dir, start)
	r.Wall = time.Since(start)
	return r
}

// startWalled starts Python on a thread of its own that has been walled off; release lets that thread go, with
// which the kernel kills Python if it still lives.
func startWalled(o order, dir string) (pid int, release func(), err error) {
	type started struct {
		pid int
		err error
	}
	done, hold := make(chan started), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, its walls with it
		pid, err := forkWalled(o, dir)
		done <- started{pid, err}
		<-hold
	}()
	s := <-done
	if s.err != nil {
		close(hold)
		return 0, nil, s.err
	}
	for fd := 3; fd <= 6; fd++ {
		unix.Close(fd)
	}
	// Where the machine runs out of memory, the candidate goes first. It is a wish: refused, nothing is lost.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.pid), []byte("1000"), 0)
	return s.pid, func() { close(hold) }, nil
}

func forkWalled(o order, dir string) (int, error) {
	if err := restrictThread(o.ReadOnly, dir); err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{
		Dir:   dir,
		Env:   append(o.Env, "HOME="+dir, "TMPDIR="+dir),
		Files: []uintptr{3, 4, 5, 6},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	if id := o.Identity; id.User >= 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(id.User), Gid: uint32(id.User)}
	} else if id.Strip {
		if err := stripThread(); err != nil {
			return 0, err
		}
	}
	pid, err := syscall.ForkExec(o.Python, o.Args, attr)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", o.Python, err)
	}
	return pid, nil
}

// watch waits for the end of the candidate or of its time, then kills what is left.
func watch(o order, pid int, dir string, start time.Time) report {
	exit, gone := make(chan report, 1), make(chan struct{})
	go reap(pid, exit, gone)
	leash := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(leash)
	}()
	m := meter{order: o, pid: pid, dir: dir, start: start}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var r report
	for r.Cause == "" {
		select {
		case r = <-exit:
			r.Cause = ended
		case <-leash:
			r.Cause = leashPulled
		case <-tick.C:
			r.Cause = m.over()
		}
	}
	if err := killAll(pid, gone); err != nil {
		r.Error = err.Error()
	}
	if r.Cause != ended {
		select {
		case e := <-exit:
			r.Status, r.CPU = e.Status, e.CPU
		default:
		}
	}
	r.Peak = m.peak
	return r
}

// reap waits for every child, by birth or adopted, until there is none.
func reap(pid int, exit chan<- report, gone chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		who, err := syscall.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			close(gone)
			return
		case who == pid:
			exit <- report{Status: int(status), CPU: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
		}
	}
}

// killAll kills until no descendant lives. Orphans become our children, so killing children again and again ends.
func killAll(pid int, gone <-chan struct{}) error {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	deadline := time.Now().Add(killPatience)
	for {
		select {
		case <-gone:
			return nil
		case <-time.After(time.Millisecond):
		}
		children := childrenOf(os.Getpid())
		for _, child := range children {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v did not die within %v of SIGKILL", children, killPatience)
		}
	}
}
