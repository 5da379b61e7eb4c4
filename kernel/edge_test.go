package kernel

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestRunAllAborts sends cells as fast as "run all" does: those behind the failed one are aborted though it fails at once.
func TestRunAllAborts(t *testing.T) {
	m := serve(t)
	first := m.request(Shell, "execute_request", map[string]any{"code": "panic(1)"})
	var rest []string
	for range 5 {
		rest = append(rest, m.request(Shell, "execute_request", map[string]any{"code": "1"}))
	}
	m.untilIdle(first)
	for i, id := range rest {
		if reply := find(m.untilIdle(id), "execute_reply"); reply["status"] != "aborted" {
			t.Errorf("cell %d: %v", i, reply)
		}
	}
}

// TestInterruptAtTheStart interrupts as soon as the client can know that the cell runs.
func TestInterruptAtTheStart(t *testing.T) {
	m := serve(t)
	for range 20 {
		id := m.request(Shell, "execute_request", map[string]any{"code": "for {}"})
		for s := m.next(); s.parent() != id; s = m.next() {
		}
		m.request(Control, "interrupt_request", map[string]any{})
		if e := find(m.untilIdle(id), "error"); e["ename"] != "interrupted" {
			t.Fatalf("error %v", e)
		}
	}
}

// TestOrderOfFiles prints to both files: the text comes in the order of the calls.
func TestOrderOfFiles(t *testing.T) {
	m := serve(t)
	var got []string
	for _, s := range m.execute("import (\"fmt\"; \"os\")\nfmt.Fprintln(os.Stderr, 1)\nfmt.Fprintln(os.Stdout, 2)\nfmt.Fprintln(os.Stderr, 3)\nfmt.Println(4)") {
		if s.msg.Header.MsgType == "stream" {
			got = append(got, fmt.Sprint(s.content()["name"], s.content()["text"]))
		}
	}
	if want := []string{"stderr1\n", "stdout2\n", "stderr3\n", "stdout4\n"}; !reflect.DeepEqual(got, want) {
		t.Errorf("streams %q, want %q", got, want)
	}
}

// TestHalfACharacter ends a cell inside a character: it shows there, not in the next cell.
func TestHalfACharacter(t *testing.T) {
	m := serve(t)
	if s := find(m.execute("import \"fmt\"\nfmt.Print(\"\\xe2\")"), "stream"); s["text"] != "\uFFFD" {
		t.Errorf("half a character: %v", s)
	}
	if s := find(m.execute("fmt.Print(\"x\")"), "stream"); s["text"] != "x" {
		t.Errorf("the next cell: %v", s)
	}
}

// TestNoCell sends contents that are no cell: the reply still counts.
func TestNoCell(t *testing.T) {
	m := serve(t)
	reply := find(m.untilIdle(m.request(Shell, "execute_request", map[string]any{"code": 5})), "execute_reply")
	if reply["status"] != "error" || reply["execution_count"] != 0.0 {
		t.Errorf("reply %v", reply)
	}
}

// TestClosedPipe closes the descriptor that a session answers on: it is replaced.
func TestClosedPipe(t *testing.T) {
	m := serve(t)
	if e := find(m.execute("import \"syscall\"\nsyscall.Close(4)"), "error"); e["ename"] != "SessionDied" {
		t.Errorf("error %v", e)
	}
	if r := find(m.execute("1"), "execute_result"); r == nil {
		t.Error("no result afterwards")
	}
}

// TestLateOutput starts a goroutine that prints during a later cell: the text belongs to the first.
func TestLateOutput(t *testing.T) {
	m := serve(t)
	first := m.request(Shell, "execute_request", map[string]any{"code": "import (\"fmt\"; \"time\")\nsaid := make(chan bool)\ngo func() { <-said; fmt.Println(\"late\"); said <- true }()"})
	m.untilIdle(first)
	second := m.request(Shell, "execute_request", map[string]any{"code": "said <- true\n<-said\ntime.Sleep(time.Millisecond)"})
	for {
		s := m.next()
		if s.msg.Header.MsgType == "stream" && strings.Contains(fmt.Sprint(s.content()["text"]), "late") {
			if s.parent() != first {
				t.Error("the text belongs to the second cell")
			}
			return
		}
		if s.parent() == second && s.content()["execution_state"] == "idle" {
			t.Fatal("the text did not come")
		}
	}
}
