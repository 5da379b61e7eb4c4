package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html"
	"strings"
)

// Assumption is one choice that the paper leaves open.
type Assumption struct {
	Question, Ours, Reason string
	Alternatives           string
}

// Assumptions is the list of them, hashed into the run.
type Assumptions []Assumption

// assumptions states each choice once. Change one only together with the code that it describes.
var assumptions = Assumptions{
	{"Order of an agent's context", "problem, parent with its evaluation, focus prompt", "agents of one parent share its keys and values; the paper's sentence names them in another order", "focus before the parent"},
	{"Order inside a focus prompt", "phrasing with the focus first, then the way of thinking", "agents with the same phrasing share its keys and values", "way first"},
	{"Phrasings and ways of thinking", "5 and 9 of our own beside the two examples each", "the paper does not list them", "any other"},
	{"Assignment of phrasing and way", "a walk through both lists at once in random order, anew for each parent", "balanced within each parent, all 45 pairs before one repeats", "independent draws; agent index modulo 5 and 9 (confounds phrasing with parent)"},
	{"Chat tags inside an agent's block", "none: problem, agents, parents and instruction stand in one user turn", "the concatenation of Eq. 6 stays one well-formed turn", "each block with its own turn"},
	{"h_0", "the hidden state of the last prompt token starts the latent steps and does not count in Eq. 4; h_1..h_m do", "Eq. 4 sums over latent reasoning steps", "count h_0"},
	{"Ridge weight ρ of Eq. 2", "1e-5, over the vocabulary without padding rows; with tied embeddings W_a is the identity up to ρ and is skipped", "LatentMAS's value and rule", "others"},
	{"Order of agents in the cache", "ascending index", "no order is named", "order of selection"},
	{"Parents in Eq. 6", "moved like the agents: every block is seen at its own place in the concatenation", "positions stay consistent", "parents keep the positions at which they were read"},
	{"A dropped agent", "leaves a hole: the others keep their positions", "the effect of removing it is not mixed with a shift of the rest", "compact; refill"},
	{"Ties in Eq. 5", "lowest index; an agent exactly on the mean is at distance 1 from all", "deterministic", "random"},
	{"Failed programs as parents", "never", "their evaluation says little and small models copy them", "drawn like the others in exploration"},
	{"A small archive", "a swarm takes the programs there are, also fewer than it wants", "the first rounds have one program", "wait, or repeat parents"},
	{"Refinement swarms and the best programs", "swarm i takes the (i mod 2)-th best, so one refinement swarm takes the best", "scales the paper's two swarms for each of two programs down", "alternate by round"},
	{"After refinement step 20 of a program", "the next best program takes its place; if none is left, the count is ignored", "the paper gives the limit only", "stop refining"},
	{"Least-used aspect", "counted per program over all refinement swarms, this round's included; ties drawn at random", "two swarms of one program get two aspects", "table order"},
	{"Hybridization pool", "the ten best, one per lineage of one-number edits", "edits of one program would fill the pool", "the plain ten best"},
	{"Whether Tune sees this round's scores", "no: it reads the archive as it was at Form", "it can run beside Write", "yes"},
	{"Small profiles", "a profile keeps every kind of swarm and every stage and lowers counts (form, tries and temperatures are stated on their own): swarms to one of each kind, hybridization and exploration to two programs, exploration keeps one equal share of agents without parent", "the form of a round stays testable", "drop kinds"},
	{"Form of a written reply", "form program (profile paper): a description and one complete program; a reply with only some functions is put into the first parent. Form line (profile cpu): one line of the first parent that holds numbers, drawn at random and begun up to one of them, written anew", "a half-billion-parameter model copies a program or breaks it (measured); one line it can change", "complete programs only; whole functions (measured: 8 of 12 copied)"},
	{"Copies", "of Tries texts the first counts that is no copy of a parent and, in the form line, closes its brackets; profile paper has one try", "rejection: the distribution of the model under the condition that it is not the parent", "keep copies; a penalty on the parent's tokens"},
	{"Temperatures of the profile cpu", "0.7, 0.8, 0.9, 0.9 for refinement, hybridization, exploration and fresh start", "at Table S3's 0.3 the small model writes the old line again", "Table S3"},
	{"The type of an edited number", "an integer stays an integer", "a fraction in the place of a count does not run", "any number"},
	{"Which number an edit changes", "form program: the tuning agent's choice. Form line: each edit is asked about another number, drawn at random", "left to itself the small model names few numbers again and again", "the agent's choice"},
	{"Context limit", "the longest view of a swarm is computed at Form; if prompt and NewTokens do not fit, NewTokens is cut to no less than 256, else the round is refused with the numbers", "nothing is cut silently", "drop parents or agents"},
	{"Thinking summarizers", "off", "a thought and a program do not fit in 4,096 tokens", "on"},
	{"Reproduction of a new best", "evaluated once more before it may become a parent; if the values differ the lower one ranks", "unseeded programs would rank by luck", "trust the first value"},
}

// Assumptions lists every choice the paper leaves open, ours, the reason and the alternatives.
func (s *Search) Assumptions() Assumptions { return assumptions }

// Hash identifies the list.
func (a Assumptions) Hash() string {
	sum := sha256.Sum256(a.json())
	return hex.EncodeToString(sum[:])
}

func (a Assumptions) json() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic("engine: assumptions do not encode: " + err.Error()) // strings only
	}
	return b
}

// SimpleRender shows the list as a table.
func (a Assumptions) SimpleRender() map[string]any {
	var text, rows strings.Builder
	for _, x := range a {
		text.WriteString(x.Question + ": " + x.Ours + " (" + x.Reason + "; else: " + x.Alternatives + ")\n")
		rows.WriteString("<tr>")
		for _, cell := range []string{x.Question, x.Ours, x.Reason, x.Alternatives} {
			rows.WriteString("<td style='text-align:left'>" + html.EscapeString(cell) + "</td>")
		}
		rows.WriteString("</tr>")
	}
	return map[string]any{
		"text/plain": strings.TrimSpace(text.String()),
		"text/html":  "<table><tr><th>left open</th><th>ours</th><th>reason</th><th>alternatives</th></tr>" + rows.String() + "</table>",
	}
}
