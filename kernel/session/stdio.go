package session

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"sync"
	"syscall"
	"unicode/utf8"

	"skep/kernel/cell"
)

// stdio captures what the session writes, in order: writers given to the interpreter emit at once, after everything
// that was written to the pipes that stand for os.Stdout and os.Stderr.
type stdio struct {
	emit   func(id uint64, name, text string) // id: the request of the goroutine that wrote, 0: not known
	origin func() uint64

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

// maxText bounds one piece of text, so that no print is too long for a packet.
const maxText = 1 << 20

func newStdio(emit func(id uint64, name, text string), origin func() uint64) (*stdio, error) {
	c := &stdio{emit: emit, origin: origin}
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
			c.text(s, 0, buf[:n])
		case errors.Is(err, syscall.EINTR):
		default:
			return !errors.Is(err, syscall.EAGAIN)
		}
	}
}

// text emits b but for a character cut at its end. The caller holds mu.
func (c *stdio) text(s *stream, id uint64, b []byte) {
	if len(s.broken) > 0 {
		b = append(s.broken, b...)
	}
	for len(b) > maxText {
		n := wholeCharacters(b[:maxText])
		c.emit(id, s.name, string(b[:n]))
		b = b[n:]
	}
	n := wholeCharacters(b)
	s.broken = append([]byte(nil), b[n:]...)
	if n > 0 {
		c.emit(id, s.name, string(b[:n]))
	}
}

// wholeCharacters returns the length of b without a character cut at its end.
func wholeCharacters(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}

// finish emits everything written so far, also the start of a character that never became whole: a cell has ended.
func (c *stdio) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.syncLocked()
	for _, s := range c.streams {
		if len(s.broken) > 0 {
			c.emit(0, s.name, string(s.broken))
			s.broken = nil
		}
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
	w.c.text(w.s, w.c.origin(), b)
	return len(b), nil
}

// ordered returns the writer in place of the captured file w, so that text written through it keeps its order with the
// other file's. Other writers are returned as they are.
func (c *stdio) ordered(w io.Writer) io.Writer {
	for i, s := range c.streams {
		if f, ok := w.(*os.File); ok && f == s.w {
			return c.writer(i)
		}
	}
	return w
}

// bindings replaces the functions of fmt and io that cells print to os.Stdout and os.Stderr with: two pipes alone do
// not tell which was written first. The tables of symbols stay as they are.
func (c *stdio) bindings(symbols cell.Symbols) cell.Symbols {
	replaced := maps.Clone(symbols)
	for key, names := range map[string]map[string]any{
		"fmt/fmt": {
			"Fprint":   func(w io.Writer, a ...any) (int, error) { return fmt.Fprint(c.ordered(w), a...) },
			"Fprintln": func(w io.Writer, a ...any) (int, error) { return fmt.Fprintln(c.ordered(w), a...) },
			"Fprintf":  func(w io.Writer, f string, a ...any) (int, error) { return fmt.Fprintf(c.ordered(w), f, a...) },
		},
		"io/io": {"WriteString": func(w io.Writer, s string) (int, error) { return io.WriteString(c.ordered(w), s) }},
	} {
		if symbols[key] == nil {
			continue
		}
		replaced[key] = maps.Clone(symbols[key])
		for name, f := range names {
			replaced[key][name] = reflect.ValueOf(f)
		}
	}
	return replaced
}
