package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"skep/cmd/skep/bind"
	"skep/kernel"
	"skep/kernel/wire"
)

// cmdKernel speaks the Jupyter protocol on the sockets of a connection file until a front end shuts it down or the
// process that started it is gone. Cells run in a child, `skep session`.
func cmdKernel(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("kernel", flag.ContinueOnError)
	file := fs.String("f", "", "connection `file` that the Jupyter server wrote")
	engine := engineFlag(fs)
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	if *file == "" {
		return fmt.Errorf("%w: -f FILE is missing; Jupyter starts this command itself, see `skep install`", errUsage)
	}
	if !slices.Contains(bind.Engines, *engine) {
		return fmt.Errorf("%w: no engine %q: there are %s", errUsage, *engine, strings.Join(bind.Engines, " and "))
	}
	connection, err := wire.ReadConnection(*file)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	logger := log.New(io.Err, "skep kernel: ", log.LstdFlags)
	id := uuid.NewString()
	front, err := kernel.Bind(connection, id, logger)
	if err != nil {
		return err
	}
	server, err := kernel.New(front, kernel.Options{
		Session: id, Child: []string{self, "session", "--engine", *engine}, Version: version, History: historyFile(), Log: logger,
	})
	if err != nil {
		return errors.Join(err, front.Close(0))
	}
	return serveUntilOrphaned(context.WithoutCancel(ctx), server)
}

// serveUntilOrphaned serves until shutdown, SIGTERM or the parent's end. SIGINT, which a terminal sends to the whole
// group, interrupts the running cell and never ends the kernel.
func serveUntilOrphaned(ctx context.Context, server *kernel.Server) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		parent := os.Getppid()
		watched, _ := strconv.Atoi(os.Getenv("JPY_PARENT_PID")) // not set or no number: 0, not watched
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case s := <-signals:
				if s == os.Interrupt {
					server.Interrupt()
					continue
				}
				cancel()
			case <-tick.C:
				if os.Getppid() != parent || watched > 1 && errors.Is(syscall.Kill(watched, 0), syscall.ESRCH) {
					cancel()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return server.Serve(ctx)
}

// historyFile is where inputs are kept over sessions; "" (memory only) where the user has no home.
func historyFile() string {
	dir := os.Getenv("XDG_DATA_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "skep", "history.jsonl")
}
