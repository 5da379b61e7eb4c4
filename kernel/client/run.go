package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"skep/kernel/wire"
)

// RunOptions are the settings of RunNotebook. The functions may be nil; they are called one at a time and must return
// quickly.
type RunOptions struct {
	Options                             // of the kernel; its IOPub is called as well
	Argv        []string                // the kernel's command with "{connection_file}"
	CellTimeout time.Duration           // a cell that takes longer is interrupted and fails; 0: no limit
	Started     func(i int, cell *Cell) // cell i of the code cells, from 0, begins
	Output      func(i int, m *wire.Message)
	Ended       func(i int, took time.Duration, err error) // err nil: it succeeded
}

// CellError is a cell that failed.
type CellError struct {
	Index     int // among the code cells, from 0
	Source    string
	Name      string // the kernel's ename
	Value     string
	Traceback []string // coloured with ANSI codes
}

func (e *CellError) Error() string {
	return fmt.Sprintf("code cell %d failed: %s: %s", e.Index+1, e.Name, e.Value)
}

// Print returns the cell and the traceback as a terminal shows them.
func (e *CellError) Print() string {
	var b strings.Builder
	for line := range strings.Lines(e.Source) {
		b.WriteString("  | " + strings.TrimRight(line, "\n") + "\n")
	}
	b.WriteString(strings.Join(e.Traceback, "\n") + "\n")
	return b.String()
}

// RunNotebook starts a kernel, runs the code cells of nb in order and puts their outputs into nb, which it borrows.
// It stops at the first cell that fails, with *CellError; the outputs so far are kept.
func RunNotebook(ctx context.Context, nb *Notebook, o RunOptions) error {
	r := &notebookRun{options: o, recorder: newRecorder(), index: map[*Cell]int{}}
	kernelOptions := o.Options
	kernelOptions.IOPub = r.published
	k, err := Start(ctx, o.Argv, kernelOptions)
	if err != nil {
		return err
	}
	defer k.Close()
	var code []*Cell
	for _, c := range nb.Cells() {
		if c.IsCode() {
			r.index[c] = len(code)
			code = append(code, c)
			c.setOutputs([]any{})
			c.setCount(0)
		}
	}
	for i, c := range code {
		if err := r.run(ctx, k, i, c); err != nil {
			return err
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return k.Shutdown(end)
}

// notebookRun is one RunNotebook under way.
type notebookRun struct {
	options RunOptions

	mu       sync.Mutex // guards what follows and serialises the callbacks
	recorder *recorder
	index    map[*Cell]int
}

func (r *notebookRun) run(ctx context.Context, k *Kernel, i int, c *Cell) error {
	if r.options.Started != nil {
		r.options.Started(i, c)
	}
	if r.options.CellTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.options.CellTimeout, fmt.Errorf("it took longer than %v", r.options.CellTimeout))
		defer cancel()
	}
	began := time.Now()
	reply, err := k.Execute(ctx, c.Source(), func(id string) { r.began(id, c) })
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
		cause := context.Cause(ctx)
		err = &CellError{Index: i, Source: c.Source(), Name: "interrupted", Value: cause.Error(), Traceback: []string{cause.Error()}}
	case err != nil:
		err = &CellError{Index: i, Source: c.Source(), Name: "kernel", Value: err.Error(), Traceback: []string{err.Error()}}
	case reply.Status != "ok":
		err = &CellError{Index: i, Source: c.Source(), Name: reply.EName, Value: reply.EValue, Traceback: reply.Traceback}
	}
	c.setCount(reply.ExecutionCount)
	if r.options.Ended != nil {
		r.options.Ended(i, time.Since(began), err)
	}
	return err
}

// began ties a request to its cell.
func (r *notebookRun) began(id string, c *Cell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recorder.cells[id] = c
}

func (r *notebookRun) published(m *wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.recorder.record(m); c != nil && r.options.Output != nil {
		r.options.Output(r.index[c], m)
	}
	if r.options.IOPub != nil {
		r.options.IOPub(m)
	}
}
