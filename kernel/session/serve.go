package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"skep/kernel/cell"
	"skep/kernel/display"
)

// Descriptors that Start gives the child.
const (
	requestFD = 3
	answerFD  = 4
)

// Main serves the kernel that started this process until it closes its end, then kills what the cells started.
func Main(b Binding) error {
	in, out := os.NewFile(requestFD, "requests"), os.NewFile(answerFD, "answers")
	if in == nil || out == nil {
		return errors.New("session: this command is run by `skep kernel`, not by hand")
	}
	syscall.CloseOnExec(requestFD)
	syscall.CloseOnExec(answerFD)
	err := Serve(b, in, out)
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
	return err
}

// Serve answers requests from in on out until in ends. It replaces os.Stdout and os.Stderr of the process.
func Serve(b Binding, in io.Reader, out io.Writer) error {
	c := &child{binding: b, pipe: newPipe(in, out), lines: make(chan inputBody, 1)}
	var err error
	if c.stdio, err = newStdio(c.stream, c.origins.find); err != nil {
		return err
	}
	os.Stdout, os.Stderr = c.stdio.streams[0].w, c.stdio.streams[1].w
	display.Connect(c)
	defer display.Connect(nil)
	if b.Engine == nil {
		b.Engine = cell.NewYaegi
	}
	c.engine, err = b.Engine(cell.Options{
		Symbols: c.stdio.bindings(b.Symbols), Types: b.Types, Stdin: (*input)(c),
		Stdout: c.stdio.writer(0), Stderr: c.stdio.writer(1),
		OSStdout: os.Stdout, OSStderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	if err := c.pipe.send(kindReady, 0, nil); err != nil {
		return err
	}
	return c.serve()
}

// child is the serving side. One cell runs at a time; completion and inspection run beside it.
type child struct {
	binding Binding
	pipe    *pipe
	stdio   *stdio
	engine  cell.Engine
	lines   chan inputBody

	origins    origins
	current    atomic.Uint64 // the running cell's request, else the last one's: outputs of unknown origin belong to it
	allowStdin atomic.Bool

	reading sync.Mutex
	line    []byte // what is left of the last line of input

	mu      sync.Mutex
	cellCtx context.Context // nil: no cell runs
	cancel  context.CancelFunc
	cell    uint64 // the request that began last
	stopped uint64 // requests up to this one are stopped
}

func (c *child) serve() error {
	for {
		pk, err := c.pipe.receive()
		if errors.Is(err, io.EOF) {
			c.interrupt(c.current.Load())
			return nil
		}
		if err != nil {
			return err
		}
		switch pk.Kind {
		case kindExecute:
			go c.execute(c.begin(pk.ID), pk) // begun here, so that an interrupt right behind the request finds it
		case kindComplete:
			go c.complete(pk)
		case kindInspect:
			go c.inspect(pk)
		case kindInterrupt:
			c.interrupt(pk.ID)
		case kindInput:
			c.input(pk)
		}
	}
}

// execute runs one cell. The kernel sends the next one only after the answer.
func (c *child) execute(ctx context.Context, pk packet) {
	var r Request
	var reply Reply
	err := json.Unmarshal(pk.Body, &r)
	if err == nil {
		c.current.Store(pk.ID)
		c.allowStdin.Store(r.AllowStdin)
		c.forgetInput()
		c.origins.mark(ctx, pk.ID)
		reply, err = c.run(ctx, r)
	}
	if err != nil {
		reply.Error = failure(err)
	}
	c.stdio.finish()
	c.end()
	c.done(pk.ID, reply)
}

// run runs the cell, shows its value and evaluates the user expressions.
func (c *child) run(ctx context.Context, r Request) (Reply, error) {
	if c.binding.Context != nil {
		var done func()
		ctx, done = c.binding.Context(ctx)
		defer done()
	}
	values, err := c.engine.Run(ctx, r.Number, r.Code)
	c.stdio.sync()
	if err == nil {
		err = c.result(values)
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{UserExpressions: c.expressions(ctx, r)}, nil
}

// begin makes the context of one cell, end closes it.
func (c *child) begin(id uint64) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cell = id
	c.cellCtx, c.cancel = context.WithCancel(context.Background())
	if c.stopped >= id {
		c.cancel()
	}
	return c.cellCtx
}

func (c *child) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
	c.cellCtx, c.cancel = nil, nil
}

// interrupt stops the cell with an id, now or when it begins.
func (c *child) interrupt(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = max(c.stopped, id)
	if c.cancel != nil && c.stopped >= c.cell {
		c.cancel()
	}
}

// expressions evaluates a request's user expressions; one that fails does not fail the others.
func (c *child) expressions(ctx context.Context, r Request) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, code := range r.UserExpressions {
		values, err := c.engine.Run(ctx, r.Number, code)
		var content any
		if err == nil {
			var b *bundle
			if b, err = c.bundle(values); err == nil && b == nil {
				b = &bundle{Data: map[string]any{}, Metadata: map[string]any{}}
			}
			if err == nil {
				content = map[string]any{"status": "ok", "data": b.Data, "metadata": b.Metadata}
			}
		}
		if err != nil {
			f := failure(err)
			content = map[string]any{"status": "error", "ename": f.Name, "evalue": f.Value, "traceback": f.Traceback}
		}
		if raw, err := json.Marshal(content); err == nil {
			out[name] = raw
		}
	}
	return out
}

func failure(err error) *Failure {
	var e *cell.Error
	if errors.As(err, &e) {
		return &Failure{Name: e.Name, Value: e.Value, Traceback: e.Traceback}
	}
	return &Failure{Name: "error", Value: err.Error(), Traceback: []string{err.Error()}}
}

func (c *child) complete(pk packet) {
	var b codeBody
	_ = json.Unmarshal(pk.Body, &b) // our own kernel sent it; a zero body completes nothing
	cursor := min(max(b.Cursor, 0), len(b.Code))
	found := Completion{Start: cursor, End: cursor}
	defer func() { c.done(pk.ID, found) }()
	defer c.survive("complete")
	found = c.engine.Complete(b.Code, cursor)
}

func (c *child) inspect(pk packet) {
	var b codeBody
	_ = json.Unmarshal(pk.Body, &b)
	var found Inspection
	defer func() { c.done(pk.ID, found) }()
	defer c.survive("inspect")
	found.Inspection, found.Found = c.engine.Inspect(b.Code, min(max(b.Cursor, 0), len(b.Code)))
}

// survive keeps a fault of ours in a look at half-written code from ending the session with all its variables.
func (c *child) survive(what string) {
	if r := recover(); r != nil {
		fmt.Fprintf(os.Stderr, "skep: %s: %v; please report the cell\n", what, r)
	}
}

func (c *child) done(id uint64, result any) {
	if err := c.pipe.send(kindDone, id, result); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// stream sends text to the page. It runs under stdio's lock, so packets keep their order.
func (c *child) stream(id uint64, name, text string) {
	content, err := json.Marshal(streamBody{name, text})
	if err == nil {
		_ = c.pipe.send(kindOutput, c.owner(id), Output{Type: "stream", Content: content})
	}
}

// owner returns the request that an output belongs to: its goroutine's, else the running cell's.
func (c *child) owner(id uint64) uint64 {
	if id == 0 {
		return c.current.Load()
	}
	return id
}

// send puts out a message behind all text written before it.
func (c *child) send(msgType string, content any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("display: %w", err)
	}
	c.stdio.sync()
	return c.pipe.send(kindOutput, c.owner(c.origins.find()), Output{Type: msgType, Content: raw})
}
