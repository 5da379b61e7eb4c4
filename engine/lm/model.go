package lm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Model is an open model: its shape, tokenizer, chat format, and its tensors mapped from the file. It is read-only
// and safe for concurrent use until Close.
type Model struct {
	Name      string // the file's own name for the model, else the file name
	Path      string
	Hash      string // SHA-256 of the file in hex; of a folder, over the names and hashes of its files
	Config    Config
	Tokenizer *Tokenizer
	Chat      Chat

	tensors map[string]Tensor
	maps    []*mapping
}

// Open maps a model file: a .gguf file, or a folder with config.json, tokenizer.json and safetensors files. Every
// tensor that the model needs is there with the right shape when Open returns. The caller closes the model.
//
// A file that is truncated, corrupt, incomplete or of another kind gives an error that wraps ErrModel and names what
// is wrong; a missing file one that wraps fs.ErrNotExist.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Name: strings.TrimSuffix(filepath.Base(path), ".gguf")}
	if info.IsDir() {
		err = m.openFolder()
	} else {
		err = m.openGGUF()
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	return m, nil
}

// Close unmaps the file: every Tensor of the model is invalid from then on.
func (m *Model) Close() error {
	var errs []error
	for _, mapped := range m.maps {
		errs = append(errs, mapped.close())
	}
	m.maps, m.tensors = nil, nil
	return errors.Join(errs...)
}

// Tensor returns the tensor of that GGUF name ("token_embd.weight", "blk.0.attn_q.weight"), which must have that
// shape (rows, cols). Otherwise the error wraps ErrModel and names both.
func (m *Model) Tensor(name string, shape ...int) (Tensor, error) {
	t, ok := m.tensors[name]
	if !ok {
		return t, fmt.Errorf("%w: tensor %q is missing", ErrModel, name)
	}
	if !slices.Equal(t.Shape, shape) {
		return t, fmt.Errorf("%w: tensor %q has shape %v, expected %v", ErrModel, name, t.Shape, shape)
	}
	if elems, _ := t.Type.Block(); elems == 0 {
		_, err := t.Type.size(1, 1)
		return t, fmt.Errorf("%w: tensor %q %w", ErrModel, name, err)
	}
	return t, nil
}

func (m *Model) openGGUF() error {
	mapped, err := openMapping(m.Path)
	if err != nil {
		return err
	}
	m.maps = append(m.maps, mapped)
	g, err := parseGGUF(mapped.data)
	if err != nil {
		return err
	}
	if name, err := g.string("general.name"); err == nil {
		m.Name = name
	}
	m.tensors = g.tensors
	if m.Config, err = g.config(); err != nil {
		return err
	}
	if m.Tokenizer, err = g.tokenizer(); err != nil {
		return err
	}
	template := "" // optional: a model without one is no chat model
	if _, ok := g.meta["tokenizer.chat_template"]; ok {
		if template, err = g.string("tokenizer.chat_template"); err != nil {
			return err
		}
	}
	m.Chat = newChat(template, m.Tokenizer)
	_, hasOutput := g.tensors["output.weight"]
	m.Config.Tied = !hasOutput
	sum := sha256.Sum256(mapped.data)
	m.Hash = hex.EncodeToString(sum[:])
	return nil
}

// newConfig starts the shape of an architecture with what its name alone implies.
func newConfig(arch string) (Config, error) {
	switch arch {
	case "llama", "qwen2", "qwen3":
		return Config{Arch: arch, QKVBias: arch == "qwen2", QKNorm: arch == "qwen3"}, nil
	}
	return Config{}, fmt.Errorf("%w: architecture %q is not supported (llama, qwen2 and qwen3 are)", ErrModel, arch)
}

// check completes Config from the embedding and makes sure that the file holds exactly the tensors of such a model.
// A tensor that the forward pass would ignore is an error too: it would silently compute another model.
func (m *Model) check() error {
	embedding, ok := m.tensors["token_embd.weight"]
	if !ok || len(embedding.Shape) != 2 {
		return fmt.Errorf("%w: tensor %q is missing or no matrix", ErrModel, "token_embd.weight")
	}
	rows := embedding.Shape[0]
	if m.Config.Vocab != 0 && m.Config.Vocab != rows {
		return fmt.Errorf("%w: a vocabulary of %d announced, but the embedding has %d rows", ErrModel, m.Config.Vocab, rows)
	}
	m.Config.Vocab = rows
	if err := m.Config.check(); err != nil {
		return err
	}
	if n := m.Tokenizer.Len(); n > m.Config.Vocab {
		return fmt.Errorf("%w: %d tokens, but the embedding has only %d rows", ErrModel, n, m.Config.Vocab)
	}
	if layers := len(m.tensors); m.Config.Layers > layers {
		return fmt.Errorf("%w: %d layers announced, but there are only %d tensors", ErrModel, m.Config.Layers, layers)
	}
	want := m.Config.tensors()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, err := m.Tensor(name, want[name]...); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.tensors)) {
		if _, used := want[name]; !used {
			return fmt.Errorf("%w: tensor %q has no place in a dense %s model; ignoring it could compute another model",
				ErrModel, name, m.Config.Arch)
		}
	}
	return nil
}

// check refuses shapes that no model of these families has.
func (c Config) check() error {
	for _, field := range []struct {
		name  string
		value int
	}{
		{"layers", c.Layers}, {"width", c.Width}, {"heads", c.Heads}, {"key/value heads", c.KVHeads},
		{"head width", c.HeadDim}, {"feed-forward width", c.FFN}, {"vocabulary", c.Vocab}, {"context", c.Context},
	} {
		if field.value < 1 || field.value > math.MaxInt32 {
			return fmt.Errorf("%w: %s is %d", ErrModel, field.name, field.value)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%w: %d heads do not share %d key/value heads evenly", ErrModel, c.Heads, c.KVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("%w: head width %d is odd, rotation needs pairs", ErrModel, c.HeadDim)
	case !(c.RopeTheta > 1) || !(c.NormEps > 0 && c.NormEps < 1):
		return fmt.Errorf("%w: rope base %g or norm epsilon %g out of range", ErrModel, c.RopeTheta, c.NormEps)
	}
	return nil
}

// tensors are the names and shapes that a model of this shape consists of.
func (c Config) tensors() map[string][]int {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	all := map[string][]int{"token_embd.weight": {c.Vocab, c.Width}, "output_norm.weight": {c.Width}}
	if !c.Tied {
		all["output.weight"] = []int{c.Vocab, c.Width}
	}
	for layer := range c.Layers {
		block := map[string][]int{
			"attn_norm.weight": {c.Width}, "ffn_norm.weight": {c.Width},
			"attn_q.weight": {q, c.Width}, "attn_k.weight": {kv, c.Width}, "attn_v.weight": {kv, c.Width},
			"attn_output.weight": {c.Width, q},
			"ffn_gate.weight":    {c.FFN, c.Width}, "ffn_up.weight": {c.FFN, c.Width}, "ffn_down.weight": {c.Width, c.FFN},
		}
		if c.QKVBias {
			block["attn_q.bias"], block["attn_k.bias"], block["attn_v.bias"] = []int{q}, []int{kv}, []int{kv}
		}
		if c.QKNorm {
			block["attn_q_norm.weight"], block["attn_k_norm.weight"] = []int{c.HeadDim}, []int{c.HeadDim}
		}
		for name, shape := range block {
			all[fmt.Sprintf("blk.%d.%s", layer, name)] = shape
		}
	}
	return all
}
