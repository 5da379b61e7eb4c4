package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"skep/problems/spec"
)

// column ties a column to the field it is read into and written from. field is a pointer that database/sql can
// scan into, or one of the wrappers below. One list a row type serves INSERT, UPDATE and SELECT alike.
type column struct {
	name  string
	field any
}

func names(cols []column) string {
	list := make([]string, len(cols))
	for i, c := range cols {
		list[i] = c.name
	}
	return strings.Join(list, ", ")
}

func fields(cols []column) []any {
	list := make([]any, len(cols))
	for i, c := range cols {
		list[i] = c.field
	}
	return list
}

// values are what the columns hold now, as SQLite's types.
func values(cols []column) ([]any, error) {
	list := make([]any, len(cols))
	for i, c := range cols {
		v, err := plain(c.field)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
		list[i] = v
	}
	return list, nil
}

func plain(field any) (any, error) {
	switch p := field.(type) {
	case driver.Valuer:
		return p.Value()
	case *string:
		return text(*p), nil
	case *int:
		return int64(*p), nil
	case *int64:
		return *p, nil
	case *bool:
		return bit(*p), nil
	case *float64:
		return *p, nil
	case *[]byte:
		if *p == nil {
			return nil, nil
		}
		return *p, nil
	case **float64:
		if *p == nil || math.IsNaN(**p) {
			return nil, nil
		}
		return **p, nil
	case **bool:
		if *p == nil {
			return nil, nil
		}
		return bit(**p), nil
	}
	return nil, fmt.Errorf("type %T has no column", field)
}

// text is valid UTF-8: Python's sqlite3 refuses a row whose text is not, and a model may stop within a letter.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (m *Meta) columns() []column {
	return []column{
		{"run_id", &m.RunID}, {"created", unix{&m.Created}}, {"skep_version", &m.SkepVersion},
		{"problem", &m.Problem}, {"model", &m.Model}, {"model_hash", &m.ModelHash}, {"backend", &m.Backend},
		{"profile", &m.Profile}, {"seed", &m.Seed}, {"options", document{&m.Options, "null"}},
		{"assumptions", document{&m.Assumptions, "null"}}, {"assumptions_hash", &m.AssumptionsHash}, {"branch", &m.Branch},
	}
}

func (p *Program) columns() []column {
	return []column{
		{"hash", &p.Hash}, {"branch", &p.Branch}, {"round", &p.Round}, {"swarm", index{&p.Swarm}},
		{"kind", &p.Kind}, {"parents", document{&p.Parents, "[]"}}, {"description", &p.Description}, {"code", &p.Code},
		{"created", unix{&p.Created}}, {"lines_added", &p.LinesAdded}, {"lines_removed", &p.LinesRemoved},
	}
}

// columns of an evaluation, without the frame: it may be 16 MiB, so only Reader.Frame reads it.
func (e *Evaluation) columns() []column {
	return []column{
		{"program", &e.Program}, {"repeat", &e.Repeat}, {"outcome", (*string)(&e.Outcome)}, {"message", &e.Message},
		{"value", &e.Value}, {"claim", &e.Claim}, {"strict", &e.Strict},
		{"search_score", &e.Numbers.SearchScore}, {"table1_score", &e.Numbers.Table1Score},
		{"table_s5_value", &e.Numbers.TableS5Value}, {"strict_value", &e.Numbers.StrictValue},
		{"margins", margins{&e.Margins}}, {"stdout", &e.Stdout}, {"stderr", &e.Stderr},
		{"cpu", seconds{&e.CPU}}, {"wall", seconds{&e.Wall}}, {"tier", &e.Tier}, {"host", &e.Host},
		{"created", unix{&e.Created}},
	}
}

func (r *Round) columns() []column {
	return []column{
		{"branch", &r.Branch}, {"round", &r.N}, {"stage", (*string)(&r.Stage)}, {"forked", &r.Forked},
		{"seen", &r.Seen}, {"started", unix{&r.Started}}, {"extra", document{&r.Extra, "null"}},
	}
}

func (s *Swarm) columns() []column {
	return []column{
		{"kind", &s.Kind}, {"focus", &s.Focus}, {"parents", document{&s.Parents, "[]"}},
		{"temperature", &s.Temperature}, {"stage", (*string)(&s.Stage)}, {"stale", &s.Stale},
		{"kept", document{&s.Kept, "null"}}, {"view", document{&s.View, "null"}}, {"extra", document{&s.Extra, "null"}},
	}
}

func (a *Agent) columns() []column {
	return []column{
		{"phrasing", &a.Phrasing}, {"way", &a.Way}, {"parent", id{&a.Parent}}, {"prompt", &a.Prompt},
		{"tokens", &a.Tokens}, {"kept", &a.Kept}, {"dropped", &a.Dropped},
	}
}

func (s *Summary) columns() []column {
	return []column{
		{"program", id{&s.Program}}, {"text", &s.Text}, {"reason", &s.Reason}, {"tokens", &s.Tokens},
		{"seconds", seconds{&s.Took}}, {"drafted", &s.Drafted}, {"accepted", &s.Accepted},
		{"temperature", &s.Temperature},
	}
}

func (t *Timing) columns() []column {
	return []column{
		{"stage", &t.Stage}, {"swarm", index{&t.Swarm}}, {"started", unix{&t.Started}}, {"seconds", seconds{&t.Took}},
	}
}

func (e *Event) columns() []column {
	return []column{{"time", unix{&e.Time}}, {"level", &e.Level}, {"line", document{&e.Line, "null"}}}
}

// The wrappers: each is the driver.Valuer and sql.Scanner of one way of storing a field.
type (
	unix     struct{ p *time.Time }     // REAL, seconds since 1970, UTC, to a microsecond; the zero time is 0
	seconds  struct{ p *time.Duration } // REAL
	id       struct{ p *int64 }         // INTEGER; 0 is NULL
	index    struct{ p *int }           // INTEGER; -1 is NULL
	document struct {                   // TEXT, JSON
		p     any    // pointer to a slice or a json.RawMessage
		empty string // what a nil one is stored as: "null" or "[]"
	}
	margins struct{ p *[]spec.Margin } // TEXT, a JSON list of objects
)

func (u unix) Value() (driver.Value, error) {
	if u.p.IsZero() {
		return 0.0, nil
	}
	return float64(u.p.UnixMicro()) / 1e6, nil
}

func (u unix) Scan(v any) error {
	s, err := number(v)
	if err != nil || s == 0 {
		*u.p = time.Time{}
		return err
	}
	*u.p = time.UnixMicro(int64(math.Round(s * 1e6))).UTC()
	return nil
}

func (s seconds) Value() (driver.Value, error) { return s.p.Seconds(), nil }

func (s seconds) Scan(v any) error {
	f, err := number(v)
	*s.p = time.Duration(math.Round(f * 1e9))
	return err
}

func (i id) Value() (driver.Value, error) {
	if *i.p == 0 {
		return nil, nil
	}
	return *i.p, nil
}

func (i id) Scan(v any) error {
	*i.p, _ = v.(int64)
	return nil
}

func (i index) Value() (driver.Value, error) {
	if *i.p < 0 {
		return nil, nil
	}
	return int64(*i.p), nil
}

func (i index) Scan(v any) error {
	*i.p = -1
	if n, ok := v.(int64); ok {
		*i.p = int(n)
	}
	return nil
}

func (d document) Value() (driver.Value, error) {
	b, err := json.Marshal(d.p)
	if string(b) == "null" {
		return d.empty, err
	}
	return text(string(b)), err
}

func (d document) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("%v (%T) is no JSON text", v, v)
	}
	if s == d.empty {
		return nil
	}
	return json.Unmarshal([]byte(s), d.p)
}

// slack is a number that JSON may lack: NaN and infinities are strings, as strconv writes them.
type slack float64

func (f slack) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return json.Marshal(strconv.FormatFloat(float64(f), 'g', -1, 64))
	}
	return json.Marshal(float64(f))
}

func (f *slack) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*f = slack(v)
	return err
}

type marginRow struct {
	Family string `json:"family"`
	Slack  slack  `json:"slack"`
	At     string `json:"at"`
}

func (m margins) Value() (driver.Value, error) {
	rows := make([]marginRow, len(*m.p))
	for i, r := range *m.p {
		rows[i] = marginRow{r.Family, slack(r.Slack), r.At}
	}
	return document{&rows, "[]"}.Value()
}

func (m margins) Scan(v any) error {
	var rows []marginRow
	if err := (document{&rows, "[]"}).Scan(v); err != nil {
		return err
	}
	*m.p = nil
	for _, r := range rows {
		*m.p = append(*m.p, spec.Margin{Family: r.Family, Slack: float64(r.Slack), At: r.At})
	}
	return nil
}

func number(v any) (float64, error) {
	switch n := v.(type) {
	case float64:
		return n, nil
	case int64:
		return float64(n), nil
	}
	return 0, fmt.Errorf("%v (%T) is no number", v, v)
}
