package judge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"skep/problems/value"
)

// A frame is the one message that a candidate's process sends, on file descriptor 3, after the byte readyByte:
//
//	magic      8 bytes
//	length     u32, little-endian: bytes of the header, at most 1 MiB
//	header     strict JSON: {"status": "ok", "value": …, "arrays": [{"dtype": "f8", "shape": [26, 2]}, …]}
//	           or {"status": "exception", "type": …, "message": …, "traceback": …}
//	buffers    the arrays' bytes in order, little-endian, C order, at most 16 MiB in all
//	end        8 bytes
//
// Everything in it is a statement of the candidate's, a forged one included: it can hurt nobody but itself.
const (
	// readyByte says that the walls stand; it is sent before the candidate's source is compiled, so a process that
	// ends without it is our fault, and the candidate cannot fake that.
	readyByte  = 'R'
	frameMagic = "SKEPFR1\n"
	frameEnd   = "SKEPEND\n"

	maxHeaderBytes = 1 << 20
	maxArrayBytes  = 16 << 20
	maxFrameBytes  = len(frameMagic) + 4 + maxHeaderBytes + maxArrayBytes + len(frameEnd)

	maxDimensions = 8
)

// The statuses of a frame. All but "ok" carry type, message and traceback.
const (
	statusOK        = "ok"
	statusException = "exception"
	statusSyntax    = "syntax_error"
	statusBad       = "bad_result"
	statusLarge     = "result_limit"
	statusMemory    = "oom"
)

var itemBytes = map[string]int{
	"b1": 1, "i1": 1, "i2": 2, "i4": 4, "i8": 8, "u1": 1, "u2": 2, "u4": 4, "u8": 8, "f2": 2, "f4": 4, "f8": 8, "c8": 8, "c16": 16,
}

// errTooLarge marks a frame that says it is larger than a frame may be.
var errTooLarge = errors.New("the result is too large")

// reply is a decoded frame.
type reply struct {
	status                   string
	value                    value.Value // nil unless status is "ok"
	kind, message, traceback string      // of an exception: "ValueError", its text, the last lines
}

// header is a parsed frame header whose arrays are not there yet.
type header struct {
	reply
	tree   any // of the value, tags unread
	arrays []value.Array
	size   int // bytes of the whole frame
}

// frameReader takes a frame in pieces as they come through the pipe. The zero value is ready. One goroutine uses it.
type frameReader struct {
	ready  bool // the readyByte has come
	data   []byte
	header *header
	err    error // why this is no frame; the rest is still drained, to tell a large result from a wrong one
}

// Write takes the next bytes; it fails with errTooLarge when there are more than a frame may have.
func (f *frameReader) Write(p []byte) (int, error) {
	n := len(p)
	if !f.ready && n > 0 {
		if f.ready = p[0] == readyByte; !f.ready {
			f.err = errors.New("no frame: wrong first bytes")
		}
		p = p[1:]
	}
	if len(f.data)+len(p) > maxFrameBytes {
		f.data, f.err = nil, errTooLarge
		return 0, errTooLarge
	}
	f.data = append(f.data, p...)
	if f.header == nil && f.err == nil {
		f.header, f.err = parseHead(f.data)
	}
	return n, nil
}

// complete says whether a whole frame has come.
func (f *frameReader) complete() bool { return f.header != nil && len(f.data) >= f.header.size }

// reply decodes what has come once no more will; empty: nothing at all came.
func (f *frameReader) reply() (r reply, empty bool, err error) {
	if f.err != nil || len(f.data) == 0 {
		return reply{}, f.err == nil, f.err
	}
	r, err = decodeFrame(f.data)
	return r, false, err
}

// parseHead reads magic, length and header as far as they have come: nil and no error means more is needed.
func parseHead(data []byte) (*header, error) {
	if n := min(len(data), len(frameMagic)); string(data[:n]) != frameMagic[:n] {
		return nil, errors.New("no frame: wrong first bytes")
	}
	start := len(frameMagic) + 4
	if len(data) < start {
		return nil, nil
	}
	length := binary.LittleEndian.Uint32(data[len(frameMagic):])
	if length > maxHeaderBytes {
		return nil, fmt.Errorf("%w: a header of %d bytes, at most %d are allowed", errTooLarge, length, maxHeaderBytes)
	}
	if len(data)-start < int(length) {
		return nil, nil
	}
	h, arrayBytes, err := parseHeader(data[start : start+int(length)])
	if err != nil {
		return nil, err
	}
	h.size = start + int(length) + arrayBytes + len(frameEnd)
	return h, nil
}

// decodeFrame reads a whole frame. Nothing of a size that the frame merely claims is ever allocated.
func decodeFrame(data []byte) (reply, error) {
	h, err := parseHead(data)
	switch {
	case err != nil:
		return reply{}, err
	case h == nil || len(data) < h.size:
		return reply{}, fmt.Errorf("the frame breaks off after %d bytes", len(data))
	case len(data) > h.size:
		return reply{}, fmt.Errorf("%d bytes follow the frame", len(data)-h.size)
	case !bytes.HasSuffix(data, []byte(frameEnd)):
		return reply{}, errors.New("the frame's end marker is wrong")
	}
	if h.status != statusOK {
		return h.reply, nil
	}
	buffers := data[:h.size-len(frameEnd)]
	for i := len(h.arrays) - 1; i >= 0; i-- {
		a := &h.arrays[i]
		cut := len(buffers) - arraySize(a)
		a.Data, buffers = bytes.Clone(buffers[cut:]), buffers[:cut]
	}
	d := tagDecoder{arrays: h.arrays, used: make([]bool, len(h.arrays))}
	h.reply.value, err = d.value(h.tree, 0)
	return h.reply, err
}

// DecodeFrame reads the value of a stored Result.Frame.
func DecodeFrame(frame []byte) (value.Value, error) {
	r, err := decodeFrame(frame)
	if err == nil && r.status != statusOK {
		err = fmt.Errorf("it holds no value but the status %q", r.status)
	}
	if err != nil {
		return nil, fmt.Errorf("judge: decode frame: %w", err)
	}
	return r.value, nil
}

func parseHeader(text []byte) (*header, int, error) {
	v, err := parseJSON(text)
	if err != nil {
		return nil, 0, err
	}
	o, ok := v.(object)
	if !ok {
		return nil, 0, errors.New("the header is no object")
	}
	h := &header{}
	h.status, _ = o["status"].(string)
	switch h.status {
	case statusOK:
		if _, ok := o["value"]; !ok || len(o) != 3 {
			return nil, 0, errors.New(`the header's keys are not "status", "value" and "arrays"`)
		}
		h.tree = o["value"]
		var total int
		h.arrays, total, err = parseArrays(o["arrays"])
		return h, total, err
	case statusException, statusSyntax, statusBad, statusLarge, statusMemory:
		h.kind, _ = o["type"].(string)
		h.message, _ = o["message"].(string)
		h.traceback, _ = o["traceback"].(string)
		return h, 0, nil
	default:
		return nil, 0, fmt.Errorf("the header has the unknown status %q", clip(h.status, 40))
	}
}

// parseArrays reads the list of array descriptions and adds up their bytes.
func parseArrays(v any) (arrays []value.Array, total int, err error) {
	list, ok := v.([]any)
	if !ok {
		return nil, 0, errors.New(`the header's "arrays" is no list`)
	}
	for i, item := range list {
		a, err := parseArray(item)
		if err != nil {
			return nil, 0, fmt.Errorf("array %d: %w", i, err)
		}
		arrays = append(arrays, a)
		if total += arraySize(&a); total > maxArrayBytes {
			return nil, 0, fmt.Errorf("%w: its arrays have more than %d bytes", errTooLarge, maxArrayBytes)
		}
	}
	return arrays, total, nil
}

func parseArray(v any) (value.Array, error) {
	o, _ := v.(object)
	dtype, _ := o["dtype"].(string)
	dims, ok := o["shape"].([]any)
	if !ok || len(o) != 2 || itemBytes[dtype] == 0 {
		return value.Array{}, fmt.Errorf("the dtype %q is not on the list, or the shape is none", clip(dtype, 20))
	}
	if len(dims) > maxDimensions {
		return value.Array{}, fmt.Errorf("%d dimensions, at most %d are allowed", len(dims), maxDimensions)
	}
	a := value.Array{DType: dtype, Shape: make([]int, len(dims))}
	size := itemBytes[dtype]
	for i, dim := range dims {
		n, err := smallInt(dim, math.MaxInt32)
		if err != nil {
			return value.Array{}, fmt.Errorf("shape: %w", err)
		}
		a.Shape[i] = n
		// size stays ≤ 16 MiB and n below 2³¹, so the product fits; a later 0 does not excuse an absurd size.
		if size *= max(n, 1); size > maxArrayBytes {
			return value.Array{}, fmt.Errorf("%w: an array has more than %d bytes", errTooLarge, maxArrayBytes)
		}
	}
	return a, nil
}

// arraySize is the number of bytes of an array whose shape has been checked.
func arraySize(a *value.Array) int {
	size := itemBytes[a.DType]
	for _, n := range a.Shape {
		size *= n
	}
	return size
}
