package session

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// packet is one message between kernel and session. On the pipe it is: number of parts, length of each part (uint32,
// little-endian), then the parts: the packet as JSON, then raw buffers.
type packet struct {
	Kind    string          `json:"kind"`
	ID      uint64          `json:"id,omitempty"` // the request it belongs to, 0: none
	Body    json.RawMessage `json:"body,omitempty"`
	Buffers [][]byte        `json:"-"`
}

// Kinds of packets. Requests are answered by exactly one kindDone with their id.
const (
	kindExecute   = "execute"   // → executeBody
	kindComplete  = "complete"  // → codeBody
	kindInspect   = "inspect"   // → codeBody
	kindInterrupt = "interrupt" // of the cell with its id; no answer
	kindInput     = "input"     // answer to kindAsk: inputBody
	kindDone      = "done"      // ← the request's result
	kindOutput    = "output"    // ← Output
	kindAsk       = "ask"       // ← askBody: a line of standard input is wanted
	kindReady     = "ready"     // ← the session has started
)

// Both ends are ours, but the session runs user code that may write anywhere: its packets are limited.
const (
	maxParts      = 1024
	maxPartBytes  = 256 << 20
	pipeReadBytes = 64 << 10
)

// pipe frames packets over a pair of streams. send is safe for concurrent use, receive is one goroutine's.
type pipe struct {
	r *bufio.Reader

	mu sync.Mutex
	w  io.Writer
}

func newPipe(r io.Reader, w io.Writer) *pipe {
	return &pipe{r: bufio.NewReaderSize(r, pipeReadBytes), w: w}
}

// send writes one packet; body is encoded as JSON unless nil.
func (p *pipe) send(kind string, id uint64, body any, buffers ...[]byte) error {
	var raw json.RawMessage
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("session: %s packet: %w", kind, err)
		}
		raw = b
	}
	head, err := json.Marshal(packet{Kind: kind, ID: id, Body: raw})
	if err != nil {
		return fmt.Errorf("session: %s packet: %w", kind, err)
	}
	parts := append([][]byte{head}, buffers...)
	for _, part := range parts {
		if len(part) > maxPartBytes {
			return fmt.Errorf("session: an output of %d MiB; at most %d MiB can be shown, write it to a file instead", len(part)>>20, maxPartBytes>>20)
		}
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)))
	for _, part := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(part)))
	}
	for _, part := range parts {
		b = append(b, part...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err = p.w.Write(b)
	return err
}

// receive reads one packet. io.EOF means that the other side is gone.
func (p *pipe) receive() (packet, error) {
	var count [4]byte
	if _, err := io.ReadFull(p.r, count[:]); err != nil {
		return packet{}, err
	}
	n := binary.LittleEndian.Uint32(count[:])
	if n == 0 || n > maxParts {
		return packet{}, fmt.Errorf("session: packet of %d parts", n)
	}
	sizes := make([]byte, 4*n)
	if _, err := io.ReadFull(p.r, sizes); err != nil {
		return packet{}, err
	}
	parts := make([][]byte, n)
	for i := range parts {
		size := binary.LittleEndian.Uint32(sizes[4*i:])
		if size > maxPartBytes {
			return packet{}, fmt.Errorf("session: packet part of %d bytes", size)
		}
		parts[i] = make([]byte, size)
		if _, err := io.ReadFull(p.r, parts[i]); err != nil {
			return packet{}, err
		}
	}
	var pk packet
	if err := json.Unmarshal(parts[0], &pk); err != nil {
		return packet{}, fmt.Errorf("session: packet: %w", err)
	}
	pk.Buffers = parts[1:]
	return pk, nil
}
