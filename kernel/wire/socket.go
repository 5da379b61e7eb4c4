package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/uuid"
)

// ErrClosed is returned by a closed socket.
var ErrClosed = errors.New("wire: socket closed")

// Kind is the ZeroMQ type of a socket.
type Kind string

// The socket types that Jupyter uses.
const (
	Router    Kind = Kind(zmq4.Router)
	Dealer    Kind = Kind(zmq4.Dealer)
	Publish   Kind = Kind(zmq4.XPub)
	Subscribe Kind = Kind(zmq4.Sub)
	Reply     Kind = Kind(zmq4.Rep)
	Request   Kind = Kind(zmq4.Req)
)

// Socket is one bound or connected ZeroMQ socket. It is safe for concurrent use.
//
// On a Router the first frame received and sent is the peer's identity; a new connection with an identity in use takes
// it over, as a reconnecting client expects. On a Publish socket Send reaches every subscriber of the first frame, and
// Recv yields one frame per new subscription ("\x01topic") behind the subscriber's identity frame. A Reply socket
// answers each message with itself: the Jupyter heartbeat.
type Socket struct {
	kind     Kind
	listener net.Listener // nil when connected
	received chan [][]byte
	done     chan struct{}
	moved    chan struct{} // holds a token after a peer was written to or left

	mu     sync.Mutex
	peers  map[string]*peer // by identity; ours when the peer gave none
	closed bool
}

// Listen binds a socket to an endpoint "tcp://host:port" (port 0: any) or "ipc://path". A port that is still in use is
// tried again for a second, since a restarted kernel gets its old ports.
func Listen(kind Kind, endpoint string) (*Socket, error) {
	network, addr, err := splitEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		if err := removeStale(addr); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen(network, addr)
	for try := 0; err != nil && try < 10; try++ {
		time.Sleep(100 * time.Millisecond)
		l, err = net.Listen(network, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("wire: bind %s: %w", endpoint, err)
	}
	s := newSocket(kind)
	s.listener = l
	go s.accept()
	return s, nil
}

// Dial connects a socket to an endpoint. identity may be empty.
func Dial(ctx context.Context, kind Kind, endpoint, identity string) (*Socket, error) {
	network, addr, err := splitEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("wire: connect to %s: %w", endpoint, err)
	}
	s := newSocket(kind)
	p, err := shake(conn, zmq4.SocketType(kind), identity, false, s.move)
	if err != nil {
		return nil, err
	}
	s.peers[""] = p
	go func() {
		p.read(func(frames [][]byte) { s.deliver(frames) })
		_ = s.Close()
	}()
	return s, nil
}

func newSocket(kind Kind) *Socket {
	return &Socket{
		kind: kind, received: make(chan [][]byte, 16), done: make(chan struct{}), moved: make(chan struct{}, 1), peers: map[string]*peer{},
	}
}

func splitEndpoint(endpoint string) (network, addr string, err error) {
	transport, addr, ok := strings.Cut(endpoint, "://")
	switch {
	case ok && transport == "tcp":
		return "tcp", addr, nil
	case ok && transport == "ipc":
		return "unix", addr, nil
	}
	return "", "", fmt.Errorf("wire: endpoint %q: only tcp:// and ipc:// are known", endpoint)
}

// removeStale deletes a socket file that nobody listens on any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("wire: %s exists and is not a socket; remove it", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return fmt.Errorf("wire: %s is in use by another process", path)
	}
	return os.Remove(path)
}

// Addr returns the bound address, nil for a connected socket.
func (s *Socket) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// accept shakes hands with each new connection on its own goroutine, so that a silent one delays nobody.
func (s *Socket) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, most likely
				continue
			}
		}
		go s.serve(conn)
	}
}

func (s *Socket) serve(conn net.Conn) {
	p, err := shake(conn, zmq4.SocketType(s.kind), "", true, s.move)
	if err != nil {
		return
	}
	id := p.identity
	if id == "" {
		id = uuid.NewString()
	}
	if !s.add(id, p) {
		p.close()
		return
	}
	defer s.remove(id, p)
	p.read(func(frames [][]byte) {
		switch s.kind {
		case Reply:
			p.send(frames)
		case Publish:
			if topic, added := p.subscription(frames); added {
				s.deliver([][]byte{[]byte(id), []byte("\x01" + topic)})
			}
		default:
			s.deliver(append([][]byte{[]byte(id)}, frames...))
		}
	})
}

func (s *Socket) add(id string, p *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if old := s.peers[id]; old != nil {
		old.close()
	}
	s.peers[id] = p
	return true
}

func (s *Socket) remove(id string, p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers[id] == p {
		delete(s.peers, id)
	}
	s.move()
}

func (s *Socket) move() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// Wait returns when some peer has room for more, there is none, the socket closes or cancel is closed; peers of a Publish
// socket count when they subscribe. A sender that can wait calls it first: then a slow peer slows the sender and loses nothing, as long as it is the
// fastest, and one that stands still loses its connection without holding up the others.
func (s *Socket) Wait(cancel <-chan struct{}) {
	defer s.move() // wakes the next who waits
	for s.crowded() {
		select {
		case <-s.moved:
		case <-s.done:
			return
		case <-cancel:
			return
		}
	}
}

// crowded reports whether every peer is behind.
func (s *Socket) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := 0
	for _, p := range s.peers {
		if s.kind == Publish && !p.subscribes() {
			continue
		}
		if !p.behind() {
			return false
		}
		counted++
	}
	return counted > 0
}

func (s *Socket) deliver(frames [][]byte) {
	select {
	case s.received <- frames:
	case <-s.done:
	}
}

// Recv returns the next message's frames, ErrClosed once the socket is closed, or ctx's error.
func (s *Socket) Recv(ctx context.Context) ([][]byte, error) {
	select {
	case f := <-s.received:
		return f, nil
	default:
	}
	select {
	case f := <-s.received:
		return f, nil
	case <-s.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send queues frames for the peers concerned and does not wait for them. A message for a peer that left is dropped, as
// ZeroMQ does; so is a peer that stopped reading.
func (s *Socket) Send(frames [][]byte) error {
	if len(frames) == 0 {
		return errors.New("wire: empty message")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	switch s.kind {
	case Router:
		if p := s.peers[string(frames[0])]; p != nil {
			p.send(frames[1:])
		}
	case Publish:
		s.publish(frames)
	default:
		for _, p := range s.peers {
			p.send(frames)
		}
	}
	return nil
}

// SendTo sends frames to one subscriber of a Publish socket, whatever it subscribed to.
func (s *Socket) SendTo(identity []byte, frames [][]byte) {
	s.mu.Lock()
	p := s.peers[string(identity)]
	s.mu.Unlock()
	if p != nil {
		p.send(frames)
	}
}

func (s *Socket) publish(frames [][]byte) {
	var packed []byte
	for _, p := range s.peers {
		if !p.wants(string(frames[0])) {
			continue
		}
		if packed == nil {
			packed = packMessage(frames)
		}
		p.enqueue(packed)
	}
}

// Drain waits until all queued messages are written, at most for d.
func (s *Socket) Drain(d time.Duration) {
	deadline := time.Now().Add(d)
	s.mu.Lock()
	peers := make([]*peer, 0, len(s.peers))
	for _, p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	for _, p := range peers {
		p.drain(deadline)
	}
}

// Close drops all connections and what is still queued; call Drain first to keep it. It may be called twice.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	for _, p := range s.peers {
		p.close()
	}
	if s.listener != nil {
		return s.listener.Close() // removes an ipc socket's file as well
	}
	return nil
}
