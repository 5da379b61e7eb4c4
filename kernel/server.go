package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/google/uuid"

	"skep/kernel/session"
	"skep/kernel/wire"
)

// drainTime is how long last messages may take to leave at shutdown.
const drainTime = 3 * time.Second

// Options are the settings of a Server.
type Options struct {
	Session string      // the kernel's session id; "" makes one
	Child   []string    // the command that runs session.Main
	Version string      // reported by kernel_info
	History string      // file that keeps the inputs of all sessions; "" keeps them in memory
	Log     *log.Logger // nil: log.Default
}

// Server is one kernel: a front end on one side, a session child on the other.
type Server struct {
	options Options
	front   FrontEnd
	history *history
	pump    *pump
	queue   *queue // shell requests that wait
	quit    chan struct{}
	once    sync.Once
	ending  chan struct{} // closed when the session's end is wanted
	end     func()        // closes it

	cells executions

	mu      sync.Mutex
	child   *session.Process // nil until the first has started
	running uint64           // child's id for the execute request under way or last

	count int // executions; the shell goroutine's
}

// New returns a server for front. Serve starts it.
func New(front FrontEnd, o Options) (*Server, error) {
	if o.Session == "" {
		o.Session = uuid.NewString()
	}
	if o.Log == nil {
		o.Log = log.Default()
	}
	h, err := openHistory(o.History)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, front: front, history: h, queue: newQueue(), quit: make(chan struct{}), ending: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	s.pump = newPump(func(parent *request, msgType string, content json.RawMessage) {
		s.publishRaw(parent, msgType, content)
	})
	return s, nil
}

// Serve runs the kernel until a front end shuts it down, ctx ends or the front end fails. It ends the session child and
// closes the front end.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.status(nil, "starting")
	if err := s.startChild(ctx); err != nil {
		return errors.Join(err, s.front.Close(drainTime))
	}
	failed := make(chan error, 3)
	for _, loop := range []func(context.Context) error{s.receiveShell, s.serveControl, s.serveStdin} {
		go func() { failed <- loop(ctx) }()
	}
	go s.serveShell(ctx)
	var err error
	select {
	case err = <-failed:
	case <-s.quit:
	case <-ctx.Done():
	}
	s.end()
	s.session().Close()
	s.pump.flush()
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, s.front.Close(drainTime), s.history.close())
}

// startChild starts a session in place of the one that was.
func (s *Server) startChild(ctx context.Context) error {
	p, err := session.Start(ctx, s.options.Child, s)
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	s.cells.clear()
	s.mu.Lock()
	s.child, s.running = p, 0
	s.mu.Unlock()
	return nil
}

// isEnding reports whether the session's end is wanted.
func (s *Server) isEnding() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}

func (s *Server) session() *session.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

// Interrupt stops the running cell, as the stop button does.
func (s *Server) Interrupt() {
	s.mu.Lock()
	child, id := s.child, s.running
	s.mu.Unlock()
	if child != nil { // nil: a signal came before there was anything to stop
		child.Interrupt(id)
	}
}

// begin gives an execute request its id, before anything tells the client that it runs: an interrupt from then on is its.
func (s *Server) begin(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.id = s.child.NewID()
	s.running = r.id
}

// receiveShell keeps reading, so that a failed cell knows which requests were already waiting.
func (s *Server) receiveShell(ctx context.Context) error {
	for {
		m, err := s.front.Recv(ctx, Shell)
		if err != nil {
			return err
		}
		s.queue.put(&request{channel: Shell, msg: m})
	}
}

func (s *Server) serveShell(ctx context.Context) {
	for {
		r, ok := s.queue.take(ctx)
		if !ok {
			return
		}
		s.handle(ctx, r)
	}
}

func (s *Server) serveControl(ctx context.Context) error {
	for {
		m, err := s.front.Recv(ctx, Control)
		if err != nil {
			return err
		}
		s.handle(ctx, &request{channel: Control, msg: m})
	}
}

// serveStdin passes the user's answers on.
func (s *Server) serveStdin(ctx context.Context) error {
	for {
		m, err := s.front.Recv(ctx, Stdin)
		if err != nil {
			return err
		}
		var reply struct {
			Value string `json:"value"`
		}
		if m.Header.MsgType == "input_reply" && json.Unmarshal(m.Content, &reply) == nil {
			s.session().Input(reply.Value, nil)
		}
	}
}

// Output shows what a session puts out; it implements session.Handler.
func (s *Server) Output(id uint64, o session.Output) {
	s.front.Wait(IOPub, s.ending)
	parent := s.cells.find(id)
	if parent != nil && parent.silent {
		return
	}
	s.pump.put(parent, o.Type, o.Content)
}

// Ask passes a session's question for input to the front end that runs the cell; it implements session.Handler.
func (s *Server) Ask(id uint64, prompt string, password bool) {
	r := s.cells.find(id)
	if r == nil {
		s.session().Input("", session.ErrNotInACell)
		return
	}
	s.pump.flush()
	content, err := json.Marshal(map[string]any{"prompt": prompt, "password": password})
	if err != nil {
		return
	}
	s.sendTo(Stdin, r, "input_request", content)
}

// sendTo sends a message to the client of r.
func (s *Server) sendTo(ch Channel, r *request, msgType string, content json.RawMessage) {
	m := &wire.Message{
		Identities: r.msg.Identities, Header: wire.NewHeader(msgType, s.options.Session),
		Parent: r.msg.RawHeader, Content: content,
	}
	if err := s.front.Send(ch, m); err != nil {
		s.options.Log.Printf("kernel: %s: %v", msgType, err)
	}
}

// publish puts a message of ours on iopub behind everything that is already on its way.
func (s *Server) publish(parent *request, msgType string, content any) {
	raw, err := json.Marshal(content)
	if err != nil {
		s.options.Log.Printf("kernel: %s: %v", msgType, err)
		return
	}
	s.pump.put(parent, msgType, raw)
}

func (s *Server) publishRaw(parent *request, msgType string, content json.RawMessage) {
	m := &wire.Message{
		Identities: [][]byte{[]byte("kernel." + s.options.Session + "." + msgType)},
		Header:     wire.NewHeader(msgType, s.options.Session), Content: content,
	}
	if parent != nil {
		m.Parent = parent.msg.RawHeader
	}
	if err := s.front.Send(IOPub, m); err != nil {
		s.options.Log.Printf("kernel: %s: %v", msgType, err)
	}
}

func (s *Server) status(parent *request, state string) {
	s.publish(parent, "status", map[string]string{"execution_state": state})
}
