package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The two number formats of hidden states, in numpy's words: little-endian float16 and float32.
const (
	halfFloat   = "<f2"
	singleFloat = "<f4"
)

// npyMagic begins a .npy file of format version 1.0 (numpy.lib.format); a header of at most 65,535 bytes follows.
const npyMagic = "\x93NUMPY\x01\x00"

// writeNPY writes data in C order with the given shape as a .npy file of the given number format.
func writeNPY(w io.Writer, dtype string, shape []int, data []float32) error {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d, ", n)
	}
	tuple := strings.TrimSuffix(dims.String(), " ")
	if len(shape) != 1 {
		tuple = strings.TrimSuffix(tuple, ",") // (3,) but (3, 4)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", dtype, tuple)
	const align = 64 // numpy pads so that the data can be memory-mapped
	pad := align - (len(npyMagic)+2+len(header)+1)%align
	header += strings.Repeat(" ", pad%align) + "\n"

	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString(npyMagic)
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	b.WriteString(header)
	var word [4]byte
	for _, x := range data {
		b.Write(appendFloat(word[:0], dtype, x))
	}
	return b.Flush()
}

func appendFloat(b []byte, dtype string, x float32) []byte {
	if dtype == halfFloat {
		return binary.LittleEndian.AppendUint16(b, toHalf(x))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
}

// readNPY reads what writeNPY wrote, and nothing else that numpy may write. size is the size of the whole file: a
// shape that does not fit it is refused before anything is allocated.
func readNPY(r io.Reader, size int64) (shape []int, data []float32, err error) {
	start := make([]byte, len(npyMagic)+2)
	if _, err := io.ReadFull(r, start); err != nil || string(start[:len(npyMagic)]) != npyMagic {
		return nil, nil, errors.New("not a .npy file of version 1.0")
	}
	header := make([]byte, binary.LittleEndian.Uint16(start[len(npyMagic):]))
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, nil, fmt.Errorf(".npy header: %w", err)
	}
	dtype, shape, err := parseHeader(string(header))
	if err != nil {
		return nil, nil, err
	}
	width := map[string]int64{halfFloat: 2, singleFloat: 4}[dtype]
	room := (size - int64(len(start)+len(header))) / width
	n := int64(1)
	for _, d := range shape {
		if d > 0 && n > room/int64(d) {
			return nil, nil, fmt.Errorf(".npy of shape %v does not fit its %d bytes", shape, size)
		}
		n *= int64(d)
	}
	if want := int64(len(start)+len(header)) + n*width; want != size {
		return nil, nil, fmt.Errorf(".npy of shape %v is %d bytes, not %d", shape, want, size)
	}
	body := make([]byte, n*width)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, nil, fmt.Errorf(".npy data: %w", err)
	}
	return shape, decodeFloats(body, dtype), nil
}

func decodeFloats(body []byte, dtype string) []float32 {
	if dtype == halfFloat {
		data := make([]float32, len(body)/2)
		for i := range data {
			data[i] = fromHalf(binary.LittleEndian.Uint16(body[2*i:]))
		}
		return data
	}
	data := make([]float32, len(body)/4)
	for i := range data {
		data[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
	}
	return data
}

// parseHeader takes the header apart, a Python literal that numpy writes with sorted keys in just this form.
func parseHeader(h string) (dtype string, shape []int, err error) {
	bad := fmt.Errorf(".npy header %.80q is not one of ours", h)
	rest, ok := strings.CutPrefix(h, "{'descr': '")
	dtype, rest, found := strings.Cut(rest, "', 'fortran_order': False, 'shape': (")
	tuple, tail, closed := strings.Cut(rest, ")")
	if !ok || !found || !closed || dtype != halfFloat && dtype != singleFloat {
		return "", nil, bad
	}
	if t := strings.TrimRight(tail, " \n"); t != ", }" && t != "}" {
		return "", nil, bad
	}
	for _, d := range strings.Split(strings.TrimSuffix(tuple, ","), ", ") {
		if tuple == "" {
			break // (): one number
		}
		n, err := strconv.Atoi(d)
		if err != nil || n < 0 {
			return "", nil, bad
		}
		shape = append(shape, n)
	}
	return dtype, shape, nil
}

// halfLimit is where float16 becomes infinite: half way between its largest number and the next that it would have.
const halfLimit = 65520

// toHalf rounds to the nearest float16, ties to even, as IEEE 754 and numpy do.
func toHalf(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	exp, frac := int(bits>>23&0xff)-127+15, bits&0x7fffff
	switch {
	case bits&0x7f800000 == 0x7f800000: // infinity, or NaN with its leading bits
		if frac != 0 && frac>>13 == 0 {
			frac = 1 << 13 // a NaN must not become infinity
		}
		return sign | 0x7c00 | uint16(frac>>13)
	case exp >= 31:
		return sign | 0x7c00
	case exp <= 0: // subnormal: the leading 1 is written out, and the fraction moves right
		if exp < -10 {
			return sign
		}
		return sign | round(frac|0x800000, uint(14-exp))
	}
	return sign | round(uint32(exp)<<23|frac, 13) // a carry runs into the exponent, up to infinity
}

// round shifts v right by n bits, to the nearest, ties to even.
func round(v uint32, n uint) uint16 {
	half := uint32(1)<<(n-1) - 1
	return uint16((v + half + v>>n&1) >> n)
}

// fromHalf is exact.
func fromHalf(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0:
		x := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}
