package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"  // only where a connection file asks for it
	"crypto/sha1" // the same
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// ProtocolVersion is the Jupyter messaging version written into every header.
const ProtocolVersion = "5.5"

// Header names a message. Field names are the protocol's.
type Header struct {
	MsgID      string `json:"msg_id"`
	MsgType    string `json:"msg_type"`
	Username   string `json:"username"`
	Session    string `json:"session"`
	Date       string `json:"date"`
	Version    string `json:"version"`
	SubshellID string `json:"subshell_id,omitempty"`
}

// NewHeader returns a header of a new message of the given type and session.
func NewHeader(msgType, session string) Header {
	return Header{
		MsgID: uuid.NewString(), MsgType: msgType, Username: "skep", Session: session,
		Date: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), Version: ProtocolVersion,
	}
}

// Message is one Jupyter message. The JSON parts are kept as they came, so that a reply repeats its request's header
// exactly.
type Message struct {
	Identities [][]byte // routing: the peers' identities on shell, control and stdin; one topic on iopub
	Header     Header
	RawHeader  json.RawMessage // the header as received; nil on messages that we make
	Parent     json.RawMessage // nil: {}
	Metadata   json.RawMessage // nil: {}
	Content    json.RawMessage // nil: {}
	Buffers    [][]byte        // not signed; owned by the receiver
}

// Decoding errors that a caller can test for. All of them mean: drop the message and go on.
var (
	ErrMalformed = errors.New("wire: malformed message")
	ErrSignature = errors.New("wire: wrong signature")
	ErrReplay    = errors.New("wire: repeated message")
)

var delimiter = []byte("<IDS|MSG>")

// maxSignatures is how many signatures the replay check remembers; over it a random tenth is forgotten (jupyter_client's rule).
const maxSignatures = 65536

// Signer signs and checks messages of one connection. It is safe for concurrent use.
type Signer struct {
	key  []byte
	hash func() hash.Hash

	mu   sync.Mutex
	seen map[string]struct{}
}

// NewSigner returns a signer with HMAC-SHA256 for a key. An empty key turns signing and the replay check off.
func NewSigner(key string) *Signer {
	return &Signer{key: []byte(key), hash: sha256.New, seen: map[string]struct{}{}}
}

// schemes are the signature schemes that a connection file may name. Jupyter writes hmac-sha256 unless told otherwise.
var schemes = map[string]func() hash.Hash{
	"hmac-md5": md5.New, "hmac-sha1": sha1.New, "hmac-sha224": sha256.New224, "hmac-sha256": sha256.New,
	"hmac-sha384": sha512.New384, "hmac-sha512": sha512.New,
}

// Decode checks frames (identities, delimiter, signature, header, parent header, metadata, content, buffers) and
// returns the message. It returns ErrMalformed, ErrSignature or ErrReplay, wrapped.
func (s *Signer) Decode(frames [][]byte) (*Message, error) {
	at := -1
	for i, f := range frames {
		if bytes.Equal(f, delimiter) {
			at = i
			break
		}
	}
	if at < 0 || len(frames) < at+6 {
		return nil, fmt.Errorf("%w: %d frames, delimiter at %d", ErrMalformed, len(frames), at)
	}
	parts := slices.Clone(frames[at+2 : at+6])
	if err := s.check(frames[at+1], parts); err != nil {
		return nil, err
	}
	for i := 1; i < len(parts); i++ { // some clients write null for what they leave out
		if b := bytes.TrimSpace(parts[i]); len(b) == 0 || string(b) == "null" {
			parts[i] = []byte("{}")
		}
	}
	m := &Message{
		Identities: frames[:at], RawHeader: parts[0], Parent: parts[1], Metadata: parts[2], Content: parts[3],
		Buffers: frames[at+6:],
	}
	for _, p := range parts {
		if !isObject(p) {
			return nil, fmt.Errorf("%w: a part is not a JSON object", ErrMalformed)
		}
	}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return nil, fmt.Errorf("%w: header: %v", ErrMalformed, err)
	}
	if m.Header.MsgType == "" {
		return nil, fmt.Errorf("%w: header without msg_type", ErrMalformed)
	}
	return m, nil
}

func isObject(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

func (s *Signer) check(signature []byte, parts [][]byte) error {
	if len(s.key) == 0 {
		return nil
	}
	if !hmac.Equal(signature, s.sign(parts)) {
		return ErrSignature
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.seen[string(signature)]; again {
		return ErrReplay
	}
	if len(s.seen) >= maxSignatures {
		for k := range s.seen {
			if rand.IntN(10) == 0 {
				delete(s.seen, k)
			}
		}
	}
	s.seen[string(signature)] = struct{}{}
	return nil
}

// sign returns the hexadecimal HMAC over the four JSON parts.
func (s *Signer) sign(parts [][]byte) []byte {
	h := hmac.New(s.hash, s.key)
	for _, p := range parts {
		h.Write(p)
	}
	return hex.AppendEncode(nil, h.Sum(nil))
}

// Encode returns m's frames, signed.
func (s *Signer) Encode(m *Message) ([][]byte, error) {
	header, err := json.Marshal(m.Header)
	if err != nil {
		return nil, fmt.Errorf("wire: header: %w", err)
	}
	parts := [][]byte{header, orEmpty(m.Parent), orEmpty(m.Metadata), orEmpty(m.Content)}
	var signature []byte
	if len(s.key) > 0 {
		signature = s.sign(parts)
	}
	frames := make([][]byte, 0, len(m.Identities)+6+len(m.Buffers))
	frames = append(frames, m.Identities...)
	frames = append(frames, delimiter, signature)
	frames = append(frames, parts...)
	return append(frames, m.Buffers...), nil
}

func orEmpty(b json.RawMessage) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}
