// Package vm runs Go programs in SSA form (golang.org/x/tools/go/ssa) inside a compiled program.
//
// Each function is translated once, when it is first prepared or called, to blocks of decoded instructions: Go closures
// over register numbers, with fast paths for integers, floats, booleans, strings and pointers, which stay unboxed. Types
// are real reflect types: a named type of the program has its name, its fields and its methods for compiled code too, so
// fmt, json, sort or errors.As see what they would see in a compiled program. Values need no conversion when they cross.
//
// Functions of compiled packages come as symbol tables in yaegi's format. A function without a body that no table has
// is refused ([Unsupported]) before anything of the caller runs, never guessed.
//
// The package deliberately knows no notebook, no cell, no source text and no package of this project: what is special
// about a caller comes through [Options].
package vm

import "fmt"

// Unsupported is why a program cannot run here, although it is right Go.
type Unsupported struct{ Reason string }

func (e *Unsupported) Error() string { return e.Reason }

// refuse ends a translation.
func refuse(format string, args ...any) { panic(&Unsupported{fmt.Sprintf(format, args...)}) }
