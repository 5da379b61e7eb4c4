package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"skep/kernel/display"
)

func TestPipeRoundTrip(t *testing.T) {
	var stream bytes.Buffer
	p := newPipe(&stream, &stream)
	r := rand.New(rand.NewPCG(1, 2))
	var want []packet
	for i := range 200 {
		pk := packet{Kind: "k", ID: uint64(i), Body: json.RawMessage(`{"a":1}`)}
		for range r.IntN(4) {
			b := make([]byte, r.IntN(3000))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			pk.Buffers = append(pk.Buffers, b)
		}
		if err := p.send(pk.Kind, pk.ID, pk.Body, pk.Buffers...); err != nil {
			t.Fatal(err)
		}
		want = append(want, pk)
	}
	for i, w := range want {
		got, err := p.receive()
		if err != nil || got.ID != w.ID || string(got.Body) != string(w.Body) || fmt.Sprint(got.Buffers) != fmt.Sprint(w.Buffers) {
			t.Fatalf("packet %d: %+v, %v", i, got, err)
		}
	}
	if _, err := p.receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzPipe(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		p := newPipe(bytes.NewReader(in), io.Discard)
		for {
			if _, err := p.receive(); err != nil {
				return
			}
		}
	})
}

func noOrigin() uint64 { return 0 }

// TestStdioOrder writes to both files and through both writers; the text comes in the order of the calls.
func TestStdioOrder(t *testing.T) {
	var mu sync.Mutex
	var got, want strings.Builder
	c, err := newStdio(func(_ uint64, name, text string) {
		mu.Lock()
		defer mu.Unlock()
		for range text {
			got.WriteByte(name[3]) // o or e
		}
	}, noOrigin)
	if err != nil {
		t.Fatal(err)
	}
	out, errs := c.streams[0].w, c.streams[1].w
	for i := range 300 {
		switch i % 3 {
		case 0:
			fmt.Fprint(out, "abc")
			want.WriteString("ooo")
		case 1:
			fmt.Fprint(c.writer(1), "de")
			want.WriteString("ee")
		case 2:
			fmt.Fprint(errs, "f")
			want.WriteString("e")
			c.sync()
		}
	}
	c.sync()
	mu.Lock()
	defer mu.Unlock()
	if got.String() != want.String() {
		t.Errorf("order\n%s\nwant\n%s", got.String(), want.String())
	}
}

// TestStdioCharacters cuts text inside characters: each arrives whole.
func TestStdioCharacters(t *testing.T) {
	const text = "aé€😀 – 漢字"
	var got []string
	c, err := newStdio(func(_ uint64, _, text string) { got = append(got, text) }, noOrigin)
	if err != nil {
		t.Fatal(err)
	}
	w := c.writer(0)
	for i := range len(text) {
		_, _ = w.Write([]byte(text[i : i+1])) // it cannot fail
	}
	if strings.Join(got, "") != text {
		t.Errorf("got %q", got)
	}
	for _, piece := range got {
		if strings.ContainsRune(piece, '\uFFFD') {
			t.Errorf("a broken piece: %q", piece)
		}
	}
}

type panics struct{}

func (panics) SimpleRender() display.MIMEMap { panic("no") }

func TestBundle(t *testing.T) {
	c := &child{}
	for _, v := range []struct {
		values []any
		want   string
	}{
		{nil, "null"}, {[]any{nil, nil}, "null"}, {[]any{3}, `{"data":{"text/plain":"3"},"metadata":{}}`},
		{[]any{1, "a", nil}, `{"data":{"text/plain":"1 a \u003cnil\u003e"},"metadata":{}}`},
		{[]any{nil, display.HTML("x")}, `{"data":{"text/html":"x","text/plain":"x"},"metadata":{}}`},
		{[]any{display.MakeData3("image/png", "p", []byte{1, 2})}, `{"data":{"image/png":"AQI=","text/plain":"p"},"metadata":{}}`},
		{[]any{display.MakeData3("image/svg+xml", "p", []byte("<svg/>"))}, `{"data":{"image/svg+xml":"\u003csvg/\u003e","text/plain":"p"},"metadata":{}}`},
	} {
		b, err := c.bundle(v.values)
		raw, _ := json.Marshal(b)
		if err != nil || string(raw) != v.want {
			t.Errorf("%v: %s, %v, want %s", v.values, raw, err, v.want)
		}
	}
	if _, err := c.bundle([]any{panics{}}); err == nil || !strings.Contains(err.Error(), "panics: no") {
		t.Errorf("a render method that panics: %v", err)
	}
	if err := c.Publish(display.HTML("x"), true); err == nil {
		t.Error("an update without a display id is accepted")
	}
}

func TestTailFindsTheCause(t *testing.T) {
	var l tail
	l.add([]byte("some warning\n"))
	l.add([]byte("fatal error: concurrent map writes\n\ngoroutine 1 [running]:\n"))
	for range 10000 {
		l.add([]byte("\t/some/file.go:12 +0x1\n"))
	}
	s := l.String()
	if !strings.HasPrefix(s, "fatal error: concurrent map writes\n") || len(s) > 3*tailBytes {
		t.Errorf("%d bytes that begin %q", len(s), s[:50])
	}
}
