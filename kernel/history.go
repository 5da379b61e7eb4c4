package kernel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// entry is one input: session numbers count up over the file's life, lines are execution counts.
type entry struct {
	Session int    `json:"session"`
	Line    int    `json:"line"`
	Input   string `json:"input"`
}

// history keeps the inputs of all sessions, in memory and, when it has a file, one JSON object a line on disk. It is
// safe for concurrent use; two kernels may append to one file.
type history struct {
	mu      sync.Mutex
	entries []entry
	session int
	file    *os.File // nil: memory only
}

// openHistory reads the file at path; "" keeps the history in memory. Lines that cannot be read are skipped: a history is
// no reason to refuse a kernel.
func openHistory(path string) (*history, error) {
	h := &history{session: 1}
	if path == "" {
		return h, nil
	}
	if err := h.load(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("kernel: history: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("kernel: history: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kernel: history: %w", err)
	}
	h.file = f
	return h, nil
}

func (h *history) load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Input != "" {
			h.entries = append(h.entries, e)
			h.session = max(h.session, e.Session+1)
		}
	}
	return nil
}

func (h *history) add(line int, input string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := entry{h.session, line, input}
	h.entries = append(h.entries, e)
	if h.file == nil {
		return
	}
	if b, err := json.Marshal(e); err == nil {
		_, _ = h.file.Write(append(b, '\n')) // a full disk must not fail the cell
	}
}

func (h *history) close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

type historyRequest struct {
	Output     bool   `json:"output"`
	AccessType string `json:"hist_access_type"`
	Session    int    `json:"session"` // 0: this one, -1: the one before, …
	Start      int    `json:"start"`
	Stop       int    `json:"stop"` // excluded; 0: to the end
	N          int    `json:"n"`
	Pattern    string `json:"pattern"` // glob over whole inputs
	Unique     bool   `json:"unique"`
}

// find returns the entries that a request asks for, oldest first.
func (h *history) find(q historyRequest) ([]entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []entry
	switch q.AccessType {
	case "tail":
		return last(h.entries, q.N), nil
	case "range":
		session := q.Session
		if session <= 0 {
			session += h.session
		}
		for _, e := range h.entries {
			if e.Session == session && e.Line >= q.Start && (q.Stop <= 0 || e.Line < q.Stop) {
				found = append(found, e)
			}
		}
		return found, nil
	case "search":
		match := glob(q.Pattern)
		for _, e := range h.entries {
			if match.MatchString(e.Input) {
				found = append(found, e)
			}
		}
		if q.Unique {
			found = unique(found)
		}
		if q.N <= 0 {
			return found, nil
		}
		return last(found, q.N), nil
	}
	return nil, fmt.Errorf("history_request: hist_access_type %q: want tail, range or search", q.AccessType)
}

func last(e []entry, n int) []entry { return e[max(0, len(e)-max(n, 0)):] }

// unique keeps the last entry of each input.
func unique(e []entry) []entry {
	newest := map[string]int{}
	for i, x := range e {
		newest[x.Input] = i
	}
	var out []entry
	for i, x := range e {
		if newest[x.Input] == i {
			out = append(out, x)
		}
	}
	return out
}

// glob compiles a pattern of * and ?; everything else stands for itself.
func glob(pattern string) *regexp.Regexp {
	p := regexp.QuoteMeta(pattern)
	p = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(p)
	return regexp.MustCompile("(?s)^" + p + "$")
}

func (s *Server) historyOf(_ context.Context, r *request) (object, error) {
	var q historyRequest
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	entries, err := s.history.find(q)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, e := range entries {
		var input any = e.Input
		if q.Output { // outputs are not kept: a client that asks for pairs gets them with an empty half
			input = []any{e.Input, nil}
		}
		list = append(list, []any{e.Session, e.Line, input})
	}
	return object{"status": "ok", "history": list}, nil
}
