package focus

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTableS4(t *testing.T) {
	for name, list := range map[string][]string{"aspects": Aspects, "perspectives": Perspectives} {
		if len(list) != 14 {
			t.Errorf("%d %s, the paper has 14", len(list), name)
		}
		sorted := slices.Clone(list)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(list) {
			t.Errorf("%s repeat themselves", name)
		}
	}
	if Distinct() != 45 {
		t.Errorf("%d distinct prompts, the paper has 5 × 9", Distinct())
	}
}

// TestAssignIsBalanced checks the design against its definition, by counting.
func TestAssignIsBalanced(t *testing.T) {
	for n := range 100 {
		got := Assign(n, rand.New(rand.NewPCG(1, uint64(n))))
		pairs, phrasings, ways := map[Prompt]int{}, map[int]int{}, map[int]int{}
		for _, p := range got {
			pairs[p]++
			phrasings[p.Phrasing]++
			ways[p.Way]++
		}
		if want := min(n, Distinct()); len(pairs) != want {
			t.Fatalf("n=%d: %d distinct prompts, want %d", n, len(pairs), want)
		}
		spread(t, n, "phrasing", phrasings, len(Phrasings))
		spread(t, n, "way", ways, len(Ways))
	}
}

// spread fails when two of the levels are used a number of times that differs by more than one.
func spread(t *testing.T, n int, factor string, uses map[int]int, levels int) {
	t.Helper()
	for level := range levels {
		if u := uses[level]; u != n/levels && u != (n+levels-1)/levels {
			t.Errorf("n=%d: %s %d used %d times", n, factor, level, u)
		}
	}
}

func TestLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	uses := map[string]int{}
	for range 3 * len(Aspects) {
		uses[Least(Aspects, uses, r)]++
	}
	for _, a := range Aspects {
		if uses[a] != 3 {
			t.Errorf("%q used %d times, want 3", a, uses[a])
		}
	}
}

// TestFocusInsideASentence: any words can be a focus; its capital goes, letters beyond ASCII and names stay whole.
func TestFocusInsideASentence(t *testing.T) {
	for words, want := range map[string]string{"A physics-inspired method": "a physics-inspired method", "SLSQP only": "SLSQP only", "Éloge": "éloge", "x": "x", "100% new %s": "100% new %s", "Ü": "ü"} {
		if got := Phrase(words, 1); got != "# Note\nConsider the following: "+want+"." {
			t.Errorf("%q: %q", words, got)
		}
	}
}
