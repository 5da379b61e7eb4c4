package main

import (
	"errors"
	"flag"
	"fmt"
	goio "io"
	"os"
	"slices"
)

// parse reads a command's flags and checks the number of the remaining arguments; flags may stand before or behind
// them, and behind "--" stand arguments only. --help prints the command's help on stdout and returns flag.ErrHelp; any
// other error is of kind errUsage.
func parse(fs *flag.FlagSet, args []string, io stdio, min, max int) ([]string, error) {
	fs.SetOutput(goio.Discard) // run prints the error
	fs.Usage = func() {}
	var plain []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, plain = args[:i], args[i+1:]
	}
	var rest []string
	for {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			printHelp(io.Out, fs)
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("%w: %v; `skep %s --help` lists the flags", errUsage, err, fs.Name())
		}
		args = fs.Args()
		if len(args) == 0 {
			break
		}
		rest, args = append(rest, args[0]), args[1:]
	}
	rest = append(rest, plain...)
	if len(rest) < min || (max >= 0 && len(rest) > max) {
		args, _ := about(fs.Name())
		return nil, fmt.Errorf("%w: %d arguments, want %s: skep %s %s", errUsage, len(rest), wanted(min, max), fs.Name(), args)
	}
	return rest, nil
}

func wanted(min, max int) string {
	switch {
	case max < 0:
		return fmt.Sprintf("%d or more", min)
	case min == max:
		return fmt.Sprint(min)
	default:
		return fmt.Sprintf("%d to %d", min, max)
	}
}

// given reports whether the command line sets a flag.
func given(fs *flag.FlagSet, name string) (set bool) {
	fs.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// about finds a command or a benchmark ("bench lm") in the tables.
func about(name string) (args, does string) {
	for _, c := range commands() {
		if c.name == name {
			return c.args, c.does
		}
	}
	for _, b := range benchmarks() {
		if "bench "+b.name == name {
			return b.args, b.does
		}
	}
	return "", ""
}

// printCommands writes the list of commands.
func printCommands(w goio.Writer) {
	fmt.Fprintf(w, "skep %s: a Go notebook kernel that holds a live search by swarms of latent agents\n\n", version)
	for _, c := range commands() {
		fmt.Fprintf(w, "  skep %-8s  %s\n", c.name, c.does)
	}
	fmt.Fprint(w, "\n`skep help COMMAND` lists a command's arguments and flags.\n")
}

// printHelp writes what one command does and its flags.
func printHelp(w goio.Writer, fs *flag.FlagSet) {
	args, does := about(fs.Name())
	fmt.Fprintf(w, "skep %s %s\n%s\n", fs.Name(), args, does)
	fs.VisitAll(func(f *flag.Flag) {
		kind, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%-20s %s", f.Name+" "+kind, usage)
		if !slices.Contains([]string{"", "0", "false"}, f.DefValue) {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}

// readInput reads a file that a user names. Pipes, devices and what is larger than limit bytes are refused before they are
// read: they could fill the memory or never end.
func readInput(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a plain file (%s)", path, info.Mode().Type())
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}
