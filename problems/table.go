package problems

import (
	"fmt"
	"strings"

	"skep/problems/circles_square_26"
)

// All returns the problems in the order of the paper's Appendix D.
func All() []Problem {
	return []Problem{circles_square_26.Problem{}}
}

// Get returns the problem of that name; the error of an unknown name lists the names there are.
func Get(name string) (Problem, error) {
	var names []string
	for _, p := range All() {
		if p.Info().Name == name {
			return p, nil
		}
		names = append(names, p.Info().Name)
	}
	return nil, fmt.Errorf("there is no problem %q; the problems are: %s", name, strings.Join(names, ", "))
}
