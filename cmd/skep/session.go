package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"skep/cmd/skep/bind"
	"skep/kernel/session"
)

// cmdSession runs the cells of one kernel, which starts it; see kernel/session.
func cmdSession(_ context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("session", flag.ContinueOnError)
	engine := engineFlag(fs)
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		bind.Close()
		os.Exit(0)
	}()
	b, err := bind.Session(*engine)
	if err != nil {
		return err
	}
	return session.Main(b)
}

// engineFlag declares which cell engine runs the cells; yaegi is the default until the vm has shown itself.
func engineFlag(fs *flag.FlagSet) *string {
	return fs.String("engine", bind.Engines[0], "cell `engine`: "+strings.Join(bind.Engines, " or "))
}
