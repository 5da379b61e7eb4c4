package lm

import (
	"encoding/binary"
	"fmt"
	"math"
)

// GGUF, the file format of llama.cpp (versions 2 and 3): a header, metadata, tensor infos, then the tensor data at an
// aligned offset. Every count and offset is checked against the bytes that are there before anything is allocated.

// gguf is a parsed file. Tensors and arrays alias the bytes it was parsed from.
type gguf struct {
	meta    map[string]ggufValue
	tensors map[string]Tensor
}

// ggufType is the type of a metadata value.
type ggufType uint32

const (
	ggufUint8 ggufType = iota
	ggufInt8
	ggufUint16
	ggufInt16
	ggufUint32
	ggufInt32
	ggufFloat32
	ggufBool
	ggufString
	ggufArray
	ggufUint64
	ggufInt64
	ggufFloat64
)

// ggufWidth holds the bytes of one value of each type of fixed size; a string takes at least its length field.
var ggufWidth = map[ggufType]int{
	ggufUint8: 1, ggufInt8: 1, ggufUint16: 2, ggufInt16: 2, ggufUint32: 4, ggufInt32: 4, ggufFloat32: 4,
	ggufBool: 1, ggufString: 8, ggufUint64: 8, ggufInt64: 8, ggufFloat64: 8,
}

// ggufValue is one metadata value in its raw form: of an array, the type, number and bytes of its elements.
type ggufValue struct {
	kind  ggufType // of the elements when array is set
	array bool
	n     int // elements; 1 unless array
	raw   []byte
}

const ggufMaxDims = 4

// parseGGUF reads everything but the tensor data itself.
func parseGGUF(data []byte) (*gguf, error) {
	r := &ggufReader{data: data}
	if magic := r.take(4); string(magic) != "GGUF" {
		return nil, fmt.Errorf("%w: not a GGUF file (it starts with %q)", ErrModel, magic)
	}
	if version := r.uint32(); r.err == nil && version != 2 && version != 3 {
		return nil, fmt.Errorf("%w: GGUF version %d; versions 2 and 3 are read", ErrModel, version)
	}
	nTensors, nMeta := r.count(ggufMinTensor, "tensors"), r.count(ggufMinMeta, "metadata entries")
	g := &gguf{meta: map[string]ggufValue{}, tensors: map[string]Tensor{}}
	if r.err != nil {
		return nil, r.err
	}
	for range nMeta {
		key := r.string("a metadata key")
		if _, twice := g.meta[key]; twice {
			r.fail("metadata key %q stands twice", key)
		}
		g.meta[key] = r.value(key)
		if r.err != nil {
			return nil, r.err
		}
	}
	if n, err := g.int("split.count"); err == nil && n > 1 {
		return nil, fmt.Errorf("%w: the file is one of %d parts: join them with llama-gguf-split --merge", ErrModel, n)
	}
	return g, g.readTensors(r, nTensors)
}

// The least bytes that one entry of the two tables can take: name length, then type and value, or dimensions, type
// and offset.
const (
	ggufMinMeta   = 8 + 4 + 1
	ggufMinTensor = 8 + 4 + 8 + 4 + 8
)

// readTensors reads n tensor infos and cuts the tensors out of the data behind them.
func (g *gguf) readTensors(r *ggufReader, n int) error {
	align, err := g.alignment()
	if err != nil {
		return err
	}
	var infos []ggufInfo // grown by what is there, not by what is announced
	for range n {
		infos = append(infos, r.tensorInfo())
		if r.err != nil {
			return r.err
		}
	}
	start := (uint64(r.pos) + align - 1) / align * align
	for _, info := range infos {
		if _, twice := g.tensors[info.name]; twice {
			return fmt.Errorf("%w: tensor %q stands twice", ErrModel, info.name)
		}
		data, err := info.cut(r.data, start, align)
		if err != nil {
			return err
		}
		g.tensors[info.name] = Tensor{info.name, info.kind, info.shape, data}
	}
	return nil
}

// alignment is that of the tensor data, 32 unless the file says otherwise.
func (g *gguf) alignment() (uint64, error) {
	const key = "general.alignment"
	if _, ok := g.meta[key]; !ok {
		return 32, nil
	}
	n, err := g.int(key)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > 1<<20 || n&(n-1) != 0 {
		return 0, fmt.Errorf("%w: %s is %d, not a power of two", ErrModel, key, n)
	}
	return uint64(n), nil
}

// ggufInfo is an entry of the tensor table.
type ggufInfo struct {
	name   string
	kind   DType
	shape  []int // rows, cols; the file has them reversed
	offset uint64
}

// cut returns the tensor's bytes. A tensor of a type that is not read keeps no data; naming it is an error later.
func (i ggufInfo) cut(file []byte, start, align uint64) ([]byte, error) {
	if elems, _ := i.kind.Block(); elems == 0 {
		return nil, nil
	}
	rows := 1
	for _, n := range i.shape[:len(i.shape)-1] {
		if rows > math.MaxInt32 {
			return nil, fmt.Errorf("%w: tensor %q has an impossible shape %v", ErrModel, i.name, i.shape)
		}
		rows *= n
	}
	size, err := i.kind.size(rows, i.shape[len(i.shape)-1])
	if err != nil {
		return nil, fmt.Errorf("%w: tensor %q %w", ErrModel, i.name, err)
	}
	room := uint64(len(file)) - min(start, uint64(len(file)))
	if i.offset%align != 0 {
		return nil, fmt.Errorf("%w: tensor %q starts at %d, not a multiple of %d", ErrModel, i.name, i.offset, align)
	}
	if i.offset > room || uint64(size) > room-i.offset {
		return nil, fmt.Errorf("%w: tensor %q needs bytes %d to %d of the data, the file has %d: it is truncated or corrupt",
			ErrModel, i.name, i.offset, i.offset+uint64(size), room)
	}
	return file[start+i.offset:][:size:size], nil
}

// ggufReader walks over the header. The first fault sticks in err, and every later read returns zero.
type ggufReader struct {
	data []byte
	pos  int
	err  error
}

func (r *ggufReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrModel}, args...)...)
	}
}

// take returns the next n bytes, or nil once anything failed.
func (r *ggufReader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.data)-r.pos {
		r.fail("the header ends at byte %d of %d: the file is truncated or corrupt", r.pos, len(r.data))
		return nil
	}
	b := r.data[r.pos:][:n:n]
	r.pos += n
	return b
}

func (r *ggufReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *ggufReader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of entries, which must be able to fit in the rest of the file at least bytes each.
func (r *ggufReader) count(least int, what string) int {
	n := r.uint64()
	if room := uint64(len(r.data)-r.pos) / uint64(least); n > room {
		r.fail("%s: %d announced, the rest of the file can hold %d at most", what, n, room)
		return 0
	}
	return int(n)
}

func (r *ggufReader) string(what string) string { return string(r.take(r.count(1, what))) }

func (r *ggufReader) value(key string) ggufValue {
	kind := ggufType(r.uint32())
	v := ggufValue{kind: kind, n: 1}
	if kind == ggufArray {
		v.kind, v.array = ggufType(r.uint32()), true
		width, ok := ggufWidth[v.kind]
		if !ok {
			r.fail("metadata %q is an array of type %d, which is not read", key, v.kind)
			return v
		}
		v.n = r.count(width, key)
	}
	from := r.pos
	switch width, ok := ggufWidth[v.kind]; {
	case !ok:
		r.fail("metadata %q has the unknown type %d", key, v.kind)
	case v.kind == ggufString:
		for range v.n {
			r.take(r.count(1, key))
		}
	default:
		r.take(v.n * width)
	}
	v.raw = r.data[from:r.pos]
	return v
}

func (r *ggufReader) tensorInfo() ggufInfo {
	info := ggufInfo{name: r.string("a tensor name")}
	dims := r.uint32()
	if r.err == nil && (dims < 1 || dims > ggufMaxDims) {
		r.fail("tensor %q has %d dimensions", info.name, dims)
		return info
	}
	info.shape = make([]int, dims)
	for i := range info.shape {
		n := r.uint64()
		if r.err == nil && (n < 1 || n > math.MaxInt32) {
			r.fail("tensor %q has a dimension of %d", info.name, n)
		}
		info.shape[len(info.shape)-1-i] = int(n)
	}
	info.kind, info.offset = DType(r.uint32()), r.uint64()
	return info
}
