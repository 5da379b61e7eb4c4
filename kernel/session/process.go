package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Handler receives what a session sends on its own. Calls come from the Process's goroutines; Output's in order.
type Handler interface {
	// Output shows o, which belongs to the request with the given id (0: none known).
	Output(id uint64, o Output)
	// Ask wants a line of standard input for a request; the answer goes to Process.Input. It must not block.
	Ask(id uint64, prompt string, password bool)
}

// Died is the error of a request whose session ended before it answered.
type Died struct {
	Cause string // one line: "fatal error: concurrent map writes", "killed by a signal: …"
	Tail  string // the last lines that the process wrote to its standard error, may be empty
}

func (d *Died) Error() string { return "the Go session ended: " + d.Cause }

// Process is a running session child. It is safe for concurrent use.
type Process struct {
	cmd     *exec.Cmd
	pipe    *pipe
	handler Handler
	lastID  atomic.Uint64
	tail    tail
	closers []io.Closer

	mu      sync.Mutex
	waiting map[uint64]chan packet
	current uint64 // the request that raw output belongs to
	died    *Died
	done    chan struct{}
}

// Start launches argv as a session child and returns once it is ready for requests. The child gets its packets on
// descriptors 3 and 4 and runs in a process group of its own.
func Start(ctx context.Context, argv []string, h Handler) (*Process, error) {
	toChild, toChildW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	fromChild, fromChildW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	p := &Process{
		handler: h, pipe: newPipe(fromChild, toChildW), waiting: map[uint64]chan packet{}, done: make(chan struct{}),
		closers: []io.Closer{toChildW, fromChild},
	}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.ExtraFiles = []*os.File{toChild, fromChildW}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stdout = rawOutput{p, "stdout"}
	p.cmd.Stderr = rawOutput{p, "stderr"}
	p.cmd.WaitDelay = time.Second // a grandchild may hold the output open
	err = p.cmd.Start()
	_, _ = toChild.Close(), fromChildW.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("session: %w", err), toChildW.Close(), fromChild.Close())
	}
	ready := make(chan struct{})
	go p.run(ready)
	select {
	case <-ready:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("session: %s could not start: %s\n%s", argv[0], p.died.Cause, p.died.Tail)
	case <-ctx.Done():
		p.Kill()
		return nil, ctx.Err()
	}
}

// run hands out packets until the child is gone, then tells everybody who waits.
func (p *Process) run(ready chan struct{}) {
	var protocol error
	for {
		pk, err := p.pipe.receive()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				protocol = err
			}
			break
		}
		switch pk.Kind {
		case kindReady:
			close(ready)
		case kindDone:
			p.answer(pk)
		case kindOutput:
			var o Output
			if json.Unmarshal(pk.Body, &o) == nil {
				p.handler.Output(pk.ID, o)
			}
		case kindAsk:
			var a askBody
			if json.Unmarshal(pk.Body, &a) == nil {
				p.handler.Ask(pk.ID, a.Prompt, a.Password)
			}
		}
	}
	p.end(protocol)
}

// endTime is how long a child may live on that has closed its end of the pipe; cells can close any descriptor.
const endTime = 2 * time.Second

func (p *Process) end(protocol error) {
	if protocol != nil { // the stream is out of step: nothing more can be understood
		p.Kill()
	}
	defer time.AfterFunc(endTime, p.Kill).Stop()
	_ = p.cmd.Wait()
	p.signalGroup(syscall.SIGKILL) // what the cells started must not outlive them
	p.mu.Lock()
	p.died = &Died{Cause: cause(p.cmd.ProcessState, p.tail.String(), protocol), Tail: p.tail.String()}
	for _, c := range p.closers {
		_ = c.Close()
	}
	p.mu.Unlock()
	close(p.done)
}

// cause says in one line why a process ended.
func cause(state *os.ProcessState, tail string, protocol error) string {
	for line := range strings.Lines(tail) {
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return strings.TrimSpace(line)
		}
	}
	if protocol != nil {
		return "it sent something unreadable: " + protocol.Error()
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return "killed by a signal: kill -9, or the system ran out of memory"
	case ok && status.Signaled():
		return "killed by a signal: " + status.Signal().String()
	}
	return fmt.Sprintf("the process exited with code %d", state.ExitCode())
}

func (p *Process) answer(pk packet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.waiting[pk.ID]; c != nil {
		delete(p.waiting, pk.ID)
		c <- pk
	}
}

// call sends a request and decodes its answer into result. It returns *Died when the session ends first.
func (p *Process) call(ctx context.Context, id uint64, kind string, body, result any) error {
	answer := make(chan packet, 1)
	p.mu.Lock()
	p.waiting[id] = answer
	p.mu.Unlock()
	if err := p.pipe.send(kind, id, body); err != nil {
		<-p.done // a broken pipe is how a dead child shows first
		return p.died
	}
	select {
	case pk := <-answer:
		return json.Unmarshal(pk.Body, result)
	case <-p.done:
		return p.died
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewID returns the id for a coming Execute, so that a Handler can know it before outputs arrive.
func (p *Process) NewID() uint64 { return p.lastID.Add(1) }

// Execute runs one cell. Everything the cell put out was handed to the Handler before Execute returns.
func (p *Process) Execute(ctx context.Context, id uint64, r Request) (Reply, error) {
	p.mu.Lock()
	p.current = id
	p.mu.Unlock()
	var reply Reply
	err := p.call(ctx, id, kindExecute, r, &reply)
	return reply, err
}

// Complete lists candidates at a byte offset.
func (p *Process) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	var c Completion
	err := p.call(ctx, p.NewID(), kindComplete, codeBody{code, cursor}, &c)
	return c, err
}

// Inspect describes the name at a byte offset.
func (p *Process) Inspect(ctx context.Context, code string, cursor int) (Inspection, error) {
	var i Inspection
	err := p.call(ctx, p.NewID(), kindInspect, codeBody{code, cursor}, &i)
	return i, err
}

// Interrupt stops the cell with the given id, also one whose Execute is only about to be called; a cell that has ended
// and id 0 are nothing to stop.
func (p *Process) Interrupt(id uint64) { _ = p.pipe.send(kindInterrupt, id, nil) }

// Input answers the last Ask with a line, or with the reason why there is none.
func (p *Process) Input(value string, err error) {
	body := inputBody{Value: value}
	if err != nil {
		body.Error = err.Error()
	}
	_ = p.pipe.send(kindInput, 0, body)
}

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID returns the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Close ends the child and everything it started, first asking (SIGTERM), then not (SIGKILL), and waits for its end.
func (p *Process) Close() {
	p.signalGroup(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Second):
		p.Kill()
		<-p.done
	}
}

// Kill ends the child and everything it started at once.
func (p *Process) Kill() { p.signalGroup(syscall.SIGKILL) }

func (p *Process) signalGroup(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s)
}

// rawOutput takes what the child writes past its own capture: C code, the run time's last words.
type rawOutput struct {
	p    *Process
	name string
}

func (o rawOutput) Write(b []byte) (int, error) {
	if o.name == "stderr" && o.p.tail.add(b) {
		return len(b), nil // the stack dump of a crash; Died tells its cause
	}
	o.p.mu.Lock()
	id := o.p.current
	o.p.mu.Unlock()
	content, err := json.Marshal(streamBody{o.name, string(b)})
	if err != nil {
		return 0, err
	}
	o.p.handler.Output(id, Output{Type: "stream", Content: content})
	return len(b), nil
}

// tail keeps the first and the last bytes of what the child wrote to its standard error: the cause of a Go crash stands
// before thousands of stack lines.
type tail struct {
	mu          sync.Mutex
	first, last []byte
	crashing    bool
}

const tailBytes = 4 << 10

// add keeps b and reports whether the process is crashing.
func (t *tail) add(b []byte) (crashing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if isCrash(b) && !t.crashing {
		t.crashing, t.first, t.last = true, nil, nil
	}
	if room := tailBytes - len(t.first); room > 0 {
		n := min(room, len(b))
		t.first, b = append(t.first, b[:n]...), b[n:]
	}
	t.last = append(t.last, b...)
	if over := len(t.last) - tailBytes; over > 0 {
		t.last = t.last[over:]
	}
	return t.crashing
}

// isCrash reports whether b begins as the Go run time's last words do.
func isCrash(b []byte) bool {
	for _, word := range []string{"fatal error: ", "panic: ", "runtime: ", "SIG", "unexpected fault address"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return true
		}
	}
	return false
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.first) + string(t.last)
}
