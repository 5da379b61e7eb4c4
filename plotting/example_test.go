package plotting_test

import (
	"fmt"
	"math"

	"skep/plotting"
)

// history is a search read from a table.
type history []plotting.Point

func (h history) Trace() []plotting.Point { return h }

// twoRounds is a short search: the initial program, two rounds of four swarms, each with two edits of the tuner.
func twoRounds() history {
	none := math.NaN()
	return history{
		{Program: 1, Seconds: 0.4, Source: "initial", Outcome: "ok", Score: 0.36412, Best: 0.36412},
		{Program: 2, Seconds: 70, Round: 1, Source: "refine", Outcome: "ok", Score: 0.52, Best: 0.52},
		{Program: 3, Seconds: 75, Round: 1, Source: "hybridize", Outcome: "exception", Score: none, Best: 0.52},
		{Program: 4, Seconds: 80, Round: 1, Source: "explore", Outcome: "ok", Score: 0.41, Best: 0.52},
		{Program: 5, Seconds: 86, Round: 1, Source: "fresh", Outcome: "timeout_cpu", Score: none, Best: 0.52},
		{Program: 6, Seconds: 95, Round: 1, Source: "tuner", Outcome: "ok", Score: 0.58, Best: 0.58},
		{Program: 7, Seconds: 97, Round: 1, Source: "tuner", Outcome: "ok", Score: 0.49, Best: 0.58},
		{Program: 8, Seconds: 160, Round: 2, Source: "refine", Outcome: "ok", Score: 0.61, Best: 0.61},
		{Program: 9, Seconds: 166, Round: 2, Source: "hybridize", Outcome: "ok", Score: 0.74, Best: 0.74},
		{Program: 10, Seconds: 171, Round: 2, Source: "explore", Outcome: "infeasible", Score: none, Best: 0.74},
		{Program: 11, Seconds: 178, Round: 2, Source: "fresh", Outcome: "ok", Score: 0.55, Best: 0.74},
		{Program: 12, Seconds: 186, Round: 2, Source: "tuner", Outcome: "ok", Score: 0.7402, Best: 0.7402},
		{Program: 13, Seconds: 188, Round: 2, Source: "tuner", Outcome: "ok", Score: 0.72, Best: 0.7402},
	}
}

// hexagonal is nine circles of one radius in three rows in the unit square, the last one too far right.
func hexagonal() plotting.Scene {
	scene := plotting.Scene{
		Title:    "Nine circles in a square",
		Caption:  "Sum of radii 1.5.",
		Polygons: []plotting.Polygon{{Points: [][2]float64{{0, 0}, {1, 0}, {1, 1}, {0, 1}}, Outline: true, Label: "unit square"}},
	}
	for i := range 9 {
		c := plotting.Circle{X: (float64(i%3) + 0.5) / 3, Y: (float64(i/3) + 0.5) / 3, R: 1.0 / 6, Label: fmt.Sprint(i)}
		if i == 8 {
			c.X, c.Bad = c.X+0.1, true
		}
		scene.Circles = append(scene.Circles, c)
	}
	return scene
}

// petals is three groups of agents in four dimensions, with every third agent dropped.
func petals() plotting.ClusterData {
	data := plotting.ClusterData{By: "parent"}
	for i := range 18 {
		g, angle := i%3, float64(i)
		x := []float64{math.Sin(angle), math.Cos(angle), 0.3 * math.Sin(3*angle), 0.1 * math.Cos(5*angle)}
		x[g] += 5
		data.Points = append(data.Points, plotting.ClusterPoint{
			X: x, Group: fmt.Sprintf("program %d", g+1), Label: fmt.Sprintf("agent %d", i+1), Kept: i/3%3 != 0,
		})
	}
	return data
}

func stageTimes() []plotting.StageTime {
	return []plotting.StageTime{
		{Round: 1, Stage: "Read", Seconds: 11.8}, {Round: 1, Stage: "Reason", Seconds: 14.1},
		{Round: 1, Stage: "Filter", Seconds: 0.004}, {Round: 1, Stage: "Write", Seconds: 66.3},
		{Round: 1, Stage: "Tune", Seconds: 9.6}, {Round: 1, Stage: "Evaluate", Seconds: 21.9},
		{Round: 2, Stage: "Read", Seconds: 3.1}, {Round: 2, Stage: "Write", Seconds: 48.7},
	}
}

// The picture is testdata/trajectory.png.
func ExampleTrajectory() {
	fmt.Println(plotting.Trajectory(twoRounds()))
	// Output:
	// Best score so far
	// Best score 0.7402, reached by program 12 (tuner, round 2). 10 of 13 programs have a score; ticks at the lower edge are the others.
}

// The picture is testdata/minutes.png.
func ExampleTrajectoryBy() {
	figure := plotting.TrajectoryBy(twoRounds(), plotting.TrajectoryOptions{Axis: "minutes"})
	fmt.Println(figure.Title)
	// Output: Best score so far
}

// The picture is testdata/shapes.png.
func ExampleShapes() {
	fmt.Println(plotting.Shapes(hexagonal()))
	// Output:
	// Nine circles in a square
	// Sum of radii 1.5. Red: violates a constraint.
}

// The picture is testdata/clusters.png.
func ExampleClusters() {
	fmt.Println(plotting.Clusters(petals()))
	// Output:
	// Mean hidden states
	// Mean hidden states (agents: 18) on their first two principal components, centred on the mean of the points shown (cross). Hollow marks were dropped by the novelty filter; large marks are the centres of the groups.
}

// The picture is testdata/stages.png.
func ExampleStageTimes() {
	fmt.Println(plotting.StageTimes(stageTimes()))
	// Output:
	// Time per stage
	// 176 s in 2 rounds; percentages are of this sum.
}
