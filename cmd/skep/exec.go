package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skep/kernel/client"
)

// cmdExec runs a notebook through a child `skep kernel` and writes its outputs into it, or into another file.
func cmdExec(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("exec", flag.ContinueOnError)
	out := fs.String("out", "", "write the executed notebook to `FILE` instead of over the input")
	timeout := fs.Duration("timeout", 0, "longest time of one cell, such as 10m; 0: no limit")
	rest, err := parse(fs, args, io, 1, 1)
	if err != nil {
		return err
	}
	if *timeout < 0 {
		return fmt.Errorf("%w: --timeout %v is negative", errUsage, *timeout)
	}
	path := rest[0]
	nb, err := client.ReadNotebook(path)
	if err != nil {
		return err
	}
	if *out == "" {
		*out = path
	}
	if err := writable(filepath.Dir(*out)); err != nil {
		return err
	}
	argv, err := kernelArgv()
	if err != nil {
		return err
	}
	err = client.RunNotebook(ctx, nb, client.RunOptions{
		Options: client.Options{Dir: filepath.Dir(path), Stderr: io.Err}, Argv: argv, CellTimeout: *timeout,
		Started: func(i int, c *client.Cell) { fmt.Fprintf(io.Err, "[%d] %s\n", i+1, firstLine(c.Source())) },
		Ended: func(i int, took time.Duration, err error) {
			if err == nil {
				fmt.Fprintf(io.Err, "[%d] %v\n", i+1, took.Round(time.Millisecond))
			}
		},
	})
	var failed *client.CellError
	if errors.As(err, &failed) {
		fmt.Fprint(io.Err, newTerminal(io.Err).coloured(failed.Print()))
	}
	return errors.Join(err, nb.Save(*out))
}

// kernelArgv is the command that Jupyter would run for our kernel.
func kernelArgv() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, "kernel", "-f", "{connection_file}"}, nil
}

func firstLine(s string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if more != "" {
		line += " …"
	}
	return line
}
