// Package client is a Jupyter front end in Go: it starts a kernel process, runs code in it over ZeroMQ and runs whole
// notebooks ([RunNotebook]). It works with any kernel; it knows nothing of Go cells or of this project's engine.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"skep/kernel/wire"
)

// startTimeout is how long a kernel may take to answer its first request.
const startTimeout = 60 * time.Second

// ErrKernelDied is returned when the kernel process ended on its own.
var ErrKernelDied = errors.New("the kernel process ended")

// Options are the settings of Start.
type Options struct {
	Dir    string                  // working directory of the kernel; "" is this process's
	Env    []string                // added to this process's environment
	Stderr io.Writer               // what the kernel process logs; nil drops it
	IOPub  func(msg *wire.Message) // receives every iopub message in order; nil: none
}

// Kernel is a running kernel process and the connection to it. It is safe for concurrent use.
type Kernel struct {
	cmd     *exec.Cmd
	dir     string // holds the connection file
	session string
	signer  *wire.Signer
	options Options
	sockets map[channel]*wire.Socket

	mu      sync.Mutex
	waiting map[string]*call
	done    chan struct{} // closed when the process has ended
}

type channel int

const (
	shell channel = iota
	control
	stdin
	iopub
)

// call is a request under way.
type call struct {
	reply chan *wire.Message
	idle  chan struct{}
}

// Start runs argv with "{connection_file}" replaced, as Jupyter does with a kernelspec's argv, and returns when the
// kernel answers.
func Start(ctx context.Context, argv []string, o Options) (*Kernel, error) {
	connection, err := wire.NewConnection()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "skep-kernel-")
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	file := filepath.Join(dir, "connection.json")
	k := &Kernel{
		dir: dir, session: uuid.NewString(), signer: wire.NewSigner(connection.Key), options: o,
		sockets: map[channel]*wire.Socket{}, waiting: map[string]*call{}, done: make(chan struct{}),
	}
	if err := connection.Save(file); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = strings.ReplaceAll(a, "{connection_file}", file)
	}
	k.cmd = exec.Command(args[0], args[1:]...)
	k.cmd.Dir, k.cmd.Env, k.cmd.Stderr = o.Dir, append(os.Environ(), o.Env...), o.Stderr
	detach(k.cmd)
	if err := k.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("client: %w", err), os.RemoveAll(dir))
	}
	go func() {
		_ = k.cmd.Wait()
		close(k.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := k.connect(ctx, connection); err != nil {
		k.Close()
		return nil, fmt.Errorf("client: %s: %w", args[0], err)
	}
	return k, nil
}

// connect dials the sockets, then waits for the welcome on iopub (protocol 5.5; older kernels: for a moment) and for
// kernel_info.
func (k *Kernel) connect(ctx context.Context, c wire.Connection) error {
	for _, end := range []struct {
		ch   channel
		kind wire.Kind
		port int
	}{{shell, wire.Dealer, c.ShellPort}, {control, wire.Dealer, c.ControlPort}, {stdin, wire.Dealer, c.StdinPort}, {iopub, wire.Subscribe, c.IOPubPort}} {
		s, err := k.dial(ctx, end.kind, c.Endpoint(end.port))
		if err != nil {
			return err
		}
		k.sockets[end.ch] = s
	}
	welcome := make(chan struct{})
	go k.receive(iopub, welcome)
	go k.receive(shell, nil)
	go k.receive(control, nil)
	if err := k.sockets[iopub].Send([][]byte{{1}}); err != nil {
		return err
	}
	select {
	case <-welcome:
	case <-time.After(2 * time.Second):
	case <-k.done:
		return ErrKernelDied
	}
	_, err := k.Request(ctx, "kernel_info_request", map[string]any{})
	return err
}

// dial retries until the kernel has bound its socket.
func (k *Kernel) dial(ctx context.Context, kind wire.Kind, endpoint string) (*wire.Socket, error) {
	for {
		s, err := wire.Dial(ctx, kind, endpoint, k.session)
		if err == nil {
			return s, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-k.done:
			return nil, ErrKernelDied
		case <-ctx.Done():
			return nil, err
		}
	}
}

// receive hands out the messages of one channel.
func (k *Kernel) receive(ch channel, welcome chan struct{}) {
	for {
		frames, err := k.sockets[ch].Recv(context.Background())
		if err != nil {
			return
		}
		m, err := k.signer.Decode(frames)
		if err != nil {
			continue
		}
		if m.Header.MsgType == "iopub_welcome" {
			if welcome != nil {
				close(welcome)
				welcome = nil
			}
			continue
		}
		var parent wire.Header
		_ = json.Unmarshal(m.Parent, &parent) // {}: no request of ours
		k.mu.Lock()
		c := k.waiting[parent.MsgID]
		k.mu.Unlock()
		if ch == iopub {
			k.published(m, c)
		} else if c != nil {
			select {
			case c.reply <- m:
			default:
			}
		}
	}
}

func (k *Kernel) published(m *wire.Message, c *call) {
	if k.options.IOPub != nil {
		k.options.IOPub(m)
	}
	var status struct {
		State string `json:"execution_state"`
	}
	if c != nil && m.Header.MsgType == "status" && json.Unmarshal(m.Content, &status) == nil && status.State == "idle" {
		select {
		case <-c.idle: // told twice
		default:
			close(c.idle)
		}
	}
}

// Request sends a request on shell, interrupt, shutdown and debug requests on control, and returns the reply once the
// kernel has also published everything that belongs to it.
func (k *Kernel) Request(ctx context.Context, msgType string, content any) (*wire.Message, error) {
	wait, err := k.send(msgType, content, nil)
	if err != nil {
		return nil, err
	}
	return wait(ctx)
}

// send sends a request; wait returns its reply. before, which may be nil, gets the request's id before it is sent.
func (k *Kernel) send(msgType string, content any, before func(id string)) (wait func(context.Context) (*wire.Message, error), err error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("client: %s: %w", msgType, err)
	}
	m := &wire.Message{Header: wire.NewHeader(msgType, k.session), Content: raw}
	id := m.Header.MsgID
	frames, err := k.signer.Encode(m)
	if err != nil {
		return nil, err
	}
	c := &call{reply: make(chan *wire.Message, 1), idle: make(chan struct{})}
	k.mu.Lock()
	k.waiting[id] = c
	k.mu.Unlock()
	ch := shell
	switch msgType {
	case "interrupt_request", "shutdown_request", "debug_request":
		ch = control
	}
	if before != nil {
		before(id)
	}
	if err := k.sockets[ch].Send(frames); err != nil {
		return nil, fmt.Errorf("client: %s: %w", msgType, err)
	}
	return func(ctx context.Context) (*wire.Message, error) {
		defer func() {
			k.mu.Lock()
			delete(k.waiting, id)
			k.mu.Unlock()
		}()
		return k.wait(ctx, c)
	}, nil
}

func (k *Kernel) wait(ctx context.Context, c *call) (*wire.Message, error) {
	var reply *wire.Message
	idle := c.idle
	for reply == nil || idle != nil {
		select {
		case reply = <-c.reply:
		case <-idle:
			idle = nil
		case <-k.done:
			return nil, ErrKernelDied
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return reply, nil
}

// Reply is how an execute request ended.
type Reply struct {
	Status         string   `json:"status"` // "ok", "error", "aborted"
	ExecutionCount int      `json:"execution_count"`
	EName          string   `json:"ename"`
	EValue         string   `json:"evalue"`
	Traceback      []string `json:"traceback"`
}

// Execute runs code without standard input. started, which may be nil, gets the request's id before any output comes.
// When ctx ends, the cell is interrupted and given ten seconds to end.
func (k *Kernel) Execute(ctx context.Context, code string, started func(id string)) (Reply, error) {
	wait, err := k.send("execute_request", map[string]any{
		"code": code, "silent": false, "store_history": true, "user_expressions": map[string]any{}, "allow_stdin": false, "stop_on_error": true,
	}, started)
	if err != nil {
		return Reply{}, err
	}
	m, err := wait(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), k.stopCell())
		}
		return Reply{}, err
	}
	var r Reply
	if err := json.Unmarshal(m.Content, &r); err != nil {
		return r, fmt.Errorf("client: execute_reply: %w", err)
	}
	return r, nil
}

// stopCell interrupts and waits until the kernel is free again.
func (k *Kernel) stopCell() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := k.Interrupt(ctx); err != nil {
		return err
	}
	_, err := k.Request(ctx, "kernel_info_request", map[string]any{})
	return err
}

// Interrupt stops the running cell.
func (k *Kernel) Interrupt(ctx context.Context) error {
	_, err := k.Request(ctx, "interrupt_request", map[string]any{})
	return err
}

// Done is closed when the kernel process has ended.
func (k *Kernel) Done() <-chan struct{} { return k.done }

// Shutdown asks the kernel to end and waits for it.
func (k *Kernel) Shutdown(ctx context.Context) error {
	_, err := k.Request(ctx, "shutdown_request", map[string]any{"restart": false})
	if errors.Is(err, ErrKernelDied) {
		err = nil
	}
	if err == nil {
		select {
		case <-k.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return errors.Join(err, k.Close())
}

// Close ends the kernel process at once if it still runs, and frees everything.
func (k *Kernel) Close() error {
	var errs []error
	select {
	case <-k.done:
	default:
		_ = k.cmd.Process.Kill()
		<-k.done
	}
	for _, s := range k.sockets {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(k.dir))...)
}
