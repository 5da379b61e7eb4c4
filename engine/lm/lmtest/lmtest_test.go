package lmtest

import (
	"testing"

	"skep/engine/lm"
)

// The pulled model opens, and is the one of the manifest.
func TestSmolLM(t *testing.T) {
	m, err := lm.Open(SmolLM(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, info := range lm.Manifest() {
		if info.Name == "smollm2-135m" && info.SHA256 != m.Hash {
			t.Errorf("hash %s, manifest %s", m.Hash, info.SHA256)
		}
	}
	if m.Config.Layers != 30 || m.Config.Width != 576 || !m.Config.Tied {
		t.Errorf("config %+v", m.Config)
	}
}
