package session

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unicode/utf8"
)

// stdio captures what the session writes, in order: writers given to the interpreter emit at once, after everything
// that was written to the pipes that stand for os.Stdout and os.Stderr.
type stdio struct {
	emit func(name, text string)

	mu      sync.Mutex
	streams [2]*stream // stdout, stderr
}

// stream is one captured file.
type stream struct {
	name   string
	r, w   *os.File
	raw    syscall.RawConn // of r
	broken []byte          // the start of a character whose rest has not come yet
}

func newStdio(emit func(name, text string)) (*stdio, error) {
	c := &stdio{emit: emit}
	for i, name := range []string{"stdout", "stderr"} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("session: %w", err)
		}
		raw, err := r.SyscallConn()
		if err != nil {
			return nil, fmt.Errorf("session: %w", err)
		}
		c.streams[i] = &stream{name: name, r: r, w: w, raw: raw}
	}
	for _, s := range c.streams {
		go func() {
			_ = s.raw.Read(func(fd uintptr) bool {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.drain(s, int(fd))
			})
		}()
	}
	return c, nil
}

// drain emits what the pipe holds and reports whether it is closed. The caller holds mu.
func (c *stdio) drain(s *stream, fd int) (closed bool) {
	var buf [16 << 10]byte
	for {
		n, err := syscall.Read(fd, buf[:])
		switch {
		case n > 0:
			c.text(s, buf[:n])
		case errors.Is(err, syscall.EINTR):
		default:
			return !errors.Is(err, syscall.EAGAIN)
		}
	}
}

// text emits b but for a character cut at its end. The caller holds mu.
func (c *stdio) text(s *stream, b []byte) {
	b = append(s.broken, b...)
	cut := len(b)
	for i := 1; i <= min(3, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	s.broken = append([]byte(nil), b[cut:]...)
	if cut > 0 {
		c.emit(s.name, string(b[:cut]))
	}
}

// sync emits everything written so far.
func (c *stdio) sync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.syncLocked()
}

func (c *stdio) syncLocked() {
	for _, s := range c.streams {
		_ = s.raw.Control(func(fd uintptr) { c.drain(s, int(fd)) })
	}
}

// writer returns a writer whose text appears behind everything written before it.
func (c *stdio) writer(i int) writer { return writer{c, c.streams[i]} }

type writer struct {
	c *stdio
	s *stream
}

func (w writer) Write(b []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.syncLocked()
	w.c.text(w.s, b)
	return len(b), nil
}
