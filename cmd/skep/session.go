package main

import (
	"context"
	"flag"

	"skep/cmd/skep/bind"
	"skep/kernel/session"
)

// cmdSession runs the cells of one kernel, which starts it; see kernel/session.
func cmdSession(_ context.Context, args []string, io stdio) error {
	if _, err := parse(flag.NewFlagSet("session", flag.ContinueOnError), args, io, 0, 0); err != nil {
		return err
	}
	b, err := bind.Session()
	if err != nil {
		return err
	}
	return session.Main(b)
}
