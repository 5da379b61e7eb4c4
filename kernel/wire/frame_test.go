package wire

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzReadMessage feeds arbitrary bytes to the frame reader: it must never panic or allocate what is only announced, and
// what it accepts must survive a round trip.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte{0, 0})
	f.Add([]byte{1, 1, 'a', 0, 2, 'b', 'c'})
	f.Add([]byte{4, 5, 4, 'P', 'I', 'N', 'G'})
	f.Add([]byte{2, 0x40, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 'x', 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		frames, command, err := readMessage(bytes.NewReader(in))
		if err != nil || command {
			return
		}
		again, command, err := readMessage(bytes.NewReader(packMessage(frames)))
		if err != nil || command || len(again) != len(frames) {
			t.Fatalf("%d frames come back as %d, %v", len(frames), len(again), err)
		}
		for i := range frames {
			if !bytes.Equal(frames[i], again[i]) {
				t.Fatalf("frame %d changed", i)
			}
		}
	})
}

// FuzzDecode feeds arbitrary parts to the message decoder, signed with the right key.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"msg_type":"a","msg_id":"1"}`), []byte(`{}`), []byte(`{}`), []byte(`{"code":"1"}`))
	f.Add([]byte(`{"msg_type":1}`), []byte(`null`), []byte(`[]`), []byte(`{`))
	f.Fuzz(func(t *testing.T, header, parent, metadata, content []byte) {
		s := NewSigner("key")
		parts := [][]byte{header, parent, metadata, content}
		frames := append([][]byte{[]byte("id"), delimiter, s.sign(parts)}, parts...)
		m, err := s.Decode(frames)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("signed message: %v", err)
			}
			return
		}
		if m.Header.MsgType == "" || !isObject(m.Content) {
			t.Fatalf("accepted %q", frames)
		}
		if _, err := s.Decode(frames); !errors.Is(err, ErrReplay) {
			t.Fatalf("the same message again: %v", err)
		}
	})
}

func TestReadFrameLimits(t *testing.T) {
	for name, in := range map[string][]byte{
		"one terabyte":      {2, 0, 0, 1, 0, 0, 0, 0, 0},
		"2^63":              {2, 0x80, 0, 0, 0, 0, 0, 0, 0},
		"endless tiny ones": bytes.Repeat([]byte{1, 0}, MaxFrames+1),
	} {
		if _, _, err := readMessage(bytes.NewReader(in)); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v, want ErrLimit", name, err)
		}
	}
	if _, _, err := readMessage(bytes.NewReader([]byte{1, 1, 'a', 4, 0})); err == nil {
		t.Error("a command inside a message is accepted")
	}
}
