package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Notebook is a Jupyter notebook of format 4. Everything it does not know is kept as it is.
type Notebook struct {
	raw   map[string]any
	cells []*Cell
}

// Cell is one cell of a notebook.
type Cell struct {
	raw map[string]any
}

// ReadNotebook reads a notebook file.
func ReadNotebook(path string) (*Notebook, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("notebook: %w", err)
	}
	nb, err := ParseNotebook(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return nb, nil
}

// ParseNotebook decodes a notebook.
func ParseNotebook(b []byte) (*Notebook, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	nb := &Notebook{}
	if err := d.Decode(&nb.raw); err != nil {
		return nil, fmt.Errorf("notebook: not JSON: %w", err)
	}
	if v, _ := nb.raw["nbformat"].(json.Number); v != "4" {
		return nil, fmt.Errorf("notebook: nbformat is %v, want 4", nb.raw["nbformat"])
	}
	cells, ok := nb.raw["cells"].([]any)
	if !ok {
		return nil, errors.New("notebook: no list of cells")
	}
	for i, c := range cells {
		raw, ok := c.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("notebook: cell %d is no object", i+1)
		}
		nb.cells = append(nb.cells, &Cell{raw})
	}
	return nb, nil
}

// Cells returns the notebook's cells, of all types; they are shared, not copied.
func (nb *Notebook) Cells() []*Cell { return nb.cells }

// Encode returns the notebook as Jupyter writes it: sorted keys, one space of indentation.
func (nb *Notebook) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(nb.raw); err != nil {
		return nil, fmt.Errorf("notebook: %w", err)
	}
	return b.Bytes(), nil
}

// Save writes the notebook; a reader never sees a half-written one.
func (nb *Notebook) Save(path string) error {
	b, err := nb.Encode()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".notebook-*")
	if err != nil {
		return fmt.Errorf("notebook: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("notebook: %w", err), os.Remove(f.Name()))
	}
	return nil
}

// IsCode reports whether c is a code cell.
func (c *Cell) IsCode() bool { return c.raw["cell_type"] == "code" }

// Source is the cell's text.
func (c *Cell) Source() string { return joinLines(c.raw["source"]) }

// Outputs are the cell's outputs in the notebook format.
func (c *Cell) Outputs() []any {
	o, _ := c.raw["outputs"].([]any)
	return o
}

func (c *Cell) setOutputs(o []any) { c.raw["outputs"] = o }

func (c *Cell) setCount(n int) {
	c.raw["execution_count"] = n
	if n == 0 {
		c.raw["execution_count"] = nil
	}
}

func joinLines(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, line := range v {
			if s, ok := line.(string); ok {
				b.WriteString(s)
			}
		}
		return b.String()
	}
	return ""
}

// splitLines is the format's form of a text: a list of lines with their ends.
func splitLines(s string) []any {
	lines := []any{}
	for line := range strings.Lines(s) {
		lines = append(lines, line)
	}
	return lines
}
