package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"skep/kernel/session"
)

type executeRequest struct {
	Code            string            `json:"code"`
	Silent          bool              `json:"silent"`
	StoreHistory    *bool             `json:"store_history"` // default: not silent
	UserExpressions map[string]string `json:"user_expressions"`
	AllowStdin      *bool             `json:"allow_stdin"`   // default: true
	StopOnError     *bool             `json:"stop_on_error"` // default: true
}

func orTrue(b *bool) bool { return b == nil || *b }

// execute runs a cell: execute_input, the outputs, an error if it fails, the reply. Runs on the shell goroutine only.
func (s *Server) execute(ctx context.Context, r *request) (object, error) {
	if r.channel != Shell {
		return s.refused(r, errors.New("execute_request belongs on the shell channel"))
	}
	if r.aborted {
		reply := errorReply("aborted", "a cell before it failed", []string{})
		reply["status"], reply["execution_count"] = "aborted", s.count
		return reply, nil
	}
	var req executeRequest
	if err := r.decode(&req); err != nil {
		return s.refused(r, err)
	}
	r.silent = req.Silent
	store := !req.Silent && orTrue(req.StoreHistory)
	empty := strings.TrimSpace(req.Code) == ""
	if store && !empty {
		s.count++
	}
	r.count = s.count
	if !req.Silent {
		s.publish(r, "execute_input", object{"code": req.Code, "execution_count": r.count})
	}
	if empty && len(req.UserExpressions) == 0 {
		return executed(r, nil), nil
	}
	reply := s.run(ctx, r, req)
	if store && !empty {
		s.history.add(s.count, req.Code)
	}
	if reply.Error == nil {
		return executed(r, reply.UserExpressions), nil
	}
	f := reply.Error
	content := errorReply(f.Name, f.Value, f.Traceback)
	if !req.Silent {
		s.publish(r, "error", object{"ename": f.Name, "evalue": f.Value, "traceback": f.Traceback})
		r.failed = orTrue(req.StopOnError)
	}
	content["execution_count"] = r.count
	return content, nil
}

// refused is the reply to a request that is no cell at all.
func (s *Server) refused(r *request, err error) (object, error) {
	f := errorReply("KernelError", err.Error(), []string{err.Error()})
	if r.channel == Shell {
		s.publish(r, "error", object{"ename": f["ename"], "evalue": f["evalue"], "traceback": f["traceback"]})
		f["execution_count"] = s.count
	}
	return f, nil
}

func executed(r *request, expressions map[string]json.RawMessage) object {
	if expressions == nil {
		expressions = map[string]json.RawMessage{}
	}
	return object{"status": "ok", "execution_count": r.count, "payload": []any{}, "user_expressions": expressions}
}

// run hands the cell to the session; when that dies, a new one takes its place and the cell fails with what happened.
func (s *Server) run(ctx context.Context, r *request, req executeRequest) session.Reply {
	child := s.session()
	s.cells.add(r)
	reply, err := child.Execute(ctx, r.id, session.Request{
		Code: req.Code, Number: r.count, AllowStdin: orTrue(req.AllowStdin), UserExpressions: req.UserExpressions,
	})
	var died *session.Died
	switch {
	case err == nil:
		return reply
	case errors.As(err, &died):
		return session.Reply{Error: s.replace(ctx, died)}
	default:
		return session.Reply{Error: &session.Failure{Name: "KernelError", Value: err.Error(), Traceback: []string{err.Error()}}}
	}
}

// replace starts a new session in place of a dead one and says what that means for the user.
func (s *Server) replace(ctx context.Context, died *session.Died) *session.Failure {
	const red, plain = "\x1b[31m", "\x1b[0m"
	f := &session.Failure{Name: "SessionDied", Value: died.Cause}
	f.Traceback = []string{red + died.Error() + plain}
	if s.isEnding() { // we ended it ourselves
		return f
	}
	s.options.Log.Printf("%v\n%s", died, died.Tail)
	if err := s.startChild(ctx); err != nil {
		f.Traceback = append(f.Traceback, fmt.Sprintf("It could not be started again: %v", err))
		return f
	}
	f.Traceback = append(f.Traceback, "A new session has been started. Variables and declarations are gone; run the cells that made them again.")
	return f
}
