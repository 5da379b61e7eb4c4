package lm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// safetensors, the file format of Hugging Face: eight bytes of header length, a JSON header, then the data. Every byte
// of the data belongs to one tensor.

// safetensorsMaxHeader is the format's own limit.
const safetensorsMaxHeader = 100_000_000

type safetensorsEntry struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

var safetensorsTypes = map[string]DType{"F32": F32, "F16": F16, "BF16": BF16}

// parseSafetensors cuts a file into its tensors, under the names that the file gives them. They alias file.
func parseSafetensors(file []byte) (map[string]Tensor, error) {
	if len(file) < 8 {
		return nil, fmt.Errorf("%w: %d bytes are no safetensors file", ErrModel, len(file))
	}
	size := binary.LittleEndian.Uint64(file)
	if size > safetensorsMaxHeader || size > uint64(len(file)-8) {
		return nil, fmt.Errorf("%w: a header of %d bytes announced, the file has %d: truncated, or no safetensors file",
			ErrModel, size, len(file)-8)
	}
	entries, err := safetensorsHeader(file[8:][:size])
	if err != nil {
		return nil, err
	}
	data := file[8+size:]
	tensors := make(map[string]Tensor, len(entries))
	for name, entry := range entries {
		if tensors[name], err = entry.cut(name, data); err != nil {
			return nil, err
		}
	}
	return tensors, checkCoverage(entries, len(data))
}

// safetensorsHeader decodes the header by hand at the top level, so that a name that stands twice is noticed.
func safetensorsHeader(header []byte) (map[string]safetensorsEntry, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("%w: the header is no JSON object (%v)", ErrModel, err)
	}
	entries := map[string]safetensorsEntry{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: header: %w", ErrModel, err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("%w: header at %v: %w", ErrModel, name, err)
		}
		if name == "__metadata__" {
			continue
		}
		var entry safetensorsEntry
		if err := json.Unmarshal(raw, &entry); err != nil {
			return nil, fmt.Errorf("%w: tensor %q: %w", ErrModel, name, err)
		}
		if _, twice := entries[name.(string)]; twice {
			return nil, fmt.Errorf("%w: tensor %q stands twice", ErrModel, name)
		}
		entries[name.(string)] = entry
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, fmt.Errorf("%w: header: %w", ErrModel, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows the header's JSON object", ErrModel)
	}
	return entries, nil
}

// cut returns the tensor of one entry, whose size must be exactly that of its data.
func (e safetensorsEntry) cut(name string, data []byte) (Tensor, error) {
	t := Tensor{Name: name}
	if len(e.Offsets) != 2 || e.Offsets[0] > e.Offsets[1] || e.Offsets[1] > uint64(len(data)) {
		return t, fmt.Errorf("%w: tensor %q has the offsets %v, the data %d bytes: truncated or corrupt",
			ErrModel, name, e.Offsets, len(data))
	}
	t.Data = data[e.Offsets[0]:e.Offsets[1]:e.Offsets[1]]
	kind, ok := safetensorsTypes[e.Type]
	if !ok {
		return t, fmt.Errorf("%w: tensor %q has type %q; F32, F16 and BF16 are read from safetensors", ErrModel, name, e.Type)
	}
	t.Type = kind
	if len(e.Shape) == 0 || len(e.Shape) > 2 {
		return t, fmt.Errorf("%w: tensor %q has shape %v, neither vector nor matrix", ErrModel, name, e.Shape)
	}
	_, bytes := kind.Block()
	size := int64(bytes)
	for _, n := range e.Shape {
		if n < 1 || n > math.MaxInt32 || size > math.MaxInt64/n {
			return t, fmt.Errorf("%w: tensor %q has an impossible shape %v", ErrModel, name, e.Shape)
		}
		size *= n
		t.Shape = append(t.Shape, int(n))
	}
	if size != int64(len(t.Data)) {
		return t, fmt.Errorf("%w: tensor %q of shape %v needs %d bytes, its offsets hold %d", ErrModel, name, e.Shape, size, len(t.Data))
	}
	return t, nil
}

// checkCoverage makes sure that the tensors follow each other without gap or overlap, as the format demands.
func checkCoverage(entries map[string]safetensorsEntry, size int) error {
	spans := make([][]uint64, 0, len(entries))
	for _, e := range entries {
		spans = append(spans, e.Offsets)
	}
	slices.SortFunc(spans, func(a, b []uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	end := uint64(0)
	for _, s := range spans {
		if s[0] != end {
			return fmt.Errorf("%w: tensors overlap or leave a gap at byte %d of the data", ErrModel, end)
		}
		end = s[1]
	}
	if end != uint64(size) {
		return fmt.Errorf("%w: the tensors take %d bytes, the data has %d", ErrModel, end, size)
	}
	return nil
}
