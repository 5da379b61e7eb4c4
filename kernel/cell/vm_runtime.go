package cell

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"log"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/ssa"

	"skep/kernel/vm"
)

// checkError is the predeclared check: it fails the cell with a non-nil error, at the statement that had it.
func (e *vmEngine) checkError(c vm.Caller, args []reflect.Value) {
	err, _ := args[0].Interface().(error)
	if err == nil {
		return
	}
	f := failed{err: err}
	for _, pos := range e.positions(c.Frames()) {
		f.cell, f.line = cellNumber(pos), pos.Line
	}
	vm.Fatal(failedError{f})
}

// failedError carries a failed cell through the machine.
type failedError struct{ failed }

func (f failedError) Error() string { return f.err.Error() }

// exitError is the end of a cell that called os.Exit: the session lives.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// cellNumber reads the number out of a position's In[n].
func cellNumber(pos token.Position) int {
	n := 0
	if _, err := fmt.Sscanf(pos.Filename, "In[%d]", &n); err != nil {
		return 0
	}
	return n
}

// positions are the places in cells of a trace, outermost first.
func (e *vmEngine) positions(frames []vm.Frame) []token.Position {
	var list []token.Position
	for _, f := range frames {
		if p := packageOf(f.Function); p == nil || p.Pkg != e.scope.pkg || !f.Pos.IsValid() {
			continue
		}
		if pos := e.scope.fset.Position(f.Pos); cellNumber(pos) > 0 {
			list = append(list, pos)
		}
	}
	return list
}

// packageOf returns a function's package; instances of generic functions have their origin's.
func packageOf(f *ssa.Function) *ssa.Package {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if o := f.Origin(); o != nil {
		f = o
	}
	return f.Pkg
}

// failure turns what ended a cell into its error.
func (e *vmEngine) failure(ctx context.Context, err error) error {
	var f failedError
	var p *vm.Panic
	var exit exitError
	switch {
	case errors.As(err, &exit):
		return &Error{Name: "exit", Value: exit.Error(), Traceback: []string{red(exit.Error()), "The session goes on."}, Cause: exit}
	case errors.Is(err, vm.ErrStopped):
		return interrupted("")
	case errors.As(err, &f):
		if ctx.Err() != nil && errors.Is(f.err, context.Canceled) {
			return interrupted("")
		}
		return errorFailure(f.failed, e.source(f.cell))
	case errors.As(err, &p):
		return e.panicked(p)
	}
	return unsupported(err)
}

func (e *vmEngine) source(cell int) string {
	e.state.Lock()
	defer e.state.Unlock()
	return e.code[cell]
}

// mostFrames is how many frames of a long trace are shown.
const mostFrames = 12

// panicked shows a panic with the lines of cells that it passed, innermost last.
func (e *vmEngine) panicked(p *vm.Panic) error {
	msg := vmPanicText(p.Value)
	trace := []string{red("panic: ") + msg}
	positions := slices.Compact(e.positions(p.Trace))
	if len(positions) > mostFrames {
		trace = append(trace, fmt.Sprintf("… %d calls", len(positions)-mostFrames))
		positions = positions[len(positions)-mostFrames:]
	}
	for _, pos := range positions {
		trace = append(trace, at(pos, e.source(cellNumber(pos)))...)
	}
	cause, _ := p.Value.(error)
	return &Error{Name: "panic", Value: msg, Traceback: trace, Cause: cause}
}

// vmPanicText is what Go prints behind "panic: ". A method that panics itself is no reason to fail.
func vmPanicText(v any) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprintf("(%T)", v)
		}
	}()
	switch v := v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}

// goroutinePanic shows the panic of a goroutine in the cell that started it.
func (e *vmEngine) goroutinePanic(r *vm.Run, err error) {
	e.state.Lock()
	cell := e.runs[r]
	e.state.Unlock()
	var f failedError
	var p *vm.Panic
	switch {
	case errors.As(err, &f):
		fmt.Fprintf(e.options.Stderr, "error in a goroutine of %s, line %d: %v\n", cellName(f.cell), f.line, f.err)
	case errors.As(err, &p):
		fmt.Fprintf(e.options.Stderr, "panic in a goroutine of %s: %s\n", cellName(cell), vmPanicText(p.Value))
	default:
		fmt.Fprintf(e.options.Stderr, "a goroutine of %s: %v\n", cellName(cell), err)
	}
}

// localFuncs are functions that end with the cell that calls them.
func localFuncs() map[string]func(*vm.Run) reflect.Value {
	return map[string]func(*vm.Run) reflect.Value{
		"time.Sleep": func(r *vm.Run) reflect.Value {
			return reflect.ValueOf(func(d time.Duration) {
				timer := time.NewTimer(d)
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-r.Done(): // the machine stops at the next instruction
				}
			})
		},
	}
}

// notebookSymbols are the symbol tables with standard input and output of the session in the places of the process's.
func notebookSymbols(o Options) vm.Symbols {
	all := maps.Clone(o.Symbols)
	replace := func(pkg string, names map[string]reflect.Value) {
		table := maps.Clone(all[pkg])
		maps.Copy(table, names)
		all[pkg] = table
	}
	out, in := o.Stdout, o.Stdin
	replace("fmt/fmt", map[string]reflect.Value{
		"Print":   reflect.ValueOf(func(a ...any) (int, error) { return fmt.Fprint(out, a...) }),
		"Printf":  reflect.ValueOf(func(format string, a ...any) (int, error) { return fmt.Fprintf(out, format, a...) }),
		"Println": reflect.ValueOf(func(a ...any) (int, error) { return fmt.Fprintln(out, a...) }),
		"Scan":    reflect.ValueOf(func(a ...any) (int, error) { return fmt.Fscan(in, a...) }),
		"Scanf":   reflect.ValueOf(func(format string, a ...any) (int, error) { return fmt.Fscanf(in, format, a...) }),
		"Scanln":  reflect.ValueOf(func(a ...any) (int, error) { return fmt.Fscanln(in, a...) }),
	})
	replace("log/log", logSymbols(log.New(o.Stderr, "", log.LstdFlags)))
	files := map[string]reflect.Value{"Exit": reflect.ValueOf(func(code int) { vm.Fatal(exitError(code)) })}
	if o.OSStdout != nil && o.OSStderr != nil {
		files["Stdout"], files["Stderr"] = reflect.ValueOf(&o.OSStdout).Elem(), reflect.ValueOf(&o.OSStderr).Elem()
	}
	replace("os/os", files)
	return all
}

// logSymbols are the functions of package log on a logger of the session; the fatal ones end the cell.
func logSymbols(l *log.Logger) map[string]reflect.Value {
	fatal := func(text string) {
		l.Print(strings.TrimSuffix(text, "\n"))
		vm.Fatal(exitError(1))
	}
	return map[string]reflect.Value{
		"Default": reflect.ValueOf(func() *log.Logger { return l }),
		"Print":   reflect.ValueOf(l.Print), "Printf": reflect.ValueOf(l.Printf), "Println": reflect.ValueOf(l.Println),
		"Panic": reflect.ValueOf(l.Panic), "Panicf": reflect.ValueOf(l.Panicf), "Panicln": reflect.ValueOf(l.Panicln),
		"Fatal":   reflect.ValueOf(func(a ...any) { fatal(fmt.Sprint(a...)) }),
		"Fatalf":  reflect.ValueOf(func(format string, a ...any) { fatal(fmt.Sprintf(format, a...)) }),
		"Fatalln": reflect.ValueOf(func(a ...any) { fatal(fmt.Sprintln(a...)) }),
		"Flags":   reflect.ValueOf(l.Flags), "SetFlags": reflect.ValueOf(l.SetFlags), "Prefix": reflect.ValueOf(l.Prefix), "SetPrefix": reflect.ValueOf(l.SetPrefix),
		"Writer": reflect.ValueOf(func() io.Writer { return l.Writer() }), "SetOutput": reflect.ValueOf(l.SetOutput), "Output": reflect.ValueOf(l.Output),
	}
}
