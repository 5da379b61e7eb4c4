package circles_square_26

import (
	"math/big"
	"strconv"
	"strings"

	"skep/plotting"
	"skep/problems/value"
)

// Picture draws the square and the circles with their indices (Figure S3); circles that violate a constraint at
// tolerance 0 are red.
func (q Problem) Picture(returned value.Value) *plotting.Figure {
	scene := plotting.Scene{
		Title:    q.Info().Title,
		Caption:  sentence(q.Verify(returned).Message),
		Polygons: []plotting.Polygon{{Points: [][2]float64{{0, 0}, {1, 0}, {1, 1}, {0, 1}}, Outline: true}},
	}
	circles, _, err := parse(returned)
	if err != nil {
		scene.Caption = "Nothing to draw: " + err.Error() + "."
	}
	bad := violators(circles)
	for i, c := range circles {
		scene.Circles = append(scene.Circles, plotting.Circle{X: c.x, Y: c.y, R: c.r, Label: strconv.Itoa(i), Bad: bad[i]})
	}
	return plotting.Shapes(scene)
}

// sentence starts with a capital letter and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// violators returns the circles that take part in a constraint violated at tolerance 0, non-finite ones included.
func violators(circles []circle) map[int]bool {
	bad := map[int]bool{}
	var good []circle
	var index []int
	for i, c := range circles {
		if finite([]circle{c}) != nil {
			bad[i] = true
			continue
		}
		good, index = append(good, c), append(index, i)
	}
	p, zero := exactly(good), new(big.Rat)
	for i := range good {
		for _, side := range sides {
			if p.r[i].Sign() < 0 || side.slack(p, i).Sign() < 0 {
				bad[index[i]] = true
			}
		}
		for j := i + 1; j < len(good); j++ {
			if !p.apart(i, j, zero) {
				bad[index[i]], bad[index[j]] = true, true
			}
		}
	}
	return bad
}
