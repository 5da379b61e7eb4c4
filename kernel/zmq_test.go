package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/kernel/client"
	"skep/kernel/wire"
)

// startKernel starts a real kernel process and returns a client on its sockets, and what comes on iopub.
func startKernel(t *testing.T) (*client.Kernel, *published) {
	t.Helper()
	p := &published{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	k, err := client.Start(ctx, kernelCommand(t), client.Options{IOPub: p.add, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k, p
}

func kernelCommand(t *testing.T) []string {
	return []string{"/usr/bin/env", kernelEnv + "={connection_file}", childCommand(t)[2]}
}

// published collects iopub messages.
type published struct {
	mu   sync.Mutex
	msgs []*wire.Message
}

func (p *published) add(m *wire.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.msgs = append(p.msgs, m)
}

// text joins all stream text.
func (p *published) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, m := range p.msgs {
		var s struct{ Text string }
		if m.Header.MsgType == "stream" && json.Unmarshal(m.Content, &s) == nil {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

func TestKernelOverZeroMQ(t *testing.T) {
	k, p := startKernel(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := func(code string) client.Reply {
		t.Helper()
		r, err := k.Execute(ctx, code, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run("import \"fmt\"\nfmt.Println(\"hello\")"); r.Status != "ok" || p.text() != "hello\n" {
		t.Errorf("reply %+v, text %q", r, p.text())
	}
	if r := run("nofn()"); r.Status != "error" || r.EName != "compile error" {
		t.Errorf("reply %+v", r)
	}
	short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
	defer stop()
	if _, err := k.Execute(short, "for {}", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cell that is stopped: %v", err)
	}
	if r := run("fmt.Println(\"still here\")"); r.Status != "ok" {
		t.Errorf("after the interrupt: %+v", r)
	}
	session := ""
	p.mu.Lock()
	for _, m := range p.msgs {
		if session != "" && m.Header.Session != session {
			t.Errorf("session %q, then %q: a kernel has one", session, m.Header.Session)
		}
		session = m.Header.Session
	}
	p.mu.Unlock()
	if err := k.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestOutputBeforeTheEnd prints and shuts down at once: the last lines must arrive.
func TestOutputBeforeTheEnd(t *testing.T) {
	k, p := startKernel(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := k.Execute(ctx, "import \"fmt\"\nfor i := range 2000 { fmt.Println(i) }", nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(p.text(), "\n"); got != 2000 {
		t.Errorf("%d of 2000 lines arrived", got)
	}
}

func TestRunNotebook(t *testing.T) {
	const source = `{"nbformat": 4, "nbformat_minor": 5, "metadata": {"custom": {"kept": 1.50}}, "cells": [
		{"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# text\n", "more"]},
		{"cell_type": "code", "id": "a", "metadata": {}, "execution_count": 9, "outputs": [{"output_type": "stream", "name": "stdout", "text": "old"}], "source": ["import \"fmt\"\n", "fmt.Println(\"one\")\n", "fmt.Println(\"two\")"]},
		{"cell_type": "code", "id": "b", "metadata": {}, "execution_count": null, "outputs": [], "source": "id := must(display.Show(display.HTML(\"<b>1</b>\")))\nid.Update(display.HTML(\"<b>2</b>\"))\n6 * 7"},
		{"cell_type": "code", "id": "c", "metadata": {}, "execution_count": null, "outputs": [], "source": "panic(\"stop\")"},
		{"cell_type": "code", "id": "d", "metadata": {}, "execution_count": 3, "outputs": [], "source": "1"}]}`
	nb, err := client.ParseNotebook([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	err = client.RunNotebook(context.Background(), nb, client.RunOptions{
		Argv:    kernelCommand(t),
		Started: func(i int, _ *client.Cell) { events = append(events, fmt.Sprint("start ", i)) },
		Output:  func(i int, m *wire.Message) { events = append(events, fmt.Sprint(m.Header.MsgType, " ", i)) },
		Ended: func(i int, _ time.Duration, err error) {
			events = append(events, fmt.Sprint("end ", i, " ", err != nil))
		},
	})
	var failed *client.CellError
	if !errors.As(err, &failed) || failed.Index != 2 || failed.Value != "stop" || !strings.Contains(failed.Print(), `panic("stop")`) {
		t.Fatalf("error %v, want the third cell's", err)
	}
	want := "[start 0 stream 0 end 0 false start 1 display_data 1 update_display_data 1 execute_result 1 end 1 false start 2 error 2 end 2 true]"
	if got := fmt.Sprint(events); got != want {
		t.Errorf("events %s\nwant   %s", got, want)
	}
	b, err := nb.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cells []struct {
			Count   *int `json:"execution_count"`
			Outputs []map[string]any
		}
		Metadata json.RawMessage
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	outputs := fmt.Sprint(got.Cells[1].Outputs, got.Cells[2].Outputs)
	for _, part := range []string{"text:[one\n two\n]", "text/html:[<b>2</b>]", "text/plain:[42]"} {
		if !strings.Contains(outputs, part) {
			t.Errorf("outputs %s lack %s", outputs, part)
		}
	}
	if got.Cells[4].Count != nil || *got.Cells[2].Count != 2 || !strings.Contains(string(got.Metadata), "1.50") {
		t.Errorf("counts or unknown metadata are wrong:\n%s", b)
	}
}

// TestStrangers sends a kernel what does not concern it: it answers the right request behind all that.
func TestStrangers(t *testing.T) {
	c, err := wire.NewConnection()
	if err != nil {
		t.Fatal(err)
	}
	front, err := Bind(c, "s", log.New(io.Discard, "", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close(0)
	d, err := wire.Dial(context.Background(), wire.Dealer, c.Endpoint(c.ShellPort), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	signer, stranger := wire.NewSigner(c.Key), wire.NewSigner("another key")
	good, err := signer.Encode(&wire.Message{Header: wire.NewHeader("kernel_info_request", "me")})
	if err != nil {
		t.Fatal(err)
	}
	forged, err := stranger.Encode(&wire.Message{Header: wire.NewHeader("shutdown_request", "me")})
	if err != nil {
		t.Fatal(err)
	}
	last, err := signer.Encode(&wire.Message{Header: wire.NewHeader("last", "me")})
	if err != nil {
		t.Fatal(err)
	}
	for _, frames := range [][][]byte{{[]byte("noise")}, forged, good, good, last} {
		if err := d.Send(frames); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		m, err := front.Recv(ctx, Shell)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m.Header.MsgType)
	}
	if fmt.Sprint(got) != "[kernel_info_request last]" {
		t.Errorf("passed %v, want the good request once and the last", got)
	}
}

func TestHistoryFile(t *testing.T) {
	path := t.TempDir() + "/deep/history.jsonl"
	for session := 1; session <= 3; session++ {
		h, err := openHistory(path)
		if err != nil {
			t.Fatal(err)
		}
		if h.session != session {
			t.Errorf("session %d, want %d", h.session, session)
		}
		h.add(1, fmt.Sprintf("cell of session %d", session))
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
		if session == 2 { // a half-written last line, as after a crash
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.WriteString(`{"session":9,"inp` + "\n")
			_ = f.Close()
		}
	}
	h, err := openHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	previous, err := h.find(historyRequest{AccessType: "range", Session: -1})
	if err != nil || len(previous) != 1 || previous[0].Input != "cell of session 3" {
		t.Errorf("the session before: %v, %v", previous, err)
	}
	if _, err := h.find(historyRequest{AccessType: "nonsense"}); err == nil {
		t.Error("an unknown access type is accepted")
	}
}

func TestInstallSpec(t *testing.T) {
	dir, err := InstallSpec(t.TempDir(), "/opt/skep")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "/kernel.json")
	if err != nil {
		t.Fatal(err)
	}
	var s spec
	if err := json.Unmarshal(b, &s); err != nil || fmt.Sprint(s.Argv) != "[/opt/skep kernel -f {connection_file}]" || s.InterruptMode != "message" || s.Language != "go" {
		t.Errorf("kernel.json %s, %v", b, err)
	}
	for _, logo := range []string{"logo-32x32.png", "logo-64x64.png", "logo-svg.svg"} {
		if _, err := os.Stat(dir + "/" + logo); err != nil {
			t.Error(err)
		}
	}
	if _, err := InstallSpec(t.TempDir(), "skep"); err == nil {
		t.Error("a relative path is accepted")
	}
}
