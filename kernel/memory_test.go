package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"testing"
	"time"

	"skep/kernel/wire"
)

// memory is a FrontEnd without sockets: tests put requests in and read what comes out, in one order.
type memory struct {
	t     *testing.T
	in    [3]chan *wire.Message
	out   chan sent
	ended chan struct{}
}

type sent struct {
	channel Channel
	msg     *wire.Message
}

func (s sent) content() map[string]any {
	var m map[string]any
	_ = json.Unmarshal(s.msg.Content, &m) // a wrong content fails what reads it
	return m
}

func (s sent) parent() string {
	var h wire.Header
	_ = json.Unmarshal(s.msg.Parent, &h)
	return h.MsgID
}

// serve starts a server on a memory front end and stops it with the test.
func serve(t *testing.T) *memory {
	t.Helper()
	m := &memory{t: t, out: make(chan sent, 10000), ended: make(chan struct{})}
	for i := range m.in {
		m.in[i] = make(chan *wire.Message, 100)
	}
	s, err := New(m, Options{Child: childCommand(t), Version: "test", Log: log.Default()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	if first := m.next(); first.content()["execution_state"] != "starting" || string(first.msg.Parent) != "" {
		t.Fatalf("the first message is %s %s, want status starting without parent", first.msg.Header.MsgType, first.msg.Content)
	}
	return m
}

func (m *memory) Recv(ctx context.Context, ch Channel) (*wire.Message, error) {
	select {
	case msg := <-m.in[ch]:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-m.ended:
		return nil, errors.New("front end closed")
	}
}

func (m *memory) Send(ch Channel, msg *wire.Message) error {
	m.out <- sent{ch, msg}
	return nil
}

func (m *memory) Wait(Channel, <-chan struct{}) {}

func (m *memory) Close(time.Duration) error {
	close(m.ended)
	return nil
}

// request sends a request and returns its id.
func (m *memory) request(ch Channel, msgType string, content any) string {
	m.t.Helper()
	raw, err := json.Marshal(content)
	if err != nil {
		m.t.Fatal(err)
	}
	msg := &wire.Message{Header: wire.NewHeader(msgType, "client"), Content: raw, Identities: [][]byte{[]byte("client")}}
	msg.RawHeader, err = json.Marshal(msg.Header)
	if err != nil {
		m.t.Fatal(err)
	}
	m.in[ch] <- msg
	return msg.Header.MsgID
}

func (m *memory) next() sent {
	m.t.Helper()
	select {
	case s := <-m.out:
		return s
	case <-time.After(30 * time.Second):
		m.t.Fatal("the kernel says nothing")
		panic("unreachable")
	}
}

// untilIdle returns everything that belongs to a request, up to its idle.
func (m *memory) untilIdle(id string) []sent {
	m.t.Helper()
	var all []sent
	for {
		s := m.next()
		if s.parent() != id {
			continue
		}
		all = append(all, s)
		if s.msg.Header.MsgType == "status" && s.content()["execution_state"] == "idle" {
			return all
		}
	}
}

// kinds lists message types, status with its state.
func kinds(all []sent) []string {
	var out []string
	for _, s := range all {
		name := s.msg.Header.MsgType
		if name == "status" {
			name, _ = s.content()["execution_state"].(string)
		}
		out = append(out, name)
	}
	return out
}

// find returns the first message of a type.
func find(all []sent, msgType string) map[string]any {
	for _, s := range all {
		if s.msg.Header.MsgType == msgType {
			return s.content()
		}
	}
	return nil
}

// execute runs a cell and returns all its messages.
func (m *memory) execute(code string) []sent {
	m.t.Helper()
	return m.untilIdle(m.request(Shell, "execute_request", map[string]any{"code": code}))
}
