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
	if c.stdio, err = newStdio(c.stream); err != nil {
		return err
	}
	os.Stdout, os.Stderr = c.stdio.streams[0].w, c.stdio.streams[1].w
	display.Connect(c)
	defer display.Connect(nil)
	if b.Engine == nil {
		b.Engine = cell.NewYaegi
	}
	c.engine, err = b.Engine(cell.Options{
		Symbols: b.Symbols, Types: b.Types, Stdin: (*input)(c),
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

	current    atomic.Uint64 // the request that outputs belong to: the running cell, else the last one
	allowStdin atomic.Bool

	reading sync.Mutex
	line    []byte // what is left of the last line of input

	mu      sync.Mutex
	cellCtx context.Context // nil: no cell runs
	cancel  context.CancelFunc
	running sync.Mutex // held while a cell runs
}

func (c *child) serve() error {
	for {
		pk, err := c.pipe.receive()
		if errors.Is(err, io.EOF) {
			c.interrupt()
			return nil
		}
		if err != nil {
			return err
		}
		switch pk.Kind {
		case kindExecute:
			go c.execute(pk)
		case kindComplete:
			go c.complete(pk)
		case kindInspect:
			go c.inspect(pk)
		case kindInterrupt:
			c.interrupt()
		case kindInput:
			c.input(pk)
		}
	}
}

func (c *child) execute(pk packet) {
	c.running.Lock()
	defer c.running.Unlock()
	var r Request
	if err := json.Unmarshal(pk.Body, &r); err != nil {
		c.done(pk.ID, Reply{Error: &Failure{Name: "error", Value: err.Error(), Traceback: []string{err.Error()}}})
		return
	}
	c.current.Store(pk.ID)
	c.allowStdin.Store(r.AllowStdin)
	ctx, end := c.begin()
	defer end()

	reply := Reply{}
	values, err := c.engine.Run(ctx, r.Number, r.Code)
	c.stdio.sync()
	if err == nil {
		err = c.result(values)
	}
	if err != nil {
		reply.Error = failure(err)
	} else {
		reply.UserExpressions = c.expressions(ctx, r)
	}
	c.stdio.sync()
	c.done(pk.ID, reply)
}

// begin makes the context of one cell.
func (c *child) begin() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	c.cellCtx, c.cancel = ctx, cancel
	c.mu.Unlock()
	done := func() {}
	if c.binding.Context != nil {
		ctx, done = c.binding.Context(ctx)
	}
	return ctx, func() {
		c.mu.Lock()
		c.cellCtx, c.cancel = nil, nil
		c.mu.Unlock()
		done()
		cancel()
	}
}

func (c *child) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
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
	c.done(pk.ID, c.engine.Complete(b.Code, min(max(b.Cursor, 0), len(b.Code))))
}

func (c *child) inspect(pk packet) {
	var b codeBody
	_ = json.Unmarshal(pk.Body, &b)
	i, found := c.engine.Inspect(b.Code, min(max(b.Cursor, 0), len(b.Code)))
	c.done(pk.ID, Inspection{i, found})
}

func (c *child) done(id uint64, result any) {
	if err := c.pipe.send(kindDone, id, result); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// stream sends text to the page. It runs under stdio's lock, so packets keep their order.
func (c *child) stream(name, text string) {
	content, err := json.Marshal(streamBody{name, text})
	if err == nil {
		_ = c.pipe.send(kindOutput, c.current.Load(), Output{Type: "stream", Content: content})
	}
}

// send puts out a message behind all text written before it.
func (c *child) send(msgType string, content any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("display: %w", err)
	}
	c.stdio.sync()
	return c.pipe.send(kindOutput, c.current.Load(), Output{Type: msgType, Content: raw})
}
