package kernel

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestExecuteOrder(t *testing.T) {
	m := serve(t)
	all := m.execute("import \"fmt\"\nfmt.Println(\"a\")\nDisplay(display.HTML(\"<b>x</b>\"))\nfmt.Println(\"b\")\n1+2")
	want := []string{"busy", "execute_input", "stream", "display_data", "stream", "execute_result", "execute_reply", "idle"}
	if got := kinds(all); !reflect.DeepEqual(got, want) {
		t.Fatalf("messages %v, want %v", got, want)
	}
	result := find(all, "execute_result")
	if data := result["data"].(map[string]any); data["text/plain"] != "3" || result["execution_count"] != 1.0 {
		t.Errorf("result %v", result)
	}
	reply := find(all, "execute_reply")
	if reply["status"] != "ok" || reply["execution_count"] != 1.0 || reply["payload"] == nil || reply["user_expressions"] == nil {
		t.Errorf("reply %v", reply)
	}
}

func TestErrorAbortsWhatWaits(t *testing.T) {
	m := serve(t)
	slow := m.request(Shell, "execute_request", map[string]any{"code": "import \"time\"\ntime.Sleep(300*time.Millisecond)\npanic(\"x\")"})
	waits := m.request(Shell, "execute_request", map[string]any{"code": "1"})
	info := m.request(Shell, "kernel_info_request", map[string]any{})
	all := m.untilIdle(slow)
	e, reply := find(all, "error"), find(all, "execute_reply")
	if e["ename"] != "panic" || e["evalue"] != "x" || reply["status"] != "error" || !reflect.DeepEqual(e["traceback"], reply["traceback"]) {
		t.Errorf("error %v, reply %v", e, reply)
	}
	if trace := fmt.Sprint(e["traceback"]); !strings.Contains(trace, "In[1]:3") {
		t.Errorf("traceback %q does not name line 3", trace)
	}
	all = m.untilIdle(waits)
	if got := kinds(all); !reflect.DeepEqual(got, []string{"busy", "execute_reply", "idle"}) || find(all, "execute_reply")["status"] != "aborted" {
		t.Errorf("the waiting cell got %v %v", got, find(all, "execute_reply"))
	}
	if reply := find(m.untilIdle(info), "kernel_info_reply"); reply["status"] != "ok" {
		t.Errorf("kernel_info behind a failed cell: %v", reply)
	}
	if reply := find(m.execute("2"), "execute_reply"); reply["status"] != "ok" || reply["execution_count"] != 2.0 {
		t.Errorf("a later cell: %v", reply)
	}
}

func TestSilentAndHistory(t *testing.T) {
	m := serve(t)
	id := m.request(Shell, "execute_request", map[string]any{"code": "import \"fmt\"\nfmt.Println(1)\n2", "silent": true})
	if got := kinds(m.untilIdle(id)); !reflect.DeepEqual(got, []string{"busy", "execute_reply", "idle"}) {
		t.Errorf("a silent request gives %v", got)
	}
	id = m.request(Shell, "execute_request", map[string]any{"code": "3", "store_history": false})
	all := m.untilIdle(id)
	if find(all, "execute_result") == nil || find(all, "execute_reply")["execution_count"] != 0.0 {
		t.Errorf("store_history false: %v %v", kinds(all), find(all, "execute_reply"))
	}
	m.execute("4")
	m.execute("x := 5")
	m.execute("4")
	for _, c := range []struct {
		request map[string]any
		want    string
	}{
		{map[string]any{"hist_access_type": "tail", "n": 2}, "[[1 2 x := 5] [1 3 4]]"},
		{map[string]any{"hist_access_type": "tail", "n": 1, "output": true}, "[[1 3 [4 <nil>]]]"},
		{map[string]any{"hist_access_type": "range", "session": 0, "start": 1, "stop": 2}, "[[1 1 4]]"},
		{map[string]any{"hist_access_type": "search", "pattern": "?", "n": 5}, "[[1 1 4] [1 3 4]]"},
		{map[string]any{"hist_access_type": "search", "pattern": "*", "unique": true}, "[[1 2 x := 5] [1 3 4]]"},
	} {
		reply := find(m.untilIdle(m.request(Shell, "history_request", c.request)), "history_reply")
		if got := fmt.Sprint(reply["history"]); got != c.want {
			t.Errorf("%v: %s, want %s", c.request, got, c.want)
		}
	}
}

func TestUserExpressions(t *testing.T) {
	m := serve(t)
	id := m.request(Shell, "execute_request", map[string]any{"code": "x := 6", "user_expressions": map[string]string{"a": "x * 7", "b": "nofn()"}})
	got := find(m.untilIdle(id), "execute_reply")["user_expressions"].(map[string]any)
	a, b := got["a"].(map[string]any), got["b"].(map[string]any)
	if a["status"] != "ok" || a["data"].(map[string]any)["text/plain"] != "42" || b["status"] != "error" {
		t.Errorf("user expressions %v", got)
	}
}

// TestControlBesideACell asks on control while a cell runs, interrupts it, and runs another.
func TestControlBesideACell(t *testing.T) {
	m := serve(t)
	m.execute("n := 1")
	loop := m.request(Shell, "execute_request", map[string]any{"code": "for { n++ }"})
	time.Sleep(200 * time.Millisecond)
	for _, c := range []struct{ request, reply, field string }{
		{"kernel_info_request", "kernel_info_reply", "implementation"}, {"debug_request", "debug_reply", "success"}, {"comm_info_request", "comm_info_reply", "comms"},
	} {
		if reply := find(m.untilIdle(m.request(Control, c.request, map[string]any{})), c.reply); reply[c.field] == nil {
			t.Errorf("%s beside a cell: %v", c.request, reply)
		}
	}
	began := time.Now()
	m.request(Control, "interrupt_request", map[string]any{})
	e := find(m.untilIdle(loop), "error")
	if e["ename"] != "interrupted" || time.Since(began) > 3*time.Second {
		t.Errorf("interrupted cell: %v after %v", e, time.Since(began))
	}
	if result := find(m.execute("n > 1"), "execute_result"); result["data"].(map[string]any)["text/plain"] != "true" {
		t.Errorf("after the interrupt: %v", result)
	}
}

// TestSessionDeath kills the session in several ways; each is told in the cell, and the next cell runs.
func TestSessionDeath(t *testing.T) {
	m := serve(t)
	for _, c := range []struct{ code, want string }{
		{"import (\"os\"; \"syscall\")\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)", "kill -9"},
		{"import \"syscall\"\nsyscall.Exit(3)", "exited with code 3"},
		{"func r(n int) int { return r(n+1) + 1 }\nr(0)", "stack overflow"},
	} {
		m.execute("x := 1")
		all := m.execute(c.code)
		e := find(all, "error")
		if e == nil || e["ename"] != "SessionDied" || !strings.Contains(e["evalue"].(string), c.want) || !strings.Contains(fmt.Sprint(e["traceback"]), "Variables and declarations are gone") {
			t.Errorf("%s: error %v, want SessionDied with %q", c.code, e, c.want)
		}
		if e := find(m.execute("x"), "error"); e == nil || !strings.Contains(e["evalue"].(string), "undefined: x") {
			t.Errorf("after %s, x gives %v, want undefined", c.code, e)
		}
		if result := find(m.execute("1+1"), "execute_result"); result == nil {
			t.Errorf("no result after %s", c.code)
		}
	}
}

func TestInput(t *testing.T) {
	m := serve(t)
	code := "import \"fmt\"\nvar s string\nfmt.Scan(&s)\ns"
	id := m.request(Shell, "execute_request", map[string]any{"code": code, "allow_stdin": true})
	var asked sent
	for asked.msg == nil || asked.msg.Header.MsgType != "input_request" {
		asked = m.next()
	}
	if asked.channel != Stdin || asked.parent() != id || string(asked.msg.Identities[0]) != "client" {
		t.Errorf("input_request %+v", asked)
	}
	m.request(Stdin, "input_reply", map[string]any{"value": "héllo"})
	if result := find(m.untilIdle(id), "execute_result"); result["data"].(map[string]any)["text/plain"] != "héllo" {
		t.Errorf("result %v", result)
	}
	id = m.request(Shell, "execute_request", map[string]any{"code": "import \"fmt\"\nmust(fmt.Scan(&s))", "allow_stdin": false})
	if e := find(m.untilIdle(id), "error"); e == nil || !strings.Contains(e["evalue"].(string), "input") {
		t.Errorf("without a front end that asks: %v", e)
	}
}

func TestComm(t *testing.T) {
	m := serve(t)
	all := m.untilIdle(m.request(Shell, "comm_open", map[string]any{"comm_id": "c1", "target_name": "unknown", "data": map[string]any{}}))
	if closed := find(all, "comm_close"); closed["comm_id"] != "c1" {
		t.Errorf("an unknown target gives %v", kinds(all))
	}
	if got := kinds(m.untilIdle(m.request(Shell, "no_such_request", map[string]any{}))); !reflect.DeepEqual(got, []string{"busy", "idle"}) {
		t.Errorf("an unknown request gives %v", got)
	}
}

// TestFlood prints much more than a page can show: it arrives in few pieces, is cut with a notice, and ends.
func TestFlood(t *testing.T) {
	m := serve(t)
	all := m.execute("import \"fmt\"\nfor i := 0; i < 300000; i++ { fmt.Println(\"line number\", i, \"of a very long output\") }")
	bytes, pieces, last := 0, 0, ""
	for _, s := range all {
		if s.msg.Header.MsgType == "stream" {
			last, _ = s.content()["text"].(string)
			bytes, pieces = bytes+len(last), pieces+1
		}
	}
	if bytes < streamLimit || bytes > streamLimit+1000 || pieces > 1000 || !strings.Contains(last, "output cut") {
		t.Errorf("%d bytes in %d pieces, the last ends in %q", bytes, pieces, last[max(0, len(last)-100):])
	}
}

func TestDisplayUpdate(t *testing.T) {
	m := serve(t)
	all := m.execute("id := must(display.Show(display.HTML(\"one\")))\nid.Update(display.HTML(\"two\"))\ndisplay.Clear(true)")
	shown, updated, cleared := find(all, "display_data"), find(all, "update_display_data"), find(all, "clear_output")
	id := shown["transient"].(map[string]any)["display_id"]
	if id == nil || updated["transient"].(map[string]any)["display_id"] != id || updated["data"].(map[string]any)["text/html"] != "two" || cleared["wait"] != true {
		t.Errorf("shown %v, updated %v, cleared %v", shown, updated, cleared)
	}
}

func TestCompleteInspectIsComplete(t *testing.T) {
	m := serve(t)
	m.execute("import \"strings\"\nvar b strings.Builder")
	ask := func(msgType string, content map[string]any) map[string]any {
		return find(m.untilIdle(m.request(Shell, msgType, content)), strings.TrimSuffix(msgType, "_request")+"_reply")
	}
	c := ask("complete_request", map[string]any{"code": "é := strings.ToUpp", "cursor_pos": 18})
	if fmt.Sprint(c["matches"]) != "[ToUpper ToUpperSpecial]" || c["cursor_start"] != 13.0 || c["cursor_end"] != 18.0 {
		t.Errorf("members of a package: %v", c)
	}
	c = ask("complete_request", map[string]any{"code": "b.WriteS", "cursor_pos": 8})
	if fmt.Sprint(c["matches"]) != "[WriteString]" {
		t.Errorf("members of a variable: %v", c)
	}
	c = ask("complete_request", map[string]any{"code": "zzz", "cursor_pos": 3})
	if c["status"] != "ok" || fmt.Sprint(c["matches"]) != "[]" {
		t.Errorf("no match: %v", c)
	}
	i := ask("inspect_request", map[string]any{"code": "strings.ToUpper", "cursor_pos": 15, "detail_level": 0})
	if i["found"] != true || !strings.Contains(i["data"].(map[string]any)["text/plain"].(string), "func strings.ToUpper(s string) string") {
		t.Errorf("inspect: %v", i)
	}
	if i := ask("inspect_request", map[string]any{"code": "nofn", "cursor_pos": 2}); i["found"] != false {
		t.Errorf("inspect of nothing: %v", i)
	}
	for code, want := range map[string]string{
		"1": "complete", "x := 1\nx": "complete", "func f() {": "incomplete", "x := []int{1,": "incomplete", "x := )": "invalid", "`raw": "incomplete",
		"/* c": "incomplete", "": "complete", "for i := 0; i < 3; i++ {\n}": "complete", "if x == 1 {\n\ty()": "incomplete", "a b": "invalid", "}": "invalid",
	} {
		if r := ask("is_complete_request", map[string]any{"code": code}); r["status"] != want {
			t.Errorf("is_complete %q: %v, want %s", code, r, want)
		}
	}
}

func TestShutdownReply(t *testing.T) {
	m := serve(t)
	loop := m.request(Shell, "execute_request", map[string]any{"code": "for {}"})
	time.Sleep(200 * time.Millisecond)
	id := m.request(Control, "shutdown_request", map[string]any{"restart": true})
	var replies []Channel
	for len(replies) < 2 {
		if s := m.next(); s.msg.Header.MsgType == "shutdown_reply" && s.parent() == id && s.content()["restart"] == true {
			replies = append(replies, s.channel)
		}
	}
	if !reflect.DeepEqual(replies, []Channel{Control, IOPub}) {
		t.Errorf("shutdown_reply on %v, want control, iopub; cell %s", replies, loop)
	}
}
