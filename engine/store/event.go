package store

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"
)

// Event writes one line to the run's log, as log/slog does: a message and pairs of key and value. Values of keys
// that name a secret are left out.
func (s *Store) Event(ctx context.Context, level slog.Level, message string, pairs ...any) error {
	e := Event{Time: time.Now(), Level: levelName(level)}
	var line bytes.Buffer
	record := slog.NewRecord(e.Time, level, message, 0)
	record.Add(pairs...)
	if err := slog.NewJSONHandler(&line, &slog.HandlerOptions{Level: level, ReplaceAttr: redact}).Handle(ctx, record); err != nil {
		return err
	}
	e.Line = json.RawMessage(bytes.TrimSpace(line.Bytes()))
	return s.write(ctx, func(t *tx) error {
		_, err := t.insert("events", e.columns())
		return err
	})
}

// levelName is the nearest named level below.
func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "DEBUG"
	case l < slog.LevelWarn:
		return "INFO"
	case l < slog.LevelError:
		return "WARN"
	}
	return "ERROR"
}

// redact hides what an attribute named like a secret holds. "tokens" is a count, so only whole words are taken.
func redact(_ []string, a slog.Attr) slog.Attr {
	for _, word := range strings.FieldsFunc(strings.ToLower(a.Key), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		switch word {
		case "key", "apikey", "token", "secret", "password", "authorization":
			return slog.String(a.Key, "redacted")
		}
	}
	return a
}

// Events returns the run's log from the event after the id given, oldest first; after 0 all of it.
func (r *Reader) Events(ctx context.Context, after int64) (list []Event, err error) {
	err = r.snapshot(ctx, func(q *query) error {
		e := &Event{}
		q.each("events", append(e.columns(), column{"id", &e.ID}), "WHERE id > ?", []any{after}, "id", func() {
			list = append(list, *e)
			*e = Event{}
		})
		return q.err
	})
	return list, err
}
