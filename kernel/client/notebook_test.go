package client

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skep/kernel/wire"
)

func TestParseNotebookRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "x", "another format": `{"nbformat": 3, "cells": []}`, "no cells": `{"nbformat": 4}`, "a cell that is none": `{"nbformat": 4, "cells": [1]}`,
	} {
		if _, err := ParseNotebook([]byte(text)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := ReadNotebook(filepath.Join(t.TempDir(), "missing.ipynb")); err == nil {
		t.Error("a missing file is accepted")
	}
}

// TestSaveKeepsWhatItDoesNotKnow writes a notebook back: unknown fields, numbers and text stay as they were.
func TestSaveKeepsWhatItDoesNotKnow(t *testing.T) {
	const text = "{\n \"cells\": [\n  {\n   \"attachments\": {},\n   \"cell_type\": \"raw\",\n   \"id\": \"r\",\n   \"source\": [\n    \"<a> & b\"\n   ]\n  }\n ],\n" +
		" \"metadata\": {\n  \"n\": 12345678901234567890,\n  \"x\": 1.50\n },\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
	nb, err := ParseNotebook([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	if err := nb.Save(path); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("saved %v\n%s", err, b)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".notebook-*")); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

// message makes an iopub message of request "r".
func message(msgType, content string) *wire.Message {
	return &wire.Message{Header: wire.Header{MsgType: msgType}, Parent: json.RawMessage(`{"msg_id": "r"}`), Content: json.RawMessage(content)}
}

func TestRecorder(t *testing.T) {
	const display = `{"data": {"text/plain": "%s", "image/png": "AQ=="}, "metadata": {}, "transient": {"display_id": "d"}}`
	for name, c := range map[string]struct {
		messages []*wire.Message
		want     string
	}{
		"streams join": {[]*wire.Message{
			message("stream", `{"name": "stdout", "text": "a\nb"}`), message("stream", `{"name": "stdout", "text": "c\n"}`), message("stream", `{"name": "stderr", "text": "e"}`),
		}, `[{"name":"stdout","output_type":"stream","text":["a\n","bc\n"]},{"name":"stderr","output_type":"stream","text":["e"]}]`},
		"update replaces all": {[]*wire.Message{
			message("display_data", fmt.Sprintf(display, "1")), message("display_data", fmt.Sprintf(display, "1")), message("update_display_data", fmt.Sprintf(display, "2")),
		}, strings.Repeat(`,{"data":{"image/png":"AQ==","text/plain":["2"]},"metadata":{},"output_type":"display_data"}`, 2)},
		"clear at once": {[]*wire.Message{message("stream", `{"name": "stdout", "text": "a"}`), message("clear_output", `{"wait": false}`)}, `[]`},
		"clear waits": {[]*wire.Message{
			message("stream", `{"name": "stdout", "text": "a"}`), message("clear_output", `{"wait": true}`), message("stream", `{"name": "stdout", "text": "b"}`),
		}, `[{"name":"stdout","output_type":"stream","text":["b"]}]`},
		"status is no output": {[]*wire.Message{message("status", `{"execution_state": "busy"}`)}, `null`},
	} {
		cell := &Cell{raw: map[string]any{}}
		r := newRecorder()
		r.cells["r"] = cell
		for _, m := range c.messages {
			r.record(m)
		}
		got, err := json.Marshal(cell.Outputs())
		want := c.want
		if strings.HasPrefix(want, ",") {
			want = "[" + want[1:] + "]"
		}
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, want)
		}
	}
}
