// Command skep is the Jupyter kernel "Go (skep)" and the latent-swarm search behind it: it installs and runs the
// kernel, runs searches and notebooks, judges programs, and measures itself. DESIGN.md §10 is its contract:
// results go to stdout, everything else to stderr, and the exit code is 0 only if the work was done.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"skep/engine/judge"
)

// version is what kernel_info, run folders and doctor report.
const version = "0.1.0"

// stdio is where a command reads and writes, so that tests run commands in process.
type stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// command is one verb of the command line. Its run parses its own flags.
type command struct {
	name string
	args string // what may follow the name
	does string
	run  func(ctx context.Context, args []string, io stdio) error
}

// errUsage marks an error in how a command was called.
var errUsage = errors.New("usage")

func main() {
	judge.Main() // the supervisor of a candidate is this program again
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code: 0 done, 1 failed, 2 called wrongly, 130 interrupted.
func run(ctx context.Context, args []string, io stdio) int {
	if len(args) > 1 && args[0] == "help" {
		args = append(args[1:], "--help")
	}
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, args[0]) {
		printCommands(io.Out)
		return 0
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == args[0] })
	if i < 0 {
		fmt.Fprintf(io.Err, "skep: there is no command %q; `skep help` lists them\n", args[0])
		return 2
	}
	out := &checked{w: io.Out}
	io.Out = out
	err := commands()[i].run(ctx, args[1:], io)
	if err == nil {
		err = out.failed()
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(io.Err, "skep %s: interrupted: %v\n", args[0], err)
		return 130
	case errors.Is(err, errUsage):
		fmt.Fprintf(io.Err, "skep %s: %v\n", args[0], err)
		return 2
	default:
		fmt.Fprintf(io.Err, "skep %s: %v\n", args[0], err)
		return 1
	}
}

// checked is stdout that remembers its first error: a result that was not written is not done, whoever printed it. It is
// safe for concurrent use.
type checked struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// Write writes b.
func (c *checked) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.w.Write(b)
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("the result could not be written: %w", err)
	}
	return n, err
}

func (c *checked) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
