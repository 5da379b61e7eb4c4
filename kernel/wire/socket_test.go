package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

func listen(t *testing.T, kind Kind) (*Socket, string) {
	t.Helper()
	s, err := Listen(kind, "tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, "tcp://" + s.Addr().String()
}

func recv(t *testing.T, s *Socket) [][]byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	f, err := s.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func frames(texts ...string) [][]byte {
	var f [][]byte
	for _, s := range texts {
		f = append(f, []byte(s))
	}
	return f
}

// TestRouterWithZMQ4 talks to go-zeromq's own DEALER, an independent implementation of the socket.
func TestRouterWithZMQ4(t *testing.T) {
	router, endpoint := listen(t, Router)
	dealer := zmq4.NewDealer(context.Background(), zmq4.WithID(zmq4.SocketIdentity("d1")))
	defer dealer.Close()
	if err := dealer.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 300)
	if err := dealer.SendMulti(zmq4.NewMsgFrom(frames("a", "", long)...)); err != nil {
		t.Fatal(err)
	}
	got := recv(t, router)
	if len(got) != 4 || string(got[0]) != "d1" || string(got[3]) != long {
		t.Fatalf("received %q", got)
	}
	if err := router.Send(append([][]byte{got[0]}, frames("b", long)...)); err != nil {
		t.Fatal(err)
	}
	reply, err := dealer.Recv()
	if err != nil || len(reply.Frames) != 2 || string(reply.Frames[1]) != long {
		t.Errorf("reply %q, %v", reply.Frames, err)
	}
	if err := router.Send(frames("nobody", "x")); err != nil {
		t.Errorf("to an unknown peer: %v", err)
	}
}

// TestPublishWithZMQ4 subscribes with go-zeromq's own SUB.
func TestPublishWithZMQ4(t *testing.T) {
	pub, endpoint := listen(t, Publish)
	sub := zmq4.NewSub(context.Background())
	defer sub.Close()
	if err := sub.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	if err := sub.SetOption(zmq4.OptionSubscribe, "ab"); err != nil {
		t.Fatal(err)
	}
	welcome := recv(t, pub)
	if string(welcome[1]) != "\x01ab" {
		t.Fatalf("subscription %q", welcome)
	}
	for _, topic := range []string{"other", "a", "abc"} {
		if err := pub.Send(frames(topic, "body")); err != nil {
			t.Fatal(err)
		}
	}
	m, err := sub.Recv()
	if err != nil || string(m.Frames[0]) != "abc" {
		t.Errorf("received %q, %v; want only what was subscribed", m.Frames, err)
	}
}

func TestHeartbeat(t *testing.T) {
	_, endpoint := listen(t, Reply)
	req := zmq4.NewReq(context.Background())
	defer req.Close()
	if err := req.Dial(endpoint); err != nil {
		t.Fatal(err)
	}
	for _, beat := range []string{"ping", "", "again"} {
		if err := req.Send(zmq4.NewMsgString(beat)); err != nil {
			t.Fatal(err)
		}
		if m, err := req.Recv(); err != nil || string(m.Frames[0]) != beat {
			t.Errorf("beat %q comes back as %q, %v", beat, m.Frames, err)
		}
	}
}

// TestHandover connects twice with one identity: the newer connection gets the replies.
func TestHandover(t *testing.T) {
	router, endpoint := listen(t, Router)
	var dealers []*Socket
	for range 2 {
		d, err := Dial(context.Background(), Dealer, endpoint, "same")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.Send(frames("hello")); err != nil {
			t.Fatal(err)
		}
		recv(t, router)
		dealers = append(dealers, d)
	}
	if err := router.Send(frames("same", "reply")); err != nil {
		t.Fatal(err)
	}
	if got := recv(t, dealers[1]); string(got[0]) != "reply" {
		t.Errorf("the newer connection got %q", got)
	}
}

// TestHostilePeers opens connections that misbehave; an honest client must be served at once, beside all of them.
func TestHostilePeers(t *testing.T) {
	router, endpoint := listen(t, Router)
	greeting := make([]byte, greetingBytes)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	huge := binary.BigEndian.AppendUint64([]byte{flagLong | flagCommand}, 1<<62)
	ready := appendFrame(nil, flagCommand, []byte("\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"))
	for name, bytes := range map[string][]byte{
		"silent": nil, "noise": []byte(strings.Repeat("GET / HTTP/1.1\r\n", 10)), "half a greeting": greeting[:20],
		"huge READY": append(append([]byte{}, greeting...), huge...), "no READY": append(append([]byte{}, greeting...), appendFrame(nil, 0, []byte("x"))...),
		"huge frame": append(append(append([]byte{}, greeting...), ready...), binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<62)...),
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(bytes); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	began := time.Now()
	d, err := Dial(context.Background(), Dealer, endpoint, "honest")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Send(frames("hello")); err != nil {
		t.Fatal(err)
	}
	if got := recv(t, router); string(got[0]) != "honest" {
		t.Errorf("received %q", got)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the honest client waited %v", took)
	}
}

// TestStoppedSubscriber publishes far more than sockets buffer while one subscriber reads nothing: the other gets all.
func TestStoppedSubscriber(t *testing.T) {
	pub, endpoint := listen(t, Publish)
	var subs []*Socket
	for range 2 {
		s, err := Dial(context.Background(), Subscribe, endpoint, "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Send([][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		recv(t, pub)
		subs = append(subs, s)
	}
	const n = 200
	body := make([]byte, 1<<20)      // 200 MiB: more than queueBytes
	ahead := make(chan struct{}, 20) // the publisher waits for the reading one, never for the other
	go func() {
		for i := range n {
			ahead <- struct{}{}
			_ = pub.Send([][]byte{fmt.Append(nil, i), body})
		}
	}()
	for i := range n {
		if got := recv(t, subs[1]); string(got[0]) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got[0])
		}
		<-ahead
	}
}

// TestDrain closes right after a burst: nothing is lost.
func TestDrain(t *testing.T) {
	pub, endpoint := listen(t, Publish)
	sub, err := Dial(context.Background(), Subscribe, endpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if err := sub.Send([][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	recv(t, pub)
	const n = 5000
	for i := range n {
		if err := pub.Send(frames(fmt.Sprint(i), strings.Repeat("x", 200))); err != nil {
			t.Fatal(err)
		}
	}
	pub.Drain(10 * time.Second)
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got := recv(t, sub); string(got[0]) != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got[0])
		}
	}
	if err := pub.Send(frames("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("send on a closed socket: %v", err)
	}
}

func TestIPC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s-1")
	for range 2 { // the second time the stale file of the first is in the way
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = l.Close()
		router, err := Listen(Router, "ipc://"+path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(Router, "ipc://"+path); err == nil {
			t.Error("a path in use is bound twice")
		}
		d, err := Dial(context.Background(), Dealer, "ipc://"+path, "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Send(frames("hello")); err != nil {
			t.Fatal(err)
		}
		if got := recv(t, router); string(got[1]) != "hello" {
			t.Errorf("received %q", got)
		}
		_, _ = d.Close(), router.Close()
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the socket file stays behind: %v", err)
		}
	}
}

func TestListenRetries(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = l.Close() })
	s, err := Listen(Router, "tcp://"+l.Addr().String())
	if err != nil {
		t.Fatalf("a port freed a moment later: %v", err)
	}
	_ = s.Close()
	if _, err := Listen(Router, "udp://127.0.0.1:1"); err == nil {
		t.Error("udp is accepted")
	}
}
