package engine

import (
	"math"
	"slices"
	"strings"
	"testing"

	"skep/engine/python"
	"skep/problems"
)

// shelf is an archive with programs of the given scores; NaN is a failed one. The first is the initial program.
func shelf(scores ...float64) archive {
	var a archive
	for i, s := range scores {
		p := &Program{ID: int64(i + 1), Kind: Refine, Round: 1, Score: s, Value: s, Outcome: problems.OK, problem: toy{}, Code: "x = 1\n"}
		if math.IsNaN(s) {
			p.Outcome = problems.Exception
		}
		a = append(a, p)
	}
	a[0].Kind, a[0].Round = Initial, 0
	return a
}

func ids(ps []*Program) []int64 {
	var list []int64
	for _, p := range ps {
		list = append(list, p.ID)
	}
	return list
}

func TestArchiveRanks(t *testing.T) {
	a := shelf(0.1, 0.5, math.NaN(), 0.5, 0.9)
	if got := ids(a.ranked()); !slices.Equal(got, []int64{5, 2, 4, 1}) {
		t.Errorf("ranked %v", got)
	}
	if a.find(3).ID != 3 || a.find(9) != nil {
		t.Error("find")
	}
}

// TestPoolTakesOneOfALineage: edits of edits of a program count as that program.
func TestPoolTakesOneOfALineage(t *testing.T) {
	a := shelf(0.1, 0.5, 0.6, 0.7, 0.4)
	a[2].Kind, a[2].Parents = Tuner, []int64{2}
	a[3].Kind, a[3].Parents = Tuner, []int64{3}
	if got := ids(a.pool(10)); !slices.Equal(got, []int64{4, 5, 1}) {
		t.Errorf("pool %v", got)
	}
	if got := ids(a.pool(2)); !slices.Equal(got, []int64{4, 5}) {
		t.Errorf("pool of two %v", got)
	}
}

// formed makes round n of a search with the paper's counts over an archive.
func formed(t *testing.T, a archive, history []refinement, n int) *Round {
	t.Helper()
	num := Numbers{Refine: 4, Hybridize: 3, Explore: 2, Fresh: 1, Agents: 45, Keep: 30, HybridizeParents: 5, ExploreParents: 4, NewTokens: 64}
	f := begin(t, t.TempDir(), Options{Numbers: num}, nil)
	r, err := f.form(t.Context(), "main", n, a, history)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFormAsInThePaper(t *testing.T) {
	scores := []float64{0.1}
	for i := range 20 {
		scores = append(scores, 0.2+float64(i)/100)
	}
	r := formed(t, shelf(scores...), nil, 3)
	var kinds []string
	for _, sw := range r.swarms {
		kinds = append(kinds, string(sw.kind))
	}
	if got := strings.Join(kinds, " "); got != "refine refine refine refine hybridize hybridize hybridize explore explore fresh" {
		t.Errorf("kinds %s", got)
	}
	aspects := map[int64][]string{}
	for i, sw := range r.swarms[:4] {
		p := sw.parents[0].ID
		if want := []int64{21, 20}[i%2]; p != want || len(sw.parents) != 1 {
			t.Errorf("refinement swarm %d takes %v, want %d", i, ids(sw.parents), want)
		}
		if slices.Contains(aspects[p], sw.focus) {
			t.Errorf("two refinement swarms of program %d take %q", p, sw.focus)
		}
		aspects[p] = append(aspects[p], sw.focus)
	}
	for _, sw := range r.swarms[4:7] {
		got := ids(sw.parents)
		if len(got) != 5 || slices.ContainsFunc(got, func(id int64) bool { return id < 12 }) {
			t.Errorf("hybridization draws %v, want five of the ten best", got)
		}
		perParent(t, sw, 9)
	}
	for _, sw := range r.swarms[7:9] {
		if len(sw.parents) != 4 {
			t.Errorf("exploration draws %v", ids(sw.parents))
		}
		perParent(t, sw, 9)
	}
	if fresh := r.swarms[9]; !slices.Equal(ids(fresh.parents), []int64{1}) {
		t.Errorf("fresh start from %v", ids(fresh.parents))
	}
}

// perParent checks that each parent (and, in exploration, none) has n agents with distinct prompts.
func perParent(t *testing.T, sw *Swarm, n int) {
	t.Helper()
	count := map[int64]int{}
	prompts := map[[3]int64]bool{}
	for _, a := range sw.agents {
		count[a.parent.id()]++
		prompts[[3]int64{a.parent.id(), int64(a.prompt.Phrasing), int64(a.prompt.Way)}] = true
	}
	for id, c := range count {
		if c != n {
			t.Errorf("swarm %d: %d agents read program %d, want %d", sw.index, c, id, n)
		}
	}
	if _, none := count[0]; none != (sw.kind == Explore) {
		t.Errorf("swarm %d (%s): agents without a parent: %v", sw.index, sw.kind, none)
	}
	if len(prompts) != len(sw.agents) {
		t.Errorf("swarm %d: %d distinct prompts of %d", sw.index, len(prompts), len(sw.agents))
	}
}

func TestRefinementLimit(t *testing.T) {
	a := shelf(0.1, 0.9, 0.8, 0.7)
	var history []refinement
	for range 20 {
		history = append(history, refinement{2, "x"})
	}
	r := formed(t, a, history, 9)
	for i, sw := range r.swarms[:4] {
		if want := []int64{3, 4}[i%2]; sw.parents[0].ID != want {
			t.Errorf("refinement swarm %d takes %d, want %d: program 2 had its 20 steps", i, sw.parents[0].ID, want)
		}
	}
}

func TestSmallArchive(t *testing.T) {
	r := formed(t, shelf(0.1), nil, 1)
	for _, sw := range r.swarms {
		if !slices.Equal(ids(sw.parents), []int64{1}) || len(sw.agents) != 45 {
			t.Errorf("swarm %d (%s): parents %v, %d agents", sw.index, sw.kind, ids(sw.parents), len(sw.agents))
		}
	}
}

func TestLagHidesRounds(t *testing.T) {
	b := &branch{archive: shelf(0.1, 0.2, 0.3)}
	b.archive[2].Round = 2
	for _, c := range []struct{ n, lag, want int }{{3, 0, 3}, {3, 1, 2}, {2, 0, 2}, {1, 0, 1}, {3, 5, 1}} {
		if got := len(b.before(c.n, c.lag)); got != c.want {
			t.Errorf("round %d with lag %d sees %d programs, want %d", c.n, c.lag, got, c.want)
		}
	}
}

func TestContextLimit(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Numbers: small}, nil)
	r := must[*Round](t)(f.Next(t.Context()))
	longest := 0
	for _, sw := range r.swarms {
		longest = max(longest, sw.longest)
	}
	f.model.Config.Context = longest + 300
	noError(t, r.fit())
	if r.newTokens != 300 {
		t.Errorf("%d new tokens in a room of 300", r.newTokens)
	}
	f.model.Config.Context = longest + 255
	if err := r.fit(); err == nil || !strings.Contains(err.Error(), "keep fewer agents") {
		t.Errorf("no room: %v", err)
	}
}

func TestReadEdit(t *testing.T) {
	best := &Program{ID: 4, Code: "a = 0.5\nb = 3\n"}
	for text, want := range map[string]string{
		"1: 0.25":                   "a = 0.25\nb = 3\n",
		"2: 7\nbecause":             "a = 0.5\nb = 7\n",
		"`1: -2`":                   "a = (-2)\nb = 3\n",
		"1: 0.5 -> 0.45":            "a = 0.45\nb = 3\n",
		"2: 3 -> 3.5":               "",
		"2: 3 ->":                   "",
		"3: 1":                      "",
		"no idea":                   "",
		"1: 0.50":                   "",
		"99999999999999999999: 1.0": "",
	} {
		e := propose(best, python.Literals(best.Code), []reply{{"", text}}, 1)[0]
		if e.Code != want || (e.Problem == "") != (want != "") {
			t.Errorf("%q: code %q, problem %q", text, e.Code, e.Problem)
		}
	}
}

func TestReadEditWithLead(t *testing.T) {
	best := &Program{ID: 4, Code: "a = 0.5\nb = 3\n"}
	literals := python.Literals(best.Code)
	for text, want := range map[string]string{" 0.45\n": "a = 0.45\nb = 3\n", " `0.7`": "a = 0.7\nb = 3\n", " 0.5": "", "": "", " up\n7": ""} {
		lead := "1: 0.5 ->"
		if e := readEdit(reply{lead, text}, best, literals); e.Code != want {
			t.Errorf("%q: code %q, problem %q", text, e.Code, e.Problem)
		}
		if ended := answered(lead)(text + " "); ended != (text != "" && text != " up\n7") {
			t.Errorf("%q: ended is %v", text, ended)
		}
	}
}

func TestAssignPolicy(t *testing.T) {
	give := func(pair [2]int, short int) Options {
		o := Options{Numbers: small}
		o.Assign = func(_ string, n, _ int) [][2]int { return slices.Repeat([][2]int{pair}, n-short) }
		return o
	}
	r := must[*Round](t)(begin(t, t.TempDir(), give([2]int{4, 8}, 0), nil).Next(t.Context()))
	for _, a := range r.swarms[2].agents {
		if a.Phrasing() != 4 || a.Way() != 8 {
			t.Errorf("agent %d has phrasing %d and way %d", a.index, a.Phrasing(), a.Way())
		}
	}
	for _, o := range []Options{give([2]int{5, 0}, 0), give([2]int{0, -1}, 0), give([2]int{0, 0}, 1)} {
		if _, err := begin(t, t.TempDir(), o, nil).Next(t.Context()); err == nil || !strings.Contains(err.Error(), "Assign policy") {
			t.Errorf("a policy of nonsense: %v", err)
		}
	}
}

// TestSwarmReadsAlone: reading one swarm ahead changes nothing of what it thinks.
func TestSwarmReadsAlone(t *testing.T) {
	whole := must[*Round](t)(begin(t, t.TempDir(), Options{Seed: 2, Numbers: small}, nil).Next(t.Context()))
	noError(t, whole.Reason(t.Context()))
	r := must[*Round](t)(begin(t, t.TempDir(), Options{Seed: 2, Numbers: small}, nil).Next(t.Context()))
	noError(t, r.swarms[1].Read(t.Context()))
	if r.swarms[1].Stage() != Formed {
		t.Errorf("reading moved the swarm to %s", r.swarms[1].Stage())
	}
	noError(t, r.Reason(t.Context()))
	want, _ := latent(whole)
	got, _ := latent(r)
	if !slices.EqualFunc(want, got, slices.Equal) {
		t.Error("reading one swarm ahead gives other hidden states")
	}
}
