// Package cell runs Go cells. [Engine] is its seam: check, run, complete, inspect, vars. The first engine is yaegi
// behind a front end of our own ([NewYaegi]): the cell is split into imports, declarations and statements, checked by
// go/types against what earlier cells left, and only a cell that passed reaches the interpreter, with a few small
// edits of its text that keep every position.
//
// The package deliberately knows no Jupyter message, no process and no sibling: outputs are writers, packages come as
// symbol tables and type data from the program.
//
// What yaegi cannot do is refused with its own message ("not supported"). What it does wrongly and this front end does not
// mend is left to the next engine behind the seam: type switches and errors.As on the interpreted types of a cell, their
// names and methods inside compiled code (fmt at depth, json), and unbounded recursion, which ends the session.
//
// Path of a cell: [split] → scope.check → lower → yaegi.
package cell

import (
	"context"
	"reflect"
)

// Engine compiles and runs the cells of one session. Run is called by one goroutine at a time; Check, Complete,
// Inspect and Vars may be called while Run runs.
type Engine interface {
	// Check reports what is wrong with a cell without running it; nil or an *Error.
	Check(code string) error
	// Run runs cell number (1, 2, …) and returns the values of its last expression, none if it has none. A failure is an
	// *Error. When ctx ends, the cell stops; the variable ctx of the cell is a child of it.
	Run(ctx context.Context, number int, code string) ([]any, error)
	// Complete lists what may stand at a byte offset of code.
	Complete(code string, cursor int) Completion
	// Inspect describes the name at a byte offset of code; false if there is none.
	Inspect(code string, cursor int) (Inspection, bool)
	// Vars lists the session's variables in the order of their declaration.
	Vars() []Var
}

// Completion is a list of candidates for code[Start:End] (byte offsets).
type Completion struct {
	Start, End int
	Items      []Item
}

// Item is one candidate.
type Item struct {
	Text      string
	Kind      string // "function", "method", "field", "variable", "constant", "type", "module", "keyword"
	Signature string // type or signature, may be empty
}

// Inspection describes a name.
type Inspection struct {
	Name, Declaration, Doc string
}

// Var is a variable of the session.
type Var struct {
	Name, Type string
}

// Symbols are compiled packages in yaegi's format: "import/path/name" → exported name → value, "_Name" being the
// wrapper struct of interface Name.
type Symbols = map[string]map[string]reflect.Value

// Error is why a cell failed.
type Error struct {
	Name      string   // "compile error", "panic", "error", "interrupted"
	Value     string   // one line or more, without position
	Traceback []string // what a front end shows: coloured lines with the cell's own positions
	Cause     error    // the Go error behind it, may be nil
}

func (e *Error) Error() string { return e.Name + ": " + e.Value }

// Unwrap returns the Go error behind e.
func (e *Error) Unwrap() error { return e.Cause }
