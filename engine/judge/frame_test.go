package judge

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"skep/problems/value"
)

// framed puts a header and buffers into a frame, without the ready byte.
func framed(header string, buffers string) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(frameMagic), uint32(len(header)))
	return append(append(append(b, header...), buffers...), frameEnd...)
}

func okFrame(v, arrays, buffers string) []byte {
	return framed(`{"status":"ok","value":`+v+`,"arrays":[`+arrays+`]}`, buffers)
}

func TestFrameValues(t *testing.T) {
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(300), nil)
	eight := "\x00\x00\x00\x00\x00\x00\xf0\x3f"
	cases := []struct {
		frame []byte
		want  value.Value
	}{
		{okFrame(`null`, "", ""), value.Nil{}},
		{okFrame(`[true, 1.5, -0.0, "a\u00e9\ud83d\ude00"]`, "", ""), value.List{value.Bool(true), value.Float(1.5), value.Float(math.Copysign(0, -1)), value.String("aé😀")}},
		{okFrame(`12`, "", ""), big.NewInt(12)},
		{okFrame(`{"$int":"`+huge.String()+`"}`, "", ""), huge},
		{okFrame(`{"$int":"-12"}`, "", ""), big.NewInt(-12)},
		{okFrame(`{"$tuple":[{"$c":[1.0,{"$f":"-inf"}]},{"$set":["x"]},{"$frac":["-2","4"]}]}`, "", ""),
			value.Tuple{value.Complex(complex(1, math.Inf(-1))), value.Set{value.String("x")}, big.NewRat(-1, 2)}},
		{okFrame(`{"a":{"$f":"inf"},"b":[]}`, "", ""), value.Dict{"a": value.Float(math.Inf(1)), "b": value.List{}}},
		{okFrame(`[{"$nd":1},{"$nd":0}]`, `{"dtype":"f8","shape":[1,1]},{"dtype":"i2","shape":[]}`, eight+"ab"),
			value.List{&value.Array{DType: "i2", Shape: []int{}, Data: []byte("ab")}, &value.Array{DType: "f8", Shape: []int{1, 1}, Data: []byte(eight)}}},
		{okFrame(`{"$nd":0}`, `{"dtype":"c16","shape":[3,0]}`, ""), &value.Array{DType: "c16", Shape: []int{3, 0}, Data: nil}},
	}
	for _, test := range cases {
		got, err := DecodeFrame(test.frame)
		if err != nil {
			t.Errorf("%q: %v", test.frame, err)
			continue
		}
		if a, ok := got.(*value.Array); ok && len(a.Data) == 0 {
			a.Data = nil
		}
		if !equal(got, test.want) {
			t.Errorf("%q: got %#v, want %#v", test.frame, got, test.want)
		}
	}
}

// equal compares values; big numbers by size, floats by bits.
func equal(a, b value.Value) bool {
	switch a := a.(type) {
	case *big.Int:
		b, ok := b.(*big.Int)
		return ok && a.Cmp(b) == 0
	case *big.Rat:
		b, ok := b.(*big.Rat)
		return ok && a.Cmp(b) == 0
	case value.Float:
		b, ok := b.(value.Float)
		return ok && math.Float64bits(float64(a)) == math.Float64bits(float64(b))
	case value.List:
		b, ok := b.(value.List)
		return ok && equalAll(a, b)
	case value.Tuple:
		b, ok := b.(value.Tuple)
		return ok && equalAll(a, b)
	default:
		return reflect.DeepEqual(a, b)
	}
}

func equalAll(a, b []value.Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestFrameRefusals(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	cases := map[string][]byte{
		"wrong first bytes":      []byte("\x80\x04\x95pickle"),
		"breaks off":             okFrame(`1.0`, "", "")[:30],
		"bytes follow":           append(okFrame(`1.0`, "", ""), 'x'),
		"end marker":             bytes.Replace(okFrame(`1.0`, "", ""), []byte(frameEnd), []byte("skepend\n"), 1),
		"too large":              binary.LittleEndian.AppendUint32([]byte(frameMagic), maxHeaderBytes+1),
		"unknown status":         framed(`{"status":"great"}`, ""),
		"no object":              framed(`[]`, ""),
		"the header's keys":      framed(`{"status":"ok","value":1.0,"arrays":[],"score":1e9}`, ""),
		"stands twice":           framed(`{"status":"ok","status":"ok","value":1.0,"arrays":[]}`, ""),
		"data after the end":     framed(`{"status":"exception"} {}`, ""),
		"invalid UTF-8":          okFrame("\"\xff\"", "", ""),
		"lone surrogate":         okFrame(`"\ud800"`, "", ""),
		"control character":      okFrame("\"\n\"", "", ""),
		"beyond float64":         okFrame(`1e999`, "", ""),
		"no JSON value":          okFrame(`NaN`, "", ""),
		"without digits":         okFrame(`-`, "", ""),
		"nested deeper than 64":  okFrame(deep(66), "", ""),
		"nested deeper than 136": okFrame(deep(400_000), "", ""),
		"unknown tag":            okFrame(`{"$object":"x"}`, "", ""),
		"not alone":              okFrame(`{"$int":"1","a":1.0}`, "", ""),
		"decimal digits":         okFrame(`{"$int":"0x10"}`, "", ""),
		"100001 digits":          okFrame(`{"$int":"`+strings.Repeat("9", 100_001)+`"}`, "", ""),
		"not positive":           okFrame(`{"$frac":["1","0"]}`, "", ""),
		"none of nan":            okFrame(`{"$f":"1e5"}`, "", ""),
		"no float":               okFrame(`{"$c":[1.0,"2"]}`, "", ""),
		"the dtype \"O\"":        okFrame(`{"$nd":0}`, `{"dtype":"O","shape":[1]}`, "12345678"),
		"the dtype \"V0\"":       okFrame(`{"$nd":0}`, `{"dtype":"V0","shape":[1000000000000]}`, ""),
		"is no integer":          okFrame(`{"$nd":0}`, `{"dtype":"f8","shape":[-1]}`, ""),
		"an array has more than": okFrame(`{"$nd":0}`, `{"dtype":"f8","shape":[2147483647,2147483647,2147483647]}`, ""),
		"arrays have more than":  okFrame(`{"$nd":0}`, `{"dtype":"u1","shape":[9000000]},{"dtype":"u1","shape":[9000000]}`, ""),
		"9 dimensions":           okFrame(`{"$nd":0}`, `{"dtype":"u1","shape":[1,1,1,1,1,1,1,1,1]}`, "x"),
		"names none of the 1":    okFrame(`[{"$nd":0},{"$nd":0}]`, `{"dtype":"u1","shape":[1]}`, "x"),
		"names none of the 0":    okFrame(`{"$nd":0}`, ``, ""),
		"it holds no value":      framed(`{"status":"exception","type":"E"}`, ""),
	}
	for want, frame := range cases {
		if _, err := DecodeFrame(frame); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestFrameReader feeds a frame byte by byte and in one piece, with and without what must not be there.
func TestFrameReader(t *testing.T) {
	whole := append([]byte{readyByte}, okFrame(`{"$nd":0}`, `{"dtype":"u1","shape":[3]}`, "abc")...)
	for _, step := range []int{1, 7, len(whole)} {
		var f frameReader
		for at := 0; at < len(whole); at += step {
			if f.complete() {
				t.Fatalf("step %d: complete after %d of %d bytes", step, at, len(whole))
			}
			if _, err := f.Write(whole[at:min(at+step, len(whole))]); err != nil {
				t.Fatal(err)
			}
		}
		if !f.ready || !f.complete() {
			t.Fatalf("step %d: ready %v, complete %v", step, f.ready, f.complete())
		}
		if r, empty, err := f.reply(); err != nil || empty || r.status != statusOK {
			t.Errorf("step %d: %+v %v %v", step, r, empty, err)
		}
	}
	var noise frameReader
	flood := bytes.Repeat([]byte("z"), 1<<20)
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		_, err = noise.Write(flood)
	}
	if !errors.Is(err, errTooLarge) {
		t.Errorf("20 MB of noise: %v", err)
	}
}

// TestBootstrapPacks has the bootstrap's own packer encode values in a plain Python, and compares with what they are.
func TestBootstrapPacks(t *testing.T) {
	python := environment(t)
	program := strings.Replace(bootstrapSource(t), "\nmain()\n", `
import fractions, numpy as np
a = np.arange(6.0).reshape(2, 3)
x = (a, a.T, a[::2, ::-1], np.float64(0.1), np.int64(-3), np.array(7, dtype=">i4"), [True, None, 10**50, -0.0, 5e-324, float("nan")],
     {"k": 1 + 2j}, {4}, fractions.Fraction(6, -4), "\u00e9\U0001f600", np.array([True]))
p = Packer()
sys.stdout.buffer.write(frame({"status": "ok", "value": p.pack(x), "arrays": p.arrays}, p.buffers))
`, 1)
	out, err := exec.Command(python, "-c", program).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	got, err := DecodeFrame(out)
	if err != nil {
		t.Fatal(err)
	}
	floats := func(x ...float64) []byte {
		var b []byte
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		return b
	}
	ten50, _ := new(big.Int).SetString("1"+strings.Repeat("0", 50), 10)
	want := value.Tuple{
		&value.Array{DType: "f8", Shape: []int{2, 3}, Data: floats(0, 1, 2, 3, 4, 5)},
		&value.Array{DType: "f8", Shape: []int{3, 2}, Data: floats(0, 3, 1, 4, 2, 5)},
		&value.Array{DType: "f8", Shape: []int{1, 3}, Data: floats(2, 1, 0)},
		&value.Array{DType: "f8", Shape: []int{}, Data: floats(0.1)},
		&value.Array{DType: "i8", Shape: []int{}, Data: []byte("\xfd\xff\xff\xff\xff\xff\xff\xff")},
		&value.Array{DType: "i4", Shape: []int{}, Data: []byte("\x07\x00\x00\x00")},
		value.List{value.Bool(true), value.Nil{}, ten50, value.Float(math.Copysign(0, -1)), value.Float(5e-324), value.Float(math.NaN())},
		value.Dict{"k": value.Complex(1 + 2i)}, value.Set{big.NewInt(4)}, big.NewRat(-3, 2), value.String("é😀"),
		&value.Array{DType: "b1", Shape: []int{1}, Data: []byte{1}},
	}
	for i := range want {
		if nan, ok := got.(value.Tuple)[i].(value.List); ok && math.IsNaN(float64(nan[5].(value.Float))) {
			nan[5] = want[i].(value.List)[5]
		}
		if i == 8 { // a set of one
			if s := got.(value.Tuple)[i].(value.Set); len(s) != 1 || !equal(s[0], big.NewInt(4)) {
				t.Errorf("set: %v", s)
			}
			continue
		}
		if !equal(got.(value.Tuple)[i], want[i]) {
			t.Errorf("value %d: got %#v, want %#v", i, got.(value.Tuple)[i], want[i])
		}
	}
}

// FuzzFrame: no input makes the decoder panic or take much more memory than it has bytes; what it accepts, it accepts again.
func FuzzFrame(f *testing.F) {
	f.Add(okFrame(`[{"$nd":0},{"$tuple":[{"$int":"3"},{"$frac":["1","3"]}]}]`, `{"dtype":"f8","shape":[1]}`, "12345678"))
	f.Add(framed(`{"status":"exception","type":"E","message":"m","traceback":"t"}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := decodeFrame(data)
		second, again := decodeFrame(data)
		if (err == nil) != (again == nil) || err == nil && first.status != second.status {
			t.Errorf("decoded twice: %v and %v", err, again)
		}
	})
}

// FuzzJSON compares with encoding/json: what ours accepts, it accepts and reads alike; what ours refuses although it
// is valid there has one of the stated reasons.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"\u00e9"],"b":null}`, `"\ud83d\ude00"`, `[true,false,-0.0]`, `{"a":1,"a":2}`, `"\ud800"`, `[[[]]]`, " 1 "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, err := parseJSON(text)
		var theirs any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		other := decoder.Decode(&theirs)
		if other == nil && !json.Valid(text) {
			other = errors.New("trailing data")
		}
		if err == nil {
			if other != nil || !reflect.DeepEqual(plain(ours), theirs) {
				t.Errorf("%q: ours %#v, encoding/json %#v (%v)", text, ours, theirs, other)
			}
			return
		}
		if other == nil && utf8.Valid(text) && !bytes.ContainsRune(text, '\\') && !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "nested") {
			t.Errorf("%q: refused by us alone: %v", text, err)
		}
	})
}

// plain turns our tree into encoding/json's.
func plain(v any) any {
	switch v := v.(type) {
	case number:
		return json.Number(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case object:
		m := map[string]any{}
		for k, item := range v {
			m[k] = plain(item)
		}
		return m
	default:
		return v
	}
}
