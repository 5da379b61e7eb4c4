package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// How long a peer may keep us waiting, and how much may wait for it.
const (
	handshakeTimeout = 10 * time.Second
	writeTimeout     = 20 * time.Second // one write that makes no progress this long ends the connection
	queueBytes       = 128 << 20        // bytes waiting for one peer; one larger message is still taken when the queue is empty
	paceBytes        = 1 << 20          // Socket.Wait lets no more than this pile up for the fastest peer
	readyLimit       = 4 << 10          // bytes of the handshake's READY command
)

// peer is one connection that has shaken hands. Its writer goroutine is the only one that writes to conn.
type peer struct {
	conn     net.Conn
	identity string // the other side's socket identity, "" when it gave none

	mu     sync.Mutex
	wake   *sync.Cond
	queue  [][]byte
	queued int // bytes in queue and in the write under way
	closed bool

	sent func() // called after each write

	topics map[string]int // subscription → count; used by publishers only, under mu
}

// shake does the ZMTP handshake on conn as a socket of the given type and returns the peer. It closes conn on failure.
//
// sent is called whenever something has been written.
func shake(conn net.Conn, typ zmq4.SocketType, identity string, server bool, sent func()) (*peer, error) {
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	z, err := zmq4.Open(&handshake{Conn: conn}, null.Security(), typ, zmq4.SocketIdentity(identity), server, nil)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("wire: handshake with %s: %w", conn.RemoteAddr(), err)
	}
	_ = conn.SetDeadline(time.Time{})
	p := &peer{conn: conn, identity: z.Peer.Meta["Identity"], sent: sent, topics: map[string]int{}}
	p.wake = sync.NewCond(&p.mu)
	go p.write()
	return p, nil
}

// handshake lets zmq4 read the greeting and then exactly one bounded frame, which it would else allocate unchecked.
type handshake struct {
	net.Conn
	greeted int
	ready   *bytes.Reader
}

const greetingBytes = 64

func (h *handshake) Read(p []byte) (int, error) {
	if h.greeted < greetingBytes {
		n, err := h.Conn.Read(p[:min(len(p), greetingBytes-h.greeted)])
		h.greeted += n
		return n, err
	}
	if h.ready == nil {
		flags, body, err := readFrame(h.Conn, readyLimit)
		if err != nil {
			return 0, err
		}
		if flags&flagCommand == 0 {
			return 0, errors.New("a message where the READY command belongs")
		}
		h.ready = bytes.NewReader(appendFrame(nil, flags&^flagLong, body))
	}
	return h.ready.Read(p)
}

// send queues frames. It reports false when the peer is gone or does not read; the peer is closed then.
func (p *peer) send(frames [][]byte) bool {
	return p.enqueue(packMessage(frames))
}

func (p *peer) enqueue(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.queued > 0 && p.queued+len(b) > queueBytes {
		p.closeLocked()
		return false
	}
	p.queue = append(p.queue, b)
	p.queued += len(b)
	p.wake.Broadcast()
	return true
}

// write sends what is queued until the peer closes.
func (p *peer) write() {
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.wake.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		b := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()

		err := writeAll(p.conn, b)

		p.mu.Lock()
		p.queued -= len(b)
		if err != nil {
			p.closeLocked()
		}
		p.wake.Broadcast()
		p.mu.Unlock()
		p.sent()
	}
}

// behind reports whether so much waits for the peer that a sender should wait too.
func (p *peer) behind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued > paceBytes
}

// writeAll writes b in pieces, each with its own deadline, so that a slow reader lives and a stopped one does not.
func writeAll(conn net.Conn, b []byte) error {
	const piece = 1 << 20
	for len(b) > 0 {
		n := min(len(b), piece)
		_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// drain waits until everything queued is written, the peer closes, or the deadline passes.
func (p *peer) drain(deadline time.Time) {
	timer := time.AfterFunc(time.Until(deadline), func() {
		p.mu.Lock()
		p.wake.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.queued > 0 && !p.closed && time.Now().Before(deadline) {
		p.wake.Wait()
	}
}

func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *peer) closeLocked() {
	if !p.closed {
		p.closed = true
		p.queue = nil
		_ = p.conn.Close()
		p.wake.Broadcast()
	}
}

// read passes each message to deliver until the connection ends. Pings are answered here.
func (p *peer) read(deliver func(frames [][]byte)) {
	defer p.close()
	for {
		frames, command, err := readMessage(p.conn)
		if err != nil {
			return
		}
		if !command {
			deliver(frames)
			continue
		}
		if context, ok := pingContext(frames[0]); ok {
			p.enqueue(appendFrame(nil, flagCommand, append([]byte("\x04PONG"), context...)))
		}
	}
}

// pingContext returns what a PONG must repeat (RFC 37: PING = ttl of two bytes, then up to 16 bytes of context).
func pingContext(command []byte) ([]byte, bool) {
	body, ok := bytes.CutPrefix(command, []byte("\x04PING"))
	if !ok || len(body) < 2 || len(body) > 18 {
		return nil, false
	}
	return body[2:], true
}

// subscription applies a SUB socket's message (first byte 1: subscribe, 0: cancel) and returns a new topic.
func (p *peer) subscription(frames [][]byte) (topic string, added bool) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return "", false
	}
	topic = string(frames[0][1:])
	p.mu.Lock()
	defer p.mu.Unlock()
	switch frames[0][0] {
	case 1:
		p.topics[topic]++
		return topic, true
	case 0:
		if p.topics[topic]--; p.topics[topic] <= 0 {
			delete(p.topics, topic)
		}
	}
	return "", false
}

func (p *peer) subscribes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.topics) > 0
}

// wants reports whether the peer subscribed to a prefix of topic.
func (p *peer) wants(topic string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.topics {
		if strings.HasPrefix(topic, t) {
			return true
		}
	}
	return false
}

var _ io.Reader = (*handshake)(nil)
