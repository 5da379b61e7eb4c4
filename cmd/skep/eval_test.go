package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// contract are the fields of DESIGN.md §10.
var contract = []string{"claim", "margins", "message", "numbers", "score", "seconds", "strict", "tier", "value", "verdict"}

const circles = "../../problems/circles_square_26/"

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEval(t *testing.T) {
	code, out, stderr := skep(t, "eval", "circles_square_26", circles+"initial.py", "--json", "--evaluators", "1", "--sandbox", "C")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	m := fields(t, out)
	if keys := slices.Sorted(maps.Keys(m)); !slices.Equal(keys, contract) {
		t.Errorf("fields %v, want %v", keys, contract)
	}
	numbers := m["numbers"].(map[string]any)
	if m["verdict"] != "ok" || m["value"] != 0.9597642169962064 || m["score"] != 0.3641176744353876 || m["tier"] != "C" || numbers["search_score"] != m["score"] {
		t.Errorf("%s", out)
	}
	code, out, _ = skep(t, "eval", "circles_square_26", write(t, "p.py", "import nothing_there"), "--json")
	if m := fields(t, out); code != 0 || m["verdict"] != "exception" || m["value"] != nil || !strings.Contains(m["message"].(string), "nothing_there") {
		t.Errorf("a candidate that fails is work done: exit code %d, %s", code, out)
	}
}

func TestEvalAll(t *testing.T) {
	code, out, stderr := skep(t, "eval", "all", "--json")
	var rows []map[string]any
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, stderr)
	}
	for _, r := range rows {
		if r["verdict"] != "ok" {
			t.Errorf("the initial program of %v: %v %v", r["problem"], r["verdict"], r["message"])
		}
	}
}

func TestVerify(t *testing.T) {
	code, out, stderr := skep(t, "verify", "circles_square_26", circles+"testdata/codeevolve.json", "--json")
	m := fields(t, out)
	if keys := slices.Sorted(maps.Keys(m)); code != 0 || !slices.Equal(keys, contract) {
		t.Errorf("exit code %d, fields %v %s", code, keys, stderr)
	}
	numbers := m["numbers"].(map[string]any)
	if m["verdict"] != "ok" || m["strict"] != false || m["value"] != 2.635983096637741 || m["tier"] != nil || numbers["strict_value"] != nil || numbers["table_s5_value"].(float64) >= 2.635983096637741 {
		t.Errorf("%s", out)
	}
	returns := `{"returns": [[` + strings.Repeat("[0.5, 0.5], ", 25) + `[0.5, 0.5]], [` + strings.Repeat("0, ", 25) + `0.5], 1e308]}`
	_, out, _ = skep(t, "verify", "circles_square_26", write(t, "r.json", returns), "--json")
	if m := fields(t, out); m["verdict"] != "infeasible" || m["claim"] != 1e308 || m["score"] != nil || !strings.Contains(m["message"].(string), "circles 0 and 25") {
		t.Errorf("%s", out)
	}
	if _, out, _ = skep(t, "verify", "circles_square_26", circles+"testdata/alphaevolve.json"); !strings.Contains(out, "score 1,") || !strings.Contains(out, "exactly feasible") {
		t.Errorf("for people: %s", out)
	}
}

// TestMistakes: every mistake is named, and stdout stays empty.
func TestMistakes(t *testing.T) {
	deep := write(t, "deep.json", strings.Repeat("[", 100_000))
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"eval", "circles", "x.py"}, "the problems are: circles_square_26"},
		{[]string{"eval", "circles_square_26"}, "eval needs a program"},
		{[]string{"eval", "circles_square_26", "none.py"}, "none.py"},
		{[]string{"eval", "circles_square_26", circles + "initial.py", "--sandbox", "off"}, "no sandbox tier"},
		{[]string{"eval", "circles_square_26", circles + "initial.py", "--python", "/none/python"}, "no Python at"},
		{[]string{"verify", "circles", "x.json"}, "the problems are: circles_square_26"},
		{[]string{"verify", "circles_square_26", "none.json"}, "none.json"},
		{[]string{"verify", "circles_square_26", circles + "initial.py"}, "read JSON"},
		{[]string{"verify", "circles_square_26", deep}, "nested deeper"},
		{[]string{"verify", "circles_square_26", write(t, "a.json", `{"data": {"x": []}}`)}, "circles_xyr"},
		{[]string{"verify", "circles_square_26", write(t, "b.json", `{"problem": "kissing_11", "data": {}}`)}, `"kissing_11"`},
		{[]string{"verify", "circles_square_26", write(t, "c.json", `{"returns": 3}`)}, `neither "returns"`},
		{[]string{"verify", "circles_square_26", write(t, "d.json", `{"returns": [], "returns": []}`)}, "stands twice"},
	}
	for _, test := range cases {
		code, out, stderr := skep(t, test.args...)
		if code == 0 || out != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q, want %q", test.args, code, out, stderr, test.want)
		}
	}
}

func TestDoctor(t *testing.T) {
	code, out, stderr := skep(t, "doctor", "--json")
	m := fields(t, out)
	if code != 0 || m["ok"] != true || m["sandbox"].(map[string]any)["tier"] != "C" {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	_, out, _ = skep(t, "doctor", "--json", "--python", "/none/python")
	if m := fields(t, out); m["ok"] != false || !strings.Contains(m["about"].(string), "no Python at") {
		t.Errorf("%s", out)
	}
	t.Setenv("SKEP_CACHE", t.TempDir())
	_, out, _ = skep(t, "doctor", "--json")
	if m := fields(t, out); !strings.Contains(m["about"].(string), "not made yet") {
		t.Errorf("with an empty cache: %s", out)
	}
}

func TestProblems(t *testing.T) {
	code, out, _ := skep(t, "problems", "--json")
	if code != 0 || !strings.Contains(out, `"reference": 2.6358627564136983`) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestInputsThatNeverEnd: a device or a pipe in the place of a file is refused at once.
func TestInputsThatNeverEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/dev/zero", pipe, t.TempDir()} {
		for _, verb := range []string{"verify", "eval"} {
			if code, _, stderr := skep(t, verb, "circles_square_26", path); code == 0 || !strings.Contains(stderr, "not a plain file") {
				t.Errorf("%s %s: code %d, %s", verb, path, code, stderr)
			}
		}
	}
}
