// Package plotting draws skep's figures on gonum/plot. It takes plain numbers and small interfaces, imports no
// sibling, and deliberately knows no engine, problem or notebook: a Figure shows itself through SimpleRender.
package plotting

import "gonum.org/v1/plot/vg"

// Figure is a finished drawing. It is immutable and safe for concurrent use.
type Figure struct {
	Title, Caption string
	Width, Height  vg.Length
}
