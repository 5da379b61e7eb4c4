package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestSignature checks against a value computed with Python's hmac module:
// hmac.new(b"a-key", b'{"msg_id":"1","msg_type":"t"}' + b"{}" + b"{}" + b'{"a":1}', "sha256").hexdigest()
func TestSignature(t *testing.T) {
	const want = "20b399da8b9de76c8313de96fe8cf6eea00a97164890dac98a1a35870556af1c"
	got := NewSigner("a-key").sign([][]byte{[]byte(`{"msg_id":"1","msg_type":"t"}`), []byte("{}"), []byte("{}"), []byte(`{"a":1}`)})
	if string(got) != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := func() [][]byte {
		frames, err := NewSigner("k").Encode(&Message{Identities: [][]byte{[]byte("id")}, Header: NewHeader("t", "s"), Buffers: [][]byte{{1}, {}}})
		if err != nil {
			t.Fatal(err)
		}
		return frames
	}
	if m, err := NewSigner("k").Decode(good()); err != nil || len(m.Buffers) != 2 || string(m.Content) != "{}" {
		t.Fatalf("a good message: %+v, %v", m, err)
	}
	for name, c := range map[string]struct {
		change func([][]byte) [][]byte
		want   error
	}{
		"no delimiter":     {func(f [][]byte) [][]byte { return f[2:] }, ErrMalformed},
		"cut":              {func(f [][]byte) [][]byte { return f[:5] }, ErrMalformed},
		"nothing":          {func([][]byte) [][]byte { return nil }, ErrMalformed},
		"another content":  {func(f [][]byte) [][]byte { f[6] = []byte(`{"a":2}`); return f }, ErrSignature},
		"no signature":     {func(f [][]byte) [][]byte { f[2] = nil; return f }, ErrSignature},
		"longer signature": {func(f [][]byte) [][]byte { f[2] = append(f[2], '0'); return f }, ErrSignature},
	} {
		if _, err := NewSigner("k").Decode(c.change(good())); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestReplayMemoryIsBounded sends more messages than the replay check remembers.
func TestReplayMemoryIsBounded(t *testing.T) {
	s := NewSigner("k")
	for i := range maxSignatures + 5000 {
		parts := [][]byte{fmt.Appendf(nil, `{"msg_type":"t","msg_id":"%d"}`, i), []byte("{}"), []byte("{}"), []byte("{}")}
		if err := s.check(s.sign(parts), parts); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.seen) > maxSignatures {
		t.Errorf("%d signatures kept, want at most %d", len(s.seen), maxSignatures)
	}
}

func TestConnectionFile(t *testing.T) {
	c, err := NewConnection()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sub", "c.json")
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: the key must stay the user's", info.Mode(), err)
	}
	got, err := ReadConnection(path)
	if err != nil || got != c {
		t.Errorf("read %+v, %v; wrote %+v", got, err, c)
	}
	for name, change := range map[string]func(*Connection){
		"transport": func(c *Connection) { c.Transport = "udp" }, "port": func(c *Connection) { c.HBPort = 0 }, "scheme": func(c *Connection) { c.SignatureScheme = "hmac-crc32" },
	} {
		bad := c
		change(&bad)
		b, _ := json.Marshal(bad)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConnection(path); err == nil {
			t.Errorf("a wrong %s is accepted", name)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConnection(path); err == nil {
		t.Error("half a file is accepted")
	}
}
