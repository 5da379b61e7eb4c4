package session

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"skep/kernel/cell"
	"skep/kernel/display"
)

// bundle is display data in the protocol's form: no null, bytes as base64.
type bundle struct {
	Data      map[string]any `json:"data"`
	Metadata  map[string]any `json:"metadata"`
	Transient map[string]any `json:"transient,omitempty"`
}

// newBundle encodes d as front ends and the notebook format want it: JSON types hold any value, text types (SVG among
// them) a string, all others base64. nil is left out.
func newBundle(d display.Data) *bundle {
	b := &bundle{Data: map[string]any{}, Metadata: map[string]any{}, Transient: d.Transient}
	for mime, v := range d.Data {
		if v != nil {
			b.Data[mime] = mimeValue(mime, v)
		}
	}
	for k, v := range d.Metadata {
		b.Metadata[k] = v
	}
	return b
}

func mimeValue(mime string, v any) any {
	raw, isBytes := v.([]byte)
	text := strings.HasPrefix(mime, "text/") || mime == display.MIMETypeSVG || mime == display.MIMETypeJavaScript
	switch _, isString := v.(string); {
	case mime == display.MIMETypeJSON || strings.HasSuffix(mime, "+json"):
		if isBytes && json.Valid(raw) {
			return json.RawMessage(raw)
		}
		return v
	case isBytes && text:
		return string(raw)
	case isBytes:
		return base64.StdEncoding.EncodeToString(raw)
	case isString:
		return v
	}
	return fmt.Sprint(v)
}

// result puts out the values of a cell's last expression.
func (c *child) result(values []any) error {
	b, err := c.bundle(values)
	if err != nil || b == nil {
		return err
	}
	return c.send("execute_result", b)
}

// bundle turns values into one output, nil for none: a single value that can show itself does so, several become text
// joined by spaces, and nil alone shows nothing.
func (c *child) bundle(values []any) (*bundle, error) {
	var shown any
	n := 0
	for _, v := range values {
		if v != nil {
			shown, n = v, n+1
		}
	}
	if n == 0 {
		return nil, nil
	}
	if n == 1 {
		d, ok, err := c.render(shown)
		if err != nil {
			return nil, err
		}
		if ok {
			return newBundle(d), nil
		}
	}
	return newBundle(display.MakeData(display.MIMETypeText, textOf(values))), nil
}

// render asks the value, then the binding. A panic in a value's own method is an error of the cell.
func (c *child) render(v any) (d display.Data, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			msg := fmt.Sprintf("showing a %T: %v", v, r)
			err = &cell.Error{Name: "panic", Value: msg, Traceback: []string{msg}}
		}
	}()
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return d, false, nil
	}
	if d, ok = display.Render(v); ok || c.binding.Render == nil {
		return d, ok, nil
	}
	d, ok = c.binding.Render(v)
	return d, ok, nil
}

func textOf(values []any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, " ")
}

// Publish shows d; it implements display.Publisher for the cells and the program's packages.
func (c *child) Publish(d display.Data, update bool) error {
	kind := "display_data"
	if update {
		if d.Transient["display_id"] == nil {
			return errors.New(`display: an update needs Transient["display_id"]`)
		}
		kind = "update_display_data"
	}
	return c.send(kind, newBundle(d))
}

// Clear removes the running cell's outputs.
func (c *child) Clear(wait bool) error {
	return c.send("clear_output", map[string]any{"wait": wait})
}

var _ display.Publisher = (*child)(nil)
