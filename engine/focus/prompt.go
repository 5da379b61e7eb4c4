package focus

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// System is the first turn of every prompt.
const System = "You are an expert in numerical optimization who improves Python programs step by step."

// Problem opens the user's turn that agents, summarizers and the tuning agent share.
func Problem(statement string) string {
	return "# Problem\n" + strings.TrimSpace(statement) + "\n\n"
}

// Program presents a program with its evaluation.
func Program(id int64, code, evaluation string) string {
	return fmt.Sprintf("# Program %d\n```python\n%s\n```\nResult of Program %d: %s\n\n", id, strings.TrimSpace(code), id, evaluation)
}

// Phrase is the shared beginning of the prompts of all agents with one phrasing of a focus.
func Phrase(focus string, phrasing int) string {
	return "# Note\n" + fmt.Sprintf(Phrasings[phrasing], inside(focus))
}

// inside is a focus as it stands inside a sentence: without a capital letter, unless the word is a name like SLSQP.
func inside(focus string) string {
	first, n := utf8.DecodeRuneInString(focus)
	if second, _ := utf8.DecodeRuneInString(focus[n:]); unicode.IsUpper(second) || unicode.IsDigit(second) {
		return focus
	}
	return string(unicode.ToLower(first)) + focus[n:]
}

// Think is the rest of an agent's prompt.
func Think(way int) string { return " " + Ways[way] + "\n" }

// Task is what a summarizer is told behind the concatenation of Eq. 6.
type Task struct {
	Kind    string // "refine", "hybridize", "explore" or "fresh"
	Focus   string
	Parents []int64 // ids of the programs in view, at least one
	Entry   string  // entry function
	Line    string  // the line of the first parent to rewrite; "": a complete program is wanted
}

// Instruction states the task.
func (t Task) Instruction() string {
	var b strings.Builder
	b.WriteString("# Task\n")
	first := t.Parents[0]
	switch {
	case t.Line != "":
		fmt.Fprintf(&b, "Improve Program %d by one change.", first)
	case t.Kind == "refine":
		fmt.Fprintf(&b, "Improve Program %d.", first)
	case t.Kind == "hybridize":
		fmt.Fprintf(&b, "Combine the best ideas of %s into one new program.", programs(t.Parents))
	case t.Kind == "explore":
		fmt.Fprintf(&b, "Write a program that goes another way than %s.", programs(t.Parents))
	default:
		fmt.Fprintf(&b, "Start afresh: write a program with another approach than Program %d.", first)
	}
	fmt.Fprintf(&b, " The direction: %s.\n", inside(t.Focus))
	if t.Line != "" {
		fmt.Fprintf(&b, "The line to change is\n```python\n%s\n```\nWrite the new line in a ```python block. It must not be the same as the old line, and it must give a better result.\n", t.Line)
		return b.String()
	}
	fmt.Fprintf(&b, "First say in one or two sentences what is new and why the result will be better. Then write, in one ```python block, the complete program "+
		"with its imports and the function %s(). It must differ from every program above and must run as it stands.\n", t.Entry)
	return b.String()
}

func programs(ids []int64) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = fmt.Sprintf("Program %d", id)
	}
	return strings.Join(names, " and ")
}

// Number is one numeric literal offered to the tuning agent.
type Number struct{ Text, Line string }

// Tune asks the tuning agent for one number. tried are earlier edits of the program with what came of them.
func Tune(id int64, numbers []Number, tried []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Task\nThese are the numbers of Program %d, each with its line:\n", id)
	for i, n := range numbers {
		fmt.Fprintf(&b, "%d: %s in `%s`\n", i+1, n.Text, n.Line)
	}
	if len(tried) > 0 {
		b.WriteString("Already tried:\n" + strings.Join(tried, "\n") + "\n")
	}
	b.WriteString("Give one of these numbers another value, so that the result gets better. " +
		"Answer only with the place of the number in this list, a colon, the old value, an arrow and the new value.\n")
	return b.String()
}
