package engine

import (
	"fmt"
	"strings"
)

// edit is one line of a diff: ' ' kept, '-' taken out, '+' put in.
type edit struct {
	op   byte
	line string
}

// maxTable bounds the table of a diff, in cells; texts that differ in more are shown as replaced.
const maxTable = 4 << 20

// diffLines compares two texts line by line by their longest common subsequence. What they have in common at both ends is
// set aside first.
func diffLines(from, to string) []edit {
	a, b := strings.Split(strings.TrimSpace(from), "\n"), strings.Split(strings.TrimSpace(to), "\n")
	head, tail := 0, 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var edits []edit
	for _, line := range a[:head] {
		edits = append(edits, edit{' ', line})
	}
	edits = append(edits, diffMiddle(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, line := range a[len(a)-tail:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

func diffMiddle(a, b []string) []edit {
	common := func(i, j int) int { return 0 } // of a[i:] and b[j:]
	if len(a)*len(b) <= maxTable {
		table := commonLines(a, b)
		common = func(i, j int) int { return table[i][j] }
	}
	var edits []edit
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common(i+1, j) >= common(i, j+1)):
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}

// commonLines is the table of the lengths of the longest common subsequences of a[i:] and b[j:], [len(a)+1][len(b)+1].
func commonLines(a, b []string) [][]int {
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// Diff is the change from one text to another line by line: changed lines with "+ " or "- " before them and two lines
// of context around them; "" when nothing changed.
func Diff(from, to string) string { return diffText(diffLines(from, to)) }

func diffStat(edits []edit) (added, removed int) {
	for _, e := range edits {
		switch e.op {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

// diffText keeps the changed lines with two lines of context on each side.
func diffText(edits []edit) string {
	const context = 2
	near := make([]bool, len(edits))
	for i, e := range edits {
		if e.op != ' ' {
			for k := max(0, i-context); k <= min(len(edits)-1, i+context); k++ {
				near[k] = true
			}
		}
	}
	var b strings.Builder
	for i, e := range edits {
		if near[i] {
			fmt.Fprintf(&b, "%c %s\n", e.op, e.line)
		} else if i > 0 && near[i-1] {
			b.WriteString("  …\n")
		}
	}
	return b.String()
}
