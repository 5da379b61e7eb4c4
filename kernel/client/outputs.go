package client

import (
	"encoding/json"
	"strings"

	"skep/kernel/wire"
)

// recorder turns iopub messages into the outputs of one notebook's cells. Its owner serialises calls.
type recorder struct {
	cells    map[string]*Cell            // by request id
	clear    map[*Cell]bool              // clear_output(wait) is pending
	displays map[string][]map[string]any // outputs by display id
}

func newRecorder() *recorder {
	return &recorder{cells: map[string]*Cell{}, clear: map[*Cell]bool{}, displays: map[string][]map[string]any{}}
}

// record applies a message and returns the cell it belongs to, nil when it changes no output.
func (r *recorder) record(m *wire.Message) *Cell {
	var parent wire.Header
	_ = json.Unmarshal(m.Parent, &parent) // {}: belongs to no cell
	cell := r.cells[parent.MsgID]
	var content map[string]any
	if cell == nil || json.Unmarshal(m.Content, &content) != nil {
		return nil
	}
	switch m.Header.MsgType {
	case "stream":
		r.stream(cell, content)
	case "display_data", "execute_result":
		r.display(cell, m.Header.MsgType, content)
	case "update_display_data":
		r.update(content)
	case "error":
		r.add(cell, map[string]any{"output_type": "error", "ename": content["ename"], "evalue": content["evalue"], "traceback": content["traceback"]})
	case "clear_output":
		if wait, _ := content["wait"].(bool); wait {
			r.clear[cell] = true
		} else {
			cell.setOutputs([]any{})
		}
	default:
		return nil
	}
	return cell
}

func (r *recorder) add(cell *Cell, output map[string]any) {
	if r.clear[cell] {
		delete(r.clear, cell)
		cell.setOutputs([]any{})
	}
	cell.setOutputs(append(cell.Outputs(), output))
}

// stream appends text to the cell's last output if that is the same stream.
func (r *recorder) stream(cell *Cell, content map[string]any) {
	text, _ := content["text"].(string)
	if outs := cell.Outputs(); len(outs) > 0 && !r.clear[cell] {
		if last, ok := outs[len(outs)-1].(map[string]any); ok && last["output_type"] == "stream" && last["name"] == content["name"] {
			last["text"] = splitLines(joinLines(last["text"]) + text)
			return
		}
	}
	r.add(cell, map[string]any{"output_type": "stream", "name": content["name"], "text": splitLines(text)})
}

func (r *recorder) display(cell *Cell, kind string, content map[string]any) {
	output := map[string]any{"output_type": kind, "data": stored(content["data"]), "metadata": content["metadata"]}
	if kind == "execute_result" {
		output["execution_count"] = content["execution_count"]
	}
	r.add(cell, output)
	if id := displayID(content); id != "" {
		r.displays[id] = append(r.displays[id], output)
	}
}

// update replaces every output that shows the display.
func (r *recorder) update(content map[string]any) {
	for _, output := range r.displays[displayID(content)] {
		output["data"], output["metadata"] = stored(content["data"]), content["metadata"]
	}
}

func displayID(content map[string]any) string {
	t, _ := content["transient"].(map[string]any)
	id, _ := t["display_id"].(string)
	return id
}

// stored is a MIME bundle as the notebook format keeps it: texts as lists of lines.
func stored(data any) map[string]any {
	out := map[string]any{}
	bundle, _ := data.(map[string]any)
	for mime, v := range bundle {
		if s, ok := v.(string); ok && (strings.HasPrefix(mime, "text/") || mime == "image/svg+xml" || mime == "application/javascript") {
			v = splitLines(s)
		}
		out[mime] = v
	}
	return out
}
