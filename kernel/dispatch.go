package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"skep/kernel/wire"
)

// request is one message under way, with what its answer needs. It is passed along, never stored globally.
type request struct {
	channel Channel
	msg     *wire.Message
	aborted bool // a cell before it failed
	failed  bool // what waits behind it is not to run

	// Of execute requests:
	id       uint64 // the session's id for it
	count    int    // its execution count
	silent   bool
	streamed int // bytes of text so far; the pump's
}

// decode reads the request's content into v.
func (r *request) decode(v any) error {
	if err := json.Unmarshal(r.msg.Content, v); err != nil {
		return fmt.Errorf("%s: %w", r.msg.Header.MsgType, err)
	}
	return nil
}

// object is a JSON object.
type object = map[string]any

// handler answers one type of request; a nil reply sends none. An error becomes a reply of status "error".
type handler func(s *Server, ctx context.Context, r *request) (object, error)

// handlers is every message that the kernel understands, on shell and control alike. Others are ignored, as the
// protocol wants.
var handlers = map[string]handler{
	"kernel_info_request": (*Server).kernelInfo,
	"execute_request":     (*Server).execute,
	"complete_request":    (*Server).complete,
	"inspect_request":     (*Server).inspect,
	"is_complete_request": (*Server).isComplete,
	"history_request":     (*Server).historyOf,
	"comm_open":           (*Server).commOpen,
	"comm_info_request":   (*Server).commInfo,
	"interrupt_request":   (*Server).interrupt,
	"shutdown_request":    (*Server).shutdown,
	"debug_request":       (*Server).debug,
}

// abortDelay is how long the reply of a failed cell waits for the requests sent before it: "run all" sends one cell
// after the other, and the first may fail before the last has arrived.
const abortDelay = 50 * time.Millisecond

// handle wraps one request in busy and idle.
func (s *Server) handle(ctx context.Context, r *request) {
	if r.channel == Shell && r.msg.Header.MsgType == "execute_request" {
		s.begin(r)
	}
	s.status(r, "busy")
	s.answer(ctx, r)
	s.status(r, "idle")
	if s.isEnding() && r.msg.Header.MsgType == "shutdown_request" {
		s.once.Do(func() { close(s.quit) })
	}
}

// answer sends the reply of one request.
func (s *Server) answer(ctx context.Context, r *request) {
	h := handlers[r.msg.Header.MsgType]
	if h == nil {
		return
	}
	reply, err := h(s, ctx, r)
	if err != nil {
		reply = errorReply("KernelError", err.Error(), []string{err.Error()})
	}
	if reply == nil {
		return
	}
	content, err := json.Marshal(reply)
	if err != nil {
		s.options.Log.Printf("kernel: %s: %v", r.msg.Header.MsgType, err)
		return
	}
	s.pump.flush()
	if r.failed {
		time.Sleep(abortDelay)
		s.queue.abort()
	}
	s.sendTo(r.channel, r, strings.TrimSuffix(r.msg.Header.MsgType, "_request")+"_reply", content)
	if r.msg.Header.MsgType == "shutdown_request" {
		s.publish(r, "shutdown_reply", reply)
	}
}

func errorReply(name, value string, traceback []string) object {
	return object{"status": "error", "ename": name, "evalue": value, "traceback": traceback}
}

func (s *Server) kernelInfo(context.Context, *request) (object, error) {
	return object{
		"status": "ok", "protocol_version": wire.ProtocolVersion,
		"implementation": "skep", "implementation_version": s.options.Version,
		"language_info": object{
			"name": "go", "version": strings.TrimPrefix(runtime.Version(), "go"), "mimetype": "text/x-go",
			"file_extension": ".go", "pygments_lexer": "go", "codemirror_mode": "go",
		},
		"banner":             "skep " + s.options.Version + ": Go cells that hold a live search",
		"help_links":         []object{{"text": "Go packages", "url": "https://pkg.go.dev/std"}, {"text": "gonum plot", "url": "https://pkg.go.dev/gonum.org/v1/plot"}},
		"supported_features": []string{},
		"debugger":           false,
	}, nil
}

func (s *Server) interrupt(context.Context, *request) (object, error) {
	s.Interrupt()
	return object{"status": "ok"}, nil
}

func (s *Server) shutdown(_ context.Context, r *request) (object, error) {
	var req struct {
		Restart bool `json:"restart"`
	}
	if err := r.decode(&req); err != nil {
		return nil, err
	}
	s.end()
	s.session().Close()
	return object{"status": "ok", "restart": req.Restart}, nil
}

// commOpen refuses every target: the front end must know at once, else its widget waits for ever.
func (s *Server) commOpen(_ context.Context, r *request) (object, error) {
	var req struct {
		CommID string `json:"comm_id"`
	}
	if err := r.decode(&req); err != nil {
		return nil, nil
	}
	s.publish(r, "comm_close", object{"comm_id": req.CommID, "data": object{}})
	return nil, nil
}

func (s *Server) commInfo(context.Context, *request) (object, error) {
	return object{"status": "ok", "comms": object{}}, nil
}

// debug answers in the debug adapter protocol's form that there is no debugger.
func (s *Server) debug(_ context.Context, r *request) (object, error) {
	var req struct {
		Seq     int    `json:"seq"`
		Command string `json:"command"`
	}
	if err := r.decode(&req); err != nil {
		return nil, err
	}
	return object{
		"type": "response", "seq": 0, "request_seq": req.Seq, "command": req.Command, "success": false,
		"message": "skep has no debugger yet", "body": object{},
	}, nil
}
