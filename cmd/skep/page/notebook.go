package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// notebook is what the page needs of nbformat 4 (https://nbformat.readthedocs.io).
type notebook struct {
	Format   int    `json:"nbformat"`
	Cells    []cell `json:"cells"`
	Metadata struct {
		Title    string `json:"title"`
		Kernel   kernel `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type kernel struct {
	DisplayName string `json:"display_name"`
	Language    string `json:"language"`
}

type cell struct {
	Type     string `json:"cell_type"` // markdown, code or raw
	Source   lines  `json:"source"`
	Count    *int   `json:"execution_count"` // nil: not executed
	Metadata struct {
		Execution map[string]string `json:"execution"` // times of messages, RFC 3339
	} `json:"metadata"`
	Attachments map[string]map[string]lines `json:"attachments"` // name → MIME type → base64
	Outputs     []output                    `json:"outputs"`
}

type output struct {
	Type      string                     `json:"output_type"` // stream, display_data, execute_result or error
	Name      string                     `json:"name"`        // stdout or stderr
	Text      lines                      `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Metadata  map[string]json.RawMessage `json:"metadata"`
	Error     string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// lines is a string that nbformat may split into a list of lines.
type lines string

func (t *lines) UnmarshalJSON(data []byte) error {
	var whole string
	if err := json.Unmarshal(data, &whole); err == nil {
		*t = lines(whole)
		return nil
	}
	var parts []string
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("a text must be a string or a list of strings, not %.40s", data)
	}
	*t = lines(strings.Join(parts, ""))
	return nil
}

// decode reads a notebook of format 4.
func decode(data []byte) (notebook, error) {
	var nb notebook
	if err := json.Unmarshal(data, &nb); err != nil {
		return nb, fmt.Errorf("page: this is not a notebook: %w", err)
	}
	if nb.Format != 4 {
		return nb, fmt.Errorf("page: nbformat %d can't be shown, only 4: open and save it in JupyterLab to convert it", nb.Format)
	}
	return nb, nil
}

// language of the code cells, in lower case.
func (nb notebook) language() string {
	if nb.Metadata.Language.Name != "" {
		return strings.ToLower(nb.Metadata.Language.Name)
	}
	return strings.ToLower(nb.Metadata.Kernel.Language)
}

// title is the notebook's own title, or its first heading, or "".
func (nb notebook) title() string {
	if nb.Metadata.Title != "" {
		return nb.Metadata.Title
	}
	for _, c := range nb.Cells {
		if c.Type != "markdown" {
			continue
		}
		for line := range strings.Lines(string(c.Source)) {
			if heading, ok := strings.CutPrefix(line, "# "); ok {
				return strings.TrimSpace(heading)
			}
		}
	}
	return ""
}

// took is how long the cell ran, by the times that the executing client noted; false when it noted none.
func (c cell) took() (time.Duration, bool) {
	var at [2]time.Time
	for i, names := range [2][2]string{{"iopub.status.busy", "iopub.execute_input"}, {"iopub.status.idle", "shell.execute_reply"}} {
		for _, name := range names {
			if t, err := time.Parse(time.RFC3339Nano, c.Metadata.Execution[name]); err == nil {
				at[i] = t
				break
			}
		}
	}
	took := at[1].Sub(at[0])
	return took, !at[0].IsZero() && !at[1].IsZero() && took >= 0
}
