package kernel

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Text of one cell is joined to pieces of at most streamBytes or streamDelay, and cut off after streamLimit, which
// keeps the browser and the server's own rate limits (1 MB/s and 1000 messages/s in the classic server) alive.
const (
	streamBytes = 64 << 10
	streamDelay = 50 * time.Millisecond
	streamLimit = 8 << 20
)

// pump puts all iopub messages in one order, joining text of the same stream and cell on the way. It is safe for
// concurrent use.
type pump struct {
	send func(parent *request, msgType string, content json.RawMessage)

	mu      sync.Mutex
	pending []*pendingText // at most one for each cell
	timer   *time.Timer
}

// pendingText is text of one stream of one cell that waits for more.
type pendingText struct {
	parent *request
	name   string
	text   strings.Builder
}

func newPump(send func(*request, string, json.RawMessage)) *pump { return &pump{send: send} }

// put sends a message behind everything before it; text may wait for more.
func (p *pump) put(parent *request, msgType string, content json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if msgType == "stream" {
		var s struct{ Name, Text string }
		if json.Unmarshal(content, &s) == nil {
			p.stream(parent, s.Name, s.Text)
		}
		return
	}
	p.flushLocked()
	if msgType == "execute_result" && parent != nil {
		content = withCount(content, parent.count)
	}
	p.send(parent, msgType, content)
}

func (p *pump) stream(parent *request, name, text string) {
	if parent != nil {
		before := parent.streamed
		parent.streamed += len(text)
		if before > streamLimit {
			return
		}
		if parent.streamed > streamLimit {
			text = text[:max(0, streamLimit-before)] + fmt.Sprintf("\n… output cut: this cell wrote more than %d MiB of text; write it to a file instead\n", streamLimit>>20)
			parent.streamed = streamLimit + 1
		}
	}
	t := p.of(parent)
	if t.name != name {
		p.sendText(t)
	}
	t.name = name
	t.text.WriteString(text)
	if t.text.Len() >= streamBytes {
		p.sendText(t)
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(streamDelay, p.flush)
	}
}

// of returns the pending text of a cell. The lines of cells that print at the same time are not torn into single messages.
func (p *pump) of(parent *request) *pendingText {
	for _, t := range p.pending {
		if t.parent == parent {
			return t
		}
	}
	t := &pendingText{parent: parent}
	p.pending = append(p.pending, t)
	return t
}

// flush sends pending text.
func (p *pump) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushLocked()
}

func (p *pump) flushLocked() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	for _, t := range p.pending {
		p.sendText(t)
	}
	p.pending = nil
}

func (p *pump) sendText(t *pendingText) {
	if t.text.Len() == 0 {
		return
	}
	content, err := json.Marshal(map[string]string{"name": t.name, "text": t.text.String()})
	t.text.Reset()
	if err == nil {
		p.send(t.parent, "stream", content)
	}
}

// withCount adds the execution count, which the session does not know, to a result.
func withCount(content json.RawMessage, count int) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(content, &m) != nil {
		return content
	}
	m["execution_count"] = fmt.Append(nil, count)
	b, err := json.Marshal(m)
	if err != nil {
		return content
	}
	return b
}
