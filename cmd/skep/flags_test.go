package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestParse: flags stand before, between and behind arguments; after "--" nothing is a flag.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		args     string
		min, max int
		want     string // what --n holds, then the arguments; of an error, what it says
		err      error
	}{
		{"a --n 3 b", 2, 2, "3 [a b]", nil},
		{"--n=4 a", 1, 1, "4 [a]", nil},
		{"a b -n 5", 0, -1, "5 [a b]", nil},
		{"--n 1 -- --n 2", 0, -1, "1 [--n 2]", nil},
		{"", 0, 0, "0 []", nil},
		{"a", 0, 0, "1 arguments, want 0", errUsage},
		{"", 1, 2, "0 arguments, want 1 to 2", errUsage},
		{"", 1, -1, "0 arguments, want 1 or more", errUsage},
		{"--n x", 0, 0, `"x" for flag -n`, errUsage},
		{"a --m", 1, 1, "-m; `skep run --help` lists the flags", errUsage},
		{"a -h --m", 1, 1, "help", flag.ErrHelp},
	} {
		var out, errs bytes.Buffer
		fs := flag.NewFlagSet("run", flag.ContinueOnError)
		n := fs.Int("n", 0, "a number")
		rest, err := parse(fs, strings.Fields(c.args), stdio{nil, &out, &errs}, c.min, c.max)
		got := fmt.Sprint(*n, " ", rest)
		if err != nil {
			got = err.Error()
		}
		if !errors.Is(err, c.err) || !strings.Contains(got, c.want) || errs.Len() > 0 || (out.Len() > 0) != (c.err == flag.ErrHelp) {
			t.Errorf("%q: %s (%v), printed %q %q; want %s", c.args, got, err, out.String(), errs.String(), c.want)
		}
	}
}

// TestUnwrittenResult: a command whose result cannot be written has failed.
func TestUnwrittenResult(t *testing.T) {
	for _, args := range [][]string{{"problems"}, {"problems", "--json"}, {"doctor", "--python", "/nowhere"}} {
		var errs bytes.Buffer
		code := run(t.Context(), args, stdio{nil, full{}, &errs})
		if code != 1 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: code %d, stderr %q", args, code, errs.String())
		}
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestHelp: every command and every benchmark prints its own help on stdout and does nothing else.
func TestHelp(t *testing.T) {
	_, all, _ := call(t, "")
	check := func(name string, c command) {
		code, out, errs := call(t, "", append(strings.Fields(name), "--help")...)
		if code != 0 || errs != "" || !strings.HasPrefix(out, "skep "+name+" "+c.args+"\n"+c.does+"\n") {
			t.Errorf("skep %s --help: code %d, stdout %q, stderr %q", name, code, out, errs)
		}
		if _, same, _ := call(t, "", append([]string{"help"}, strings.Fields(name)...)...); same != out {
			t.Errorf("skep help %s prints %q", name, same)
		}
	}
	for _, c := range commands() {
		check(c.name, c)
		if !strings.Contains(all, c.name) || !strings.Contains(all, c.does) {
			t.Errorf("skep help does not list %s", c.name)
		}
	}
	for _, b := range benchmarks() {
		check("bench "+b.name, b)
	}
	if code, out, errs := call(t, "", "nosuch"); code != 2 || out != "" || !strings.Contains(errs, `"nosuch"`) {
		t.Errorf("an unknown command: code %d, stdout %q, stderr %q", code, out, errs)
	}
}
