package cell

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/traefik/yaegi/interp"
)

// Options are what an engine needs from its session.
type Options struct {
	Symbols            Symbols        // compiled packages
	Types              types.Importer // their types
	Stdin              io.Reader
	Stdout, Stderr     io.Writer // of fmt, log, print and of reports about goroutines
	OSStdout, OSStderr *os.File  // what os.Stdout and os.Stderr are in cells; nil: the process's
}

// How long the steps of an interrupt wait for the cell to end (measured: a polled loop ends within a millisecond).
const (
	graceOfCell  = 50 * time.Millisecond  // flag of the running cell
	graceOfAll   = 250 * time.Millisecond // flags of all cells: loops of earlier functions
	graceOfYaegi = 500 * time.Millisecond // yaegi's own cancel: channels, recursion
)

// yaegi is the Engine on traefik/yaegi v0.16.1.
type yaegi struct {
	interp *interp.Interpreter
	rt     *runtimeCalls
	stderr *panicFilter
	cancel *canceller

	front
	aliases map[string]bool // packages that the interpreter has imported
	known   Symbols
	code    map[int]string // source of each cell, for tracebacks
}

// NewYaegi returns an engine with nothing declared but ctx, must, display and Display.
func NewYaegi(o Options) (Engine, error) {
	s, err := newScope(o.Types)
	if err != nil {
		return nil, err
	}
	y := &yaegi{front: front{scope: s}, stderr: &panicFilter{w: o.Stderr}, aliases: map[string]bool{}, known: o.Symbols, code: map[int]string{}}
	y.rt = newRuntime(o.Stderr)
	y.interp = interp.New(interp.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: y.stderr, Unrestricted: true})
	if y.cancel, err = newCanceller(y.interp); err != nil {
		return nil, err
	}
	if err := y.interp.Use(interp.Exports(o.Symbols)); err != nil {
		return nil, fmt.Errorf("cell: symbols: %w", err)
	}
	rt := y.rt.symbols()
	extra := interp.Exports{"skep/cell/rt/rt": rt, wrapPath + "/cell": wrappers(), ".": {"MapTypes": reflect.ValueOf(map[reflect.Value][]reflect.Type{rt["Result"]: renderTypes()})}}
	if o.OSStdout != nil && o.OSStderr != nil {
		extra["os/os"] = map[string]reflect.Value{
			"Stdout": reflect.ValueOf(&o.OSStdout).Elem(), "Stderr": reflect.ValueOf(&o.OSStderr).Elem(),
			"Exit": reflect.ValueOf(func(code int) { panic(fmt.Sprintf("os.Exit(%d)", code)) }),
		}
	}
	if err := y.interp.Use(extra); err != nil {
		return nil, fmt.Errorf("cell: symbols: %w", err)
	}
	_, err = y.interp.Eval(`import rt__ "skep/cell/rt"`)
	return y, err
}

// Run checks, lowers and runs a cell.
func (y *yaegi) Run(ctx context.Context, number int, code string) ([]any, error) {
	y.mu.Lock()
	y.code[number] = code
	c, p, err := y.compile(code, number)
	y.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r := y.rt.begin(ctx, number)
	if err := y.declare(p); err != nil {
		return nil, y.refused(err)
	}
	y.mu.Lock()
	y.scope.commit(c)
	y.mu.Unlock()
	return y.run(ctx, r, p.name, code)
}

// compile checks and lowers a cell, and remembers the names it was given.
func (y *yaegi) compile(code string, number int) (*checked, *program, error) {
	c, err := y.scope.check(code, number)
	if err != nil {
		return nil, nil, err
	}
	p, err := y.scope.lower(c)
	if err != nil {
		return nil, nil, err
	}
	for obj, name := range p.names {
		y.scope.names[obj] = name
	}
	for name, n := range p.news {
		y.scope.version[name] = n
	}
	return c, p, nil
}

// declare gives the interpreter a cell's imports and declarations.
func (y *yaegi) declare(p *program) error {
	for _, pkg := range p.imports {
		if !y.bound(pkg) {
			return fmt.Errorf("package %q is not bound to the notebook", pkg)
		}
		if y.aliases[pkg] {
			continue
		}
		if err := y.eval(fmt.Sprintf("import %s %q", packageAlias(pkg), pkg)); err != nil {
			return err
		}
		y.aliases[pkg] = true
	}
	for _, chunk := range p.chunks {
		if err := y.eval(chunk); err != nil {
			return err
		}
	}
	return nil
}

func (y *yaegi) bound(pkg string) bool {
	for key := range y.known {
		if path.Dir(key) == pkg {
			return true
		}
	}
	return false
}

// eval compiles one chunk. yaegi panics on some programs; that is its way to refuse them.
func (y *yaegi) eval(src string) (err error) {
	if v := guard(func() { _, err = y.interp.Eval(src) }); v != nil {
		return fmt.Errorf("%v", v)
	}
	return err
}

// refused is the error of a cell that is right Go but too much for the interpreter.
func (y *yaegi) refused(err error) error {
	msg := decodePositions(err.Error())
	return &Error{
		Name: "not supported", Value: msg, Cause: err,
		Traceback: []string{red("not supported by the interpreter: ") + msg, "The cell is valid Go; say it in another way. Nothing of it has run."},
	}
}

// run calls a cell's function and waits for its end, or for the steps of an interrupt.
func (y *yaegi) run(ctx context.Context, r *run, name, code string) ([]any, error) {
	y.stderr.start()
	y.cancel.prepare()
	evaluated := make(chan error, 1)
	go func() { evaluated <- y.eval(fmt.Sprintf("rt__.Run(%d, %s)", r.cell, name)) }()
	select {
	case err := <-evaluated:
		if err != nil {
			return nil, y.refused(err)
		}
	case <-ctx.Done():
		if !y.stop(r, evaluated) {
			return nil, interrupted("a compiled call of it is still running; its result will be dropped")
		}
	}
	return y.outcome(ctx, r, code)
}

// outcome turns what a cell ended with into its values or its error.
func (y *yaegi) outcome(ctx context.Context, r *run, code string) ([]any, error) {
	frames := y.stderr.frames()
	switch v := r.recovered.(type) {
	case nil:
		values := r.values
		r.values = nil // the run is kept for its flag, its results are not
		return values, nil
	case stopped:
		return nil, interrupted("")
	case failed:
		if ctx.Err() != nil && errors.Is(v.err, context.Canceled) {
			return nil, interrupted("")
		}
		return nil, errorFailure(v, y.source(v.cell))
	default:
		return nil, panicFailure(v, frames, token.Position{Filename: cellName(r.cell), Line: int(r.line.Load()), Column: 1}, code)
	}
}

func (y *yaegi) source(cell int) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.code[cell]
}

// stop ends a running cell step by step, from what harms nothing to what stops goroutines of earlier cells as well. It
// reports whether the cell has ended.
func (y *yaegi) stop(r *run, evaluated <-chan error) bool {
	atomic.StoreUint32(r.stop, 1)
	if waited(evaluated, graceOfCell) {
		return true
	}
	y.rt.stopAll(1, r)
	ended := waited(evaluated, graceOfAll)
	y.rt.stopAll(0, r)
	if ended {
		return true
	}
	restore := y.cancel.stop()
	ended = waited(evaluated, graceOfYaegi)
	restore()
	if ended && r.recovered == nil {
		r.recovered = stopped{}
	}
	return ended
}

func waited(done <-chan error, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func interrupted(detail string) error {
	msg := "the cell was interrupted"
	if detail != "" {
		msg += "; " + detail
	}
	return &Error{Name: "interrupted", Value: msg, Traceback: []string{red(msg)}, Cause: context.Canceled}
}

// shortNames writes packages as users do.
func shortNames(p *types.Package) string {
	if p.Path() == "main" {
		return ""
	}
	return p.Name()
}

// panicFilter takes the lines that yaegi writes for a panic out of standard error: they become the traceback.
type panicFilter struct {
	w io.Writer

	mu   sync.Mutex
	seen []token.Position
}

func (f *panicFilter) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = nil
}

func (f *panicFilter) frames() []token.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

func (f *panicFilter) Write(b []byte) (int, error) {
	m := frame.FindSubmatch(b)
	if m == nil {
		return f.w.Write(b)
	}
	if pos, ok := decodePosition(string(m[1]), string(m[2])); ok { // else: the cell's own function
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, pos)
	}
	return len(b), nil
}
