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

// hfConfig is the part of config.json that matters. A nil field is absent or null.
type hfConfig struct {
	Type      string   `json:"model_type"`
	Layers    *int     `json:"num_hidden_layers"`
	Width     *int     `json:"hidden_size"`
	Heads     *int     `json:"num_attention_heads"`
	KVHeads   *int     `json:"num_key_value_heads"`
	HeadDim   *int     `json:"head_dim"`
	FFN       *int     `json:"intermediate_size"`
	Vocab     *int     `json:"vocab_size"`
	Context   *int     `json:"max_position_embeddings"`
	NormEps   *float64 `json:"rms_norm_eps"`
	RopeTheta *float64 `json:"rope_theta"`      // up to Transformers 4
	Rope      *hfRope  `json:"rope_parameters"` // from Transformers 5 on
	Tied      *bool    `json:"tie_word_embeddings"`

	End oneOrMore `json:"eos_token_id"`

	// What would make another model of it.
	RopeScaling    *hfRope         `json:"rope_scaling"`
	Activation     *string         `json:"hidden_act"`
	AttentionBias  bool            `json:"attention_bias"`
	MLPBias        bool            `json:"mlp_bias"`
	SlidingWindow  bool            `json:"use_sliding_window"`
	LayerTypes     []string        `json:"layer_types"`
	PartialRotary  *float64        `json:"partial_rotary_factor"`
	Quantization   json.RawMessage `json:"quantization_config"`
	PretrainingTP  *int            `json:"pretraining_tp"`
	EmbeddingScale *float64        `json:"embedding_multiplier"`
}

type hfRope struct {
	Type    string   `json:"rope_type"`
	OldType string   `json:"type"`
	Theta   *float64 `json:"rope_theta"`
	Partial *float64 `json:"partial_rotary_factor"`
}

func readConfig(folder string) (hfConfig, error) {
	var config hfConfig
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		return config, missing(err)
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	return config, nil
}

// shape checks that nothing unknown is asked for and takes the numbers over.
func (h hfConfig) shape() (Config, error) {
	c, err := newConfig(h.Type)
	if err != nil {
		return c, err
	}
	if err := h.refuse(); err != nil {
		return c, err
	}
	for _, number := range []struct {
		name string
		from *int
		to   *int
	}{
		{"num_hidden_layers", h.Layers, &c.Layers}, {"hidden_size", h.Width, &c.Width},
		{"num_attention_heads", h.Heads, &c.Heads}, {"num_key_value_heads", h.KVHeads, &c.KVHeads},
		{"intermediate_size", h.FFN, &c.FFN}, {"vocab_size", h.Vocab, &c.Vocab},
		{"max_position_embeddings", h.Context, &c.Context},
	} {
		if number.from == nil {
			return c, fmt.Errorf("%w: key %q is missing", ErrModel, number.name)
		}
		*number.to = *number.from
	}
	theta := h.RopeTheta
	if h.Rope != nil && h.Rope.Theta != nil {
		theta = h.Rope.Theta
	}
	if theta == nil || h.NormEps == nil {
		return c, fmt.Errorf("%w: key %q or %q is missing", ErrModel, "rope_theta", "rms_norm_eps")
	}
	c.RopeTheta, c.NormEps = *theta, *h.NormEps
	switch {
	case h.HeadDim != nil:
		c.HeadDim = *h.HeadDim
	case c.Arch != "qwen3" && c.Heads > 0 && c.Width%c.Heads == 0: // these architectures define it so
		c.HeadDim = c.Width / c.Heads
	default:
		return c, fmt.Errorf("%w: key %q is missing", ErrModel, "head_dim")
	}
	return c, nil
}

// refuse names the first key that asks for something else than a dense model of these families.
func (h hfConfig) refuse() error {
	window := slices.ContainsFunc(h.LayerTypes, func(t string) bool { return t != "full_attention" })
	for _, key := range []struct {
		name  string
		other bool
	}{
		{"rope_scaling", h.RopeScaling.scaled()},
		{"rope_parameters", h.Rope.scaled()},
		{"hidden_act", h.Activation != nil && *h.Activation != "silu"},
		{"attention_bias", h.AttentionBias},
		{"mlp_bias", h.MLPBias},
		{"use_sliding_window", h.SlidingWindow},
		{"layer_types", window},
		{"partial_rotary_factor", h.PartialRotary != nil && *h.PartialRotary != 1},
		{"quantization_config", len(h.Quantization) > 0 && string(h.Quantization) != "null"},
		{"pretraining_tp", h.PretrainingTP != nil && *h.PretrainingTP > 1},
		{"embedding_multiplier", h.EmbeddingScale != nil && *h.EmbeddingScale != 1},
	} {
		if key.other {
			return fmt.Errorf("%w: key %q asks for something that is not implemented", ErrModel, key.name)
		}
	}
	return nil
}

func (r *hfRope) scaled() bool {
	if r == nil {
		return false
	}
	plain := func(s string) bool { return s == "" || s == "default" }
	return !plain(r.Type) || !plain(r.OldType) || r.Partial != nil && *r.Partial != 1
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

// oneOrMore reads a JSON field that is a number or a list of numbers; nothing for null.
type oneOrMore []int

func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	var one *int
	if json.Unmarshal(data, &one) == nil {
		if one != nil {
			*o = oneOrMore{*one}
		}
		return nil
	}
	var many []int
	if err := json.Unmarshal(data, &many); err != nil {
		return errors.New("neither a number nor a list of numbers")
	}
	*o = many
	return nil
}
