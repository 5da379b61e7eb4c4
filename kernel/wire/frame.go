package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of one ZMTP message. Jupyter servers cut messages far below them; they exist so that a header cannot make
// this process allocate without end.
const (
	MaxMessageBytes = 512 << 20
	MaxFrames       = 4096
)

// ErrLimit is returned when a peer announces more than MaxMessageBytes or MaxFrames.
var ErrLimit = errors.New("wire: message over the limit")

// Bits of a ZMTP 3 frame's first byte (RFC 23).
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// readFrame reads one frame of at most limit bytes. Memory grows with the bytes that arrive, not with the announced size.
func readFrame(r io.Reader, limit uint64) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(r, head[:2]); err != nil {
		return 0, nil, err
	}
	flags = head[0]
	size := uint64(head[1])
	if flags&flagLong != 0 {
		if _, err = io.ReadFull(r, head[2:]); err != nil {
			return 0, nil, noEOF(err)
		}
		size = binary.BigEndian.Uint64(head[1:])
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 {
		return 0, nil, fmt.Errorf("wire: frame with unknown flags %#x", flags)
	}
	if size > limit {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, %d allowed", ErrLimit, size, limit)
	}
	var b bytes.Buffer
	if _, err = io.CopyN(&b, r, int64(size)); err != nil {
		return 0, nil, noEOF(err)
	}
	return flags, b.Bytes(), nil
}

// readMessage reads frames up to the last of one message, or a single command frame.
func readMessage(r io.Reader) (frames [][]byte, command bool, err error) {
	left := uint64(MaxMessageBytes)
	for {
		flags, body, err := readFrame(r, left)
		if err != nil {
			return nil, false, err
		}
		if flags&flagCommand != 0 {
			if flags&flagMore != 0 || len(frames) > 0 {
				return nil, false, errors.New("wire: command inside a message")
			}
			return [][]byte{body}, true, nil
		}
		frames = append(frames, body)
		left -= uint64(len(body))
		if flags&flagMore == 0 {
			return frames, false, nil
		}
		if len(frames) == MaxFrames {
			return nil, false, fmt.Errorf("%w: more than %d frames", ErrLimit, MaxFrames)
		}
	}
}

// appendFrame appends the ZMTP form of body to dst.
func appendFrame(dst []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		dst = append(dst, flags|flagLong)
		dst = binary.BigEndian.AppendUint64(dst, uint64(len(body)))
	} else {
		dst = append(dst, flags, byte(len(body)))
	}
	return append(dst, body...)
}

// packMessage returns frames as the bytes of one ZMTP message.
func packMessage(frames [][]byte) []byte {
	size := 0
	for _, f := range frames {
		size += len(f) + 9
	}
	dst := make([]byte, 0, size)
	for i, f := range frames {
		var flags byte
		if i < len(frames)-1 {
			flags = flagMore
		}
		dst = appendFrame(dst, flags, f)
	}
	return dst
}

// noEOF turns the end of a stream inside a frame into an unexpected one.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
