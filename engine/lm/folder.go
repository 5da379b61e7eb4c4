package lm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A model folder as Hugging Face Transformers saves it: config.json, model.safetensors or shards with an index,
// tokenizer.json, and optionally generation_config.json, tokenizer_config.json and chat_template.jinja.

func (m *Model) openFolder() error {
	config, err := readConfig(m.Path)
	if err != nil {
		return err
	}
	if m.Config, err = config.shape(); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	if err := m.mapShards(); err != nil {
		return err
	}
	_, hasHead := m.tensors["output.weight"]
	m.Config.Tied = !hasHead
	if config.Tied != nil {
		m.Config.Tied = *config.Tied
	}
	if m.Config.Tied { // some files keep a copy of the embedding under the head's name
		delete(m.tensors, "output.weight")
	}
	ends, err := endTokens(m.Path, config)
	if err != nil {
		return err
	}
	if m.Tokenizer, err = openTokenizer(filepath.Join(m.Path, "tokenizer.json"), ends); err != nil {
		return missing(err)
	}
	template, err := chatTemplate(m.Path)
	if err != nil {
		return err
	}
	m.Chat = newChat(template, m.Tokenizer)
	return nil
}

// missing turns the absence of a file that every model folder has into ErrModel.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return err
}

// mapShards maps every safetensors file of the folder and collects the tensors under their GGUF names.
func (m *Model) mapShards() error {
	shards, placed, err := shardNames(m.Path)
	if err != nil {
		return err
	}
	m.tensors = map[string]Tensor{}
	for _, shard := range shards {
		mapped, err := openMapping(filepath.Join(m.Path, shard))
		if err != nil {
			return missing(err)
		}
		m.maps = append(m.maps, mapped)
		tensors, err := parseSafetensors(mapped.data)
		if err != nil {
			return fmt.Errorf("%s: %w", shard, err)
		}
		for name, t := range tensors {
			if home, ok := placed[name]; placed != nil && (!ok || home != shard) {
				return fmt.Errorf("%w: the index does not place tensor %q in %s", ErrModel, name, shard)
			}
			if t.Name = ggufName(name); t.Name == "" {
				continue
			}
			if _, twice := m.tensors[t.Name]; twice {
				return fmt.Errorf("%w: tensor %q stands twice", ErrModel, name)
			}
			m.tensors[t.Name] = t
		}
	}
	m.Hash, err = m.hashFolder(shards)
	return err
}

// shardNames lists the safetensors files in name order, and where the index places each tensor (nil without index).
func shardNames(folder string) (files []string, placed map[string]string, err error) {
	data, err := os.ReadFile(filepath.Join(folder, "model.safetensors.index.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{"model.safetensors"}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil || len(index.Map) == 0 {
		return nil, nil, fmt.Errorf("%w: model.safetensors.index.json has no weight_map (%v)", ErrModel, err)
	}
	files = slices.Compact(slices.Sorted(maps.Values(index.Map)))
	for _, file := range files {
		if file != filepath.Base(file) || !strings.HasSuffix(file, ".safetensors") {
			return nil, nil, fmt.Errorf("%w: model.safetensors.index.json names the file %q", ErrModel, file)
		}
	}
	return files, index.Map, nil
}

// hashFolder is the SHA-256 over name and SHA-256 of every file that makes the model.
func (m *Model) hashFolder(shards []string) (string, error) {
	whole := sha256.New()
	for i, shard := range shards {
		fmt.Fprintf(whole, "%s %x\n", shard, sha256.Sum256(m.maps[i].data))
	}
	for _, name := range []string{"config.json", "tokenizer.json"} {
		data, err := os.ReadFile(filepath.Join(m.Path, name))
		if err != nil {
			return "", missing(err)
		}
		fmt.Fprintf(whole, "%s %x\n", name, sha256.Sum256(data))
	}
	return hex.EncodeToString(whole.Sum(nil)), nil
}

var (
	hfLayer = regexp.MustCompile(`^model\.layers\.(\d+)\.(.+)\.(weight|bias)$`)
	hfParts = map[string]string{
		"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
		"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
		"self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
		"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
	}
	hfWhole = map[string]string{
		"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
		"lm_head.weight": "output.weight",
	}
)

// ggufName translates a tensor's name; names without a translation stay and are refused later. "" means that the
// tensor is a table that old files store although it follows from the configuration.
func ggufName(name string) string {
	if strings.HasSuffix(name, ".rotary_emb.inv_freq") {
		return ""
	}
	if whole, ok := hfWhole[name]; ok {
		return whole
	}
	if m := hfLayer.FindStringSubmatch(name); m != nil {
		if part, ok := hfParts[m[2]]; ok {
			return "blk." + m[1] + "." + part + "." + m[3]
		}
	}
	return name
}

// endTokens are the ids that end a text: those of generation_config.json and of config.json.
func endTokens(folder string, config hfConfig) ([]int, error) {
	ends := slices.Clone(config.End)
	var generation struct {
		End oneOrMore `json:"eos_token_id"`
	}
	if err := readOptional(folder, "generation_config.json", &generation); err != nil {
		return nil, err
	}
	return append(ends, generation.End...), nil
}

// chatTemplate is the template of chat_template.jinja, else of tokenizer_config.json, else "".
func chatTemplate(folder string) (string, error) {
	data, err := os.ReadFile(filepath.Join(folder, "chat_template.jinja"))
	if !errors.Is(err, fs.ErrNotExist) {
		return string(data), err
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := readOptional(folder, "tokenizer_config.json", &config); err != nil || config.Template == nil {
		return "", err
	}
	var one string
	if json.Unmarshal(config.Template, &one) == nil {
		return one, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(config.Template, &named); err != nil {
		return "", fmt.Errorf("%w: tokenizer_config.json: chat_template: %w", ErrModel, err)
	}
	for _, t := range named {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", nil
}

// readOptional decodes a JSON file of the folder when there is one.
func readOptional(folder, name string, into any) error {
	data, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrModel, name, err)
	}
	return nil
}
