package lm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

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
