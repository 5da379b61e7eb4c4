package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"skep/cmd/skep/bind"
	"skep/kernel/session"
)

// cmdSession runs the cells of one kernel, which starts it; see kernel/session.
func cmdSession(_ context.Context, args []string, io stdio) error {
	if _, err := parse(flag.NewFlagSet("session", flag.ContinueOnError), args, io, 0, 0); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		bind.Close()
		os.Exit(0)
	}()
	b, err := bind.Session()
	if err != nil {
		return err
	}
	return session.Main(b)
}
