package session

import (
	"encoding/json"
	"errors"
	"io"
)

// Errors of reading standard input in a cell.
var (
	ErrNoInput    = errors.New("this front end does not let the cell ask for input")
	ErrNotInACell = errors.New("standard input can only be read while a cell runs")
)

// input is the child as standard input: each read that finds no buffered text asks the user for a line.
type input child

// Read returns bytes of the line that the user typed; fmt.Scan takes one at a time. Readers in several goroutines of a
// cell share the line, as they would on a terminal.
func (in *input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := (*child)(in)
	c.reading.Lock()
	defer c.reading.Unlock()
	if len(c.line) == 0 {
		line, err := c.ask("")
		if err != nil {
			return 0, err
		}
		c.line = []byte(line + "\n")
	}
	n := copy(p, c.line)
	c.line = c.line[n:]
	return n, nil
}

// ask requests one line from the front end. It ends with the cell.
func (c *child) ask(prompt string) (string, error) {
	c.mu.Lock()
	ctx := c.cellCtx
	c.mu.Unlock()
	if ctx == nil {
		return "", ErrNotInACell
	}
	if !c.allowStdin.Load() {
		return "", ErrNoInput
	}
	select {
	case <-c.lines: // a late answer to a question of an earlier cell
	default:
	}
	c.stdio.sync()
	if err := c.pipe.send(kindAsk, c.current.Load(), askBody{Prompt: prompt}); err != nil {
		return "", err
	}
	select {
	case b := <-c.lines:
		switch {
		case b.Error != "":
			return "", errors.New(b.Error)
		case b.Value == "\x04": // the protocol's end of file
			return "", io.EOF
		}
		return b.Value, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// forgetInput drops what an earlier cell left of its last line: an answer is to the question that was shown.
func (c *child) forgetInput() {
	if c.reading.TryLock() { // else a goroutine of an earlier cell waits for a line
		c.line = nil
		c.reading.Unlock()
	}
}

func (c *child) input(pk packet) {
	var b inputBody
	if err := json.Unmarshal(pk.Body, &b); err != nil {
		b.Error = err.Error()
	}
	select {
	case c.lines <- b:
	default: // nobody asked
	}
}
