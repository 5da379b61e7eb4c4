// Package focus holds what makes one agent's prompt differ from another's: the focuses of the swarms (Table S4,
// arXiv 2611.08483), five phrasings of a focus, nine ways of thinking, and the balanced assignment of phrasings
// and ways to agents. It deliberately knows no archive, token or model: it deals in words and indices.
package focus

import "math/rand/v2"

// Aspects are the focuses of refinement and hybridization (Table S4).
var Aspects = []string{
	"The starting point of the solution",
	"The optimization or solution algorithm",
	"Global exploration, restarts, and annealing",
	"Symmetries and structure of good solutions",
	"Feasibility, tolerances, and a final repair step",
	"The use of the time limit",
	"The largest source of the remaining error",
	"A smoother surrogate or a penalty formulation",
	"The weakest part of the current solution",
	"What the best programs in the field do differently",
	"Bugs, wasted computation, and silent failures",
	"Simpler and more robust methods",
	"The numbers in the program",
	"The formulation and its free variables",
}

// Perspectives are the focuses of exploration and fresh starts (Table S4).
var Perspectives = []string{
	"The standard textbook method",
	"A fundamentally different algorithm",
	"A known construction from the literature",
	"A physics-inspired method",
	"A parametrization that satisfies the constraints",
	"Many cheap starts of one fast local optimizer",
	"A symmetry that forces structure",
	"A coarse-to-fine or incremental construction",
	"A greedy construction with local improvement",
	"Linear or convex programming for convex parts",
	"An exact or analytical treatment",
	"Sparsity, separability, or low rank",
	"A higher-order or adaptive method",
	"An idea that nobody would try first",
}

// Phrasings put a focus into a sentence. The paper gives two as examples ("Pay particular attention to" an aspect,
// "Consider" a perspective); the others are ours.
var Phrasings = []string{
	"Pay particular attention to this: %s.",
	"Consider the following: %s.",
	"The most promising direction now is this one: %s.",
	"Look at the program only from this side: %s.",
	"Find one concrete change that has to do with this: %s.",
}

// Ways are the ways of thinking. The paper names two ("Reason from first principles", "Question one assumption the
// program makes"); the others are ours.
var Ways = []string{
	"Reason from first principles.",
	"Question one assumption the program makes.",
	"Work backwards from what a perfect solution would look like.",
	"Imagine the smallest case first, then generalize.",
	"Compare two different options before you choose.",
	"Think of an analogy from another field.",
	"Name what limits the result now and remove it.",
	"Be bold: prefer a large change over a small one.",
	"Be careful: prefer a change that surely works.",
}

// Prompt is the index pair of one agent's prompt.
type Prompt struct {
	Phrasing int // index into Phrasings
	Way      int // index into Ways
}

// Distinct is the number of different prompts that one focus and one parent can give.
func Distinct() int { return len(Phrasings) * len(Ways) }

// Assign gives n agents of one parent their phrasings and ways. Walking both lists at once in a random order visits all
// 45 pairs before one repeats, since 5 and 9 share no factor, and every stretch of the walk uses each phrasing
// and each way equally often up to one: the two factors and the parent are not confounded.
func Assign(n int, r *rand.Rand) []Prompt {
	phrasings, ways := r.Perm(len(Phrasings)), r.Perm(len(Ways))
	prompts := make([]Prompt, n)
	for i := range prompts {
		prompts[i] = Prompt{phrasings[i%len(phrasings)], ways[i%len(ways)]}
	}
	return prompts
}

// Least returns the focus of list that uses counts least, drawn at random among the least used.
func Least(list []string, uses map[string]int, r *rand.Rand) string {
	var least []string
	for _, f := range list {
		switch {
		case len(least) == 0 || uses[f] < uses[least[0]]:
			least = []string{f}
		case uses[f] == uses[least[0]]:
			least = append(least, f)
		}
	}
	return least[r.IntN(len(least))]
}

// Any draws a focus of list at random.
func Any(list []string, r *rand.Rand) string { return list[r.IntN(len(list))] }
