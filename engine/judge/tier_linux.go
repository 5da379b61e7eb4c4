//go:build linux && (amd64 || arm64)

package judge

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed bootstrap.py
var bootstrap string

// addressSlack is what RLIMIT_AS allows beyond the resident limit: address space is not memory, and thread stacks and
// malloc arenas reserve much of it.
const addressSlack = 4 << 30

const (
	maxOpenFiles = 256
	spareTasks   = 512 // threads beyond those that the user has anyway: RLIMIT_NPROC counts them all
)

// tierC walls candidates off without namespaces: Landlock, the system call filter, resource limits, a supervisor.
type tierC struct {
	python   interpreter
	readOnly []string
	identity identity
	filter   string // hexadecimal
}

// systemTrees is what a Python program may have to read outside its own prefix: shared libraries and time zones.
var systemTrees = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/nix/store", "/etc/ld.so.cache", "/usr/share/zoneinfo"}

func newTierC(python interpreter) (launcher, error) {
	code, err := filter()
	if err != nil {
		return nil, err
	}
	t := &tierC{python: python, filter: hex.EncodeToString(code)}
	t.readOnly = append(append(t.readOnly, systemTrees...), python.trees()...)
	t.identity = chooseIdentity(append(python.trees(), os.TempDir()))
	return t, nil
}

func (t *tierC) tier() string { return "C" }

// String describes the identity for doctor.
func (t *tierC) String() string { return t.identity.String() }

func (t *tierC) launch(j job) (*process, error) {
	request, err := t.request(j)
	if err != nil {
		return nil, err
	}
	orders, err := t.order(j)
	if err != nil {
		return nil, err
	}
	var p pipes
	defer p.closeTheirs()
	stdin, stdout, stderr, frame := p.write(), p.read(), p.read(), p.read()
	leash, reports := p.write(), p.read()
	if p.err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("judge: make a pipe: %w", p.err)
	}
	var complaints bytes.Buffer
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"skep-judge"}, Env: []string{stageVariable + "=supervise"},
		Stdin: p.theirs[4], Stdout: p.theirs[5], Stderr: &complaints, ExtraFiles: p.theirs[:4],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // Ctrl-C in the terminal is the caller's to handle
		WaitDelay:   killPatience,
	}
	if err := cmd.Start(); err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("judge: start the supervisor: %w", err)
	}
	feed(stdin, request)
	_, _ = leash.Write(orders) // a supervisor that is gone already leaves no report, which await tells
	result := make(chan report, 1)
	go func() {
		result <- await(cmd, reports, &complaints)
		leash.Close()
	}()
	kill := sync.OnceFunc(func() {
		leash.Close()
		// A supervisor that does not come to its end takes Python with it: the kernel sees to that.
		time.AfterFunc(2*killPatience, func() { _ = cmd.Process.Kill() })
	})
	return &process{stdout: stdout, stderr: stderr, frame: frame, kill: kill, report: result}, nil
}

// feed writes the request without waiting for the candidate to read it; one that is gone already shows in its report.
func feed(stdin *os.File, request []byte) {
	go func() {
		defer stdin.Close()
		_, _ = stdin.Write(request)
	}()
}

// order is what the supervisor is told.
func (t *tierC) order(j job) ([]byte, error) {
	text, err := json.Marshal(order{
		Python: t.python.Executable, Args: []string{"python", "-s", "-S", "-B", "-u", "-X", "utf8", "-c", bootstrap},
		Env: t.environment(), ReadOnly: t.readOnly, Scratch: os.TempDir(), Identity: t.identity,
		CPU: j.limits.CPU, Wall: j.limits.Wall, Memory: j.limits.MemoryBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("judge: encode the order: %w", err)
	}
	return text, nil
}

// await reads the supervisor's report and waits for its end.
func await(cmd *exec.Cmd, reports *os.File, complaints *bytes.Buffer) report {
	var r report
	err := json.NewDecoder(reports).Decode(&r)
	reports.Close()
	wait := cmd.Wait()
	if err != nil {
		r.Error = fmt.Sprintf("the supervisor ended without a report (%v): %s", wait, clip(strings.TrimSpace(complaints.String()), 2000))
	}
	return r
}

// request is what the bootstrap reads from its stdin.
func (t *tierC) request(j job) ([]byte, error) {
	user := t.identity.User
	if user < 0 {
		user = os.Geteuid()
	}
	config, err := json.Marshal(map[string]any{
		"entry": j.entry, "path": t.python.Path, "filter": t.filter, "placeholder": selfPID,
		"limits": map[string]int64{
			"AS": j.limits.MemoryBytes + addressSlack, "CPU": int64(math.Ceil(j.limits.CPU.Seconds())) + 1,
			"FSIZE": maxScratchBytes / 2, "NOFILE": maxOpenFiles, "CORE": 0, "NPROC": int64(tasksOf(user) + spareTasks),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("judge: encode the request: %w", err)
	}
	request := binary.LittleEndian.AppendUint32(nil, uint32(len(config)))
	return append(append(request, config...), j.source...), nil
}

// environment is all that a candidate sees of ours. One thread for each numerical library: a candidate has one
// processor's time, and more threads would only take it from others.
func (t *tierC) environment() []string {
	env := []string{
		"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PATH=/nonexistent",
		"PYTHONHASHSEED=0", "PYTHONSAFEPATH=1",
		"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1",
	}
	if core := os.Getenv("OPENBLAS_CORETYPE"); core != "" {
		env = append(env, "OPENBLAS_CORETYPE="+core)
	}
	return env
}

// pipes makes the pipes of one launch and keeps both ends of each until they are handed on.
type pipes struct {
	ours, theirs []*os.File
	err          error
}

// read makes a pipe that we read; it returns our end.
func (p *pipes) read() *os.File { return p.add(os.Pipe()) }

// write makes a pipe that we write to; it returns our end.
func (p *pipes) write() *os.File {
	r, w, err := os.Pipe()
	return p.add(w, r, err)
}

func (p *pipes) add(ours, theirs *os.File, err error) *os.File {
	if err != nil {
		p.err = err
		return nil
	}
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
	return ours
}

func (p *pipes) closeTheirs() { closeFiles(p.theirs) }
func (p *pipes) closeOurs()   { closeFiles(p.ours) }

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
