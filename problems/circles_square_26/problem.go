// Package circles_square_26 is problem D.1 of arXiv 2611.08483: 26 disjoint circles in the unit square with the
// largest sum of radii. It deliberately knows nothing of how the numbers were made; see verify.go for the rules
// and picture.go for the drawing.
package circles_square_26

import (
	_ "embed"
	"fmt"

	"skep/problems/spec"
	"skep/problems/value"
)

//go:embed statement.md
var statement string

//go:embed initial.py
var initial string

const (
	count = 26

	// reference is the exact value of AlphaEvolve's published construction, 2.635862756413698146…, as a float64
	// (google-deepmind/alphaevolve_results, commit 4226acb, cell 118).
	reference = 2.6358627564136983
)

// Problem is the problem; its zero value is ready to use.
type Problem struct{}

func (Problem) Info() spec.Info {
	return spec.Info{
		Name:      "circles_square_26",
		Paper:     "D.1",
		Title:     "Circles in a square, n = 26",
		Sense:     spec.Maximize,
		Entry:     "run_packing",
		Tolerance: 1e-6,
		Reference: reference,
	}
}

func (Problem) Statement() string { return statement }

func (Problem) Initial() string { return initial }

// Load reads the layout of published files, {"circles_xyr": [[x, y, r], …]}. Such a file makes no claim.
func (Problem) Load(data value.Value) (value.Value, error) {
	d, _ := data.(value.Dict)
	rows, ok := d["circles_xyr"]
	if !ok {
		return nil, fmt.Errorf(`circles_square_26: the data has no "circles_xyr"`)
	}
	numbers, err := value.Reals("circles_xyr", rows, count, 3)
	if err != nil {
		return nil, fmt.Errorf("circles_square_26: %w", err)
	}
	var centers, radii value.List
	for i := 0; i < len(numbers); i += 3 {
		centers = append(centers, value.List{value.Float(numbers[i]), value.Float(numbers[i+1])})
		radii = append(radii, value.Float(numbers[i+2]))
	}
	return value.Tuple{centers, radii, value.Nil{}}, nil
}
