// Package session is the process that runs a notebook's cells and holds its variables, and the kernel's handle on it.
//
// [Start] launches a child ("skep session") and returns a [Process]; [Serve] is what runs in that child: one
// cell.Engine, standard output and error captured in order, values turned into MIME bundles. The two talk in framed
// packets over a pair of pipes. When the child dies (os.Exit in compiled code, a fatal error of the Go run time, kill
// -9, no memory) the Process says so to whoever waits, with what the child's last words were.
//
// The package deliberately knows no Jupyter wire format and no sibling of kernel: what the program's own packages add
// comes as a [Binding].
package session

import (
	"context"
	"encoding/json"
	"go/types"

	"skep/kernel/cell"
	"skep/kernel/display"
)

// Binding is what the program adds to a session beyond the language.
type Binding struct {
	Symbols cell.Symbols   // compiled packages that cells may import
	Types   types.Importer // their types

	// Engine makes the cell engine. Nil: cell.NewYaegi.
	Engine func(cell.Options) (cell.Engine, error)

	// Context prepares the context of one cell, so that long work in it can report progress on a display; done is
	// called when the cell has ended. Nil: the context is used as it is.
	Context func(ctx context.Context) (cellCtx context.Context, done func())

	// Render shows values that have no render method of their own, such as another library's plot. Nil: none.
	Render func(v any) (display.Data, bool)
}

// Request asks for one cell to be run.
type Request struct {
	Code            string            `json:"code"`
	Number          int               `json:"number"` // the execution count that the cell gets
	AllowStdin      bool              `json:"allow_stdin"`
	UserExpressions map[string]string `json:"user_expressions,omitempty"` // evaluated after success
}

// Reply is how a cell ended. Error is nil after success.
type Reply struct {
	Error           *Failure                   `json:"error,omitempty"`
	UserExpressions map[string]json.RawMessage `json:"user_expressions,omitempty"`
}

// Failure is a failed cell as front ends show it.
type Failure struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// Output is something for the page: a Jupyter iopub message type ("stream", "display_data", "update_display_data",
// "execute_result", "clear_output") with its content.
type Output struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// Completion and Inspection are the engine's answers, with byte offsets.
type (
	Completion = cell.Completion
	Inspection struct {
		cell.Inspection
		Found bool
	}
)

type codeBody struct {
	Code   string `json:"code"`
	Cursor int    `json:"cursor"` // byte offset
}

type inputBody struct {
	Value string `json:"value"`
	Error string `json:"error,omitempty"` // why no line can be had
}

type askBody struct {
	Prompt   string `json:"prompt"`
	Password bool   `json:"password"`
}

type streamBody struct {
	Name string `json:"name"`
	Text string `json:"text"`
}
