package kernel

import (
	"context"
	"errors"
	"unicode/utf8"

	"skep/kernel/cell"
	"skep/kernel/session"
)

type codeRequest struct {
	Code      string `json:"code"`
	CursorPos *int   `json:"cursor_pos"` // in code points; nil: the end
}

// cursor returns the byte offset that the request asks about.
func (q codeRequest) cursor() int {
	if q.CursorPos == nil {
		return len(q.Code)
	}
	return byteOffset(q.Code, *q.CursorPos)
}

// byteOffset returns the byte offset of code point n of s.
func byteOffset(s string, n int) int {
	for i := range s {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(s)
}

func (s *Server) complete(ctx context.Context, r *request) (object, error) {
	var req codeRequest
	if err := r.decode(&req); err != nil {
		return nil, err
	}
	c, err := s.session().Complete(ctx, req.Code, req.cursor())
	var died *session.Died
	if errors.As(err, &died) { // the next cell starts a new session and says so; typing goes on meanwhile
		c, err = session.Completion{Start: req.cursor(), End: req.cursor()}, nil
	}
	if err != nil {
		return nil, err
	}
	start, end := utf8.RuneCountInString(req.Code[:c.Start]), utf8.RuneCountInString(req.Code[:c.End])
	matches, typed := []string{}, []object{}
	for _, it := range c.Items {
		matches = append(matches, it.Text)
		typed = append(typed, object{"text": it.Text, "type": it.Kind, "start": start, "end": end, "signature": it.Signature})
	}
	return object{
		"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": end,
		"metadata": object{"_jupyter_types_experimental": typed},
	}, nil
}

func (s *Server) inspect(ctx context.Context, r *request) (object, error) {
	var req codeRequest
	if err := r.decode(&req); err != nil {
		return nil, err
	}
	i, err := s.session().Inspect(ctx, req.Code, req.cursor())
	var died *session.Died
	if err != nil && !errors.As(err, &died) {
		return nil, err
	}
	data := object{}
	if i.Found {
		text := i.Declaration
		if i.Doc != "" {
			text += "\n\n" + i.Doc
		}
		data["text/plain"] = text
	}
	return object{"status": "ok", "found": i.Found, "data": data, "metadata": object{}}, nil
}

func (s *Server) isComplete(_ context.Context, r *request) (object, error) {
	var req codeRequest
	if err := r.decode(&req); err != nil {
		return nil, err
	}
	status, indent := cell.Status(req.Code)
	reply := object{"status": status}
	if status == "incomplete" {
		reply["indent"] = indent
	}
	return reply, nil
}
