package lm

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// goldenTexts are the texts of testdata/make_tokens.py: plain ones, and ones with special tokens.
type goldenTexts struct{ Plain, Special []string }

func readTexts(t *testing.T) goldenTexts {
	t.Helper()
	var texts goldenTexts
	if err := json.Unmarshal(gunzip(t, "texts.json.gz"), &texts); err != nil {
		t.Fatal(err)
	}
	if len(texts.Plain) < 10000 || len(texts.Special) == 0 {
		t.Fatalf("%d plain and %d special texts", len(texts.Plain), len(texts.Special))
	}
	return texts
}

// readTokens returns the golden tokens of one tokenizer, one row a text.
func readTokens(t *testing.T, name string) [][]Token {
	t.Helper()
	data := gunzip(t, "tokens-"+name+".gz")
	next := func() uint64 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			t.Fatal("golden tokens end early")
		}
		data = data[n:]
		return v
	}
	var rows [][]Token
	for len(data) > 0 {
		row := make([]Token, next())
		for i := range row {
			row[i] = Token(next())
		}
		rows = append(rows, row)
	}
	return rows
}

// qwen3 is Qwen3's tokenizer. Tests must not change it.
var qwen3 = sync.OnceValues(func() (*Tokenizer, error) {
	data, err := readGzip("qwen3-tokenizer.json.gz")
	if err != nil {
		return nil, err
	}
	return parseTokenizer(data)
})

func qwen3Tokenizer(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := qwen3()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// compareTokens reports up to five texts whose tokens differ from the golden ones.
func compareTokens(t *testing.T, encode func(string) []Token, texts []string, want [][]Token) {
	t.Helper()
	if len(texts) != len(want) {
		t.Fatalf("%d texts, %d golden rows", len(texts), len(want))
	}
	wrong := 0
	for i, text := range texts {
		if got := encode(text); !slices.Equal(got, want[i]) {
			if wrong++; wrong <= 5 {
				t.Errorf("text %d, %+q:\n got %v\nwant %v", i, text, got, want[i])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d texts differ", wrong, len(texts))
	}
}

// Qwen's tokenizer gives the tokens of Hugging Face tokenizers for 10,000 random and 30 written texts, and for special
// tokens in text; decoding gives the normalised text back.
func TestTokenizerQwen(t *testing.T) {
	tok, texts, want := qwen3Tokenizer(t), readTexts(t), readTokens(t, "qwen3")
	n := len(texts.Plain)
	compareTokens(t, tok.Encode, texts.Plain, want[:n])
	compareTokens(t, tok.EncodeSpecial, texts.Special, want[n:])
	for _, text := range texts.Plain {
		if got := tok.Decode(tok.Encode(text)); got != nfc(text) {
			t.Errorf("%+q decodes to %+q", nfc(text), got)
		}
	}
}

// Every code point has the class that Hugging Face tokenizers gives it (testdata/make_classes.py).
func TestClasses(t *testing.T) {
	var golden map[string][][2]rune
	if err := json.Unmarshal(gunzip(t, "classes.json.gz"), &golden); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]func(rune) bool{
		"letter": isLetter, "number": isNumber, "digit": isDigit, "space": unicode.IsSpace,
	} {
		ranges := golden[name]
		if len(ranges) == 0 {
			t.Fatalf("no golden ranges for %s", name)
		}
		for r := rune(0); r <= unicode.MaxRune; r++ {
			for len(ranges) > 0 && ranges[0][1] < r {
				ranges = ranges[1:]
			}
			member := len(ranges) > 0 && ranges[0][0] <= r
			if in(r) != member {
				t.Fatalf("%U: %s is %v, golden %v", r, name, in(r), member)
			}
		}
	}
}

// Our composition agrees with x/text on text without long runs of marks and without characters that came after
// Unicode 9, and puts no joiner into long runs.
func TestNFC(t *testing.T) {
	late := func(r rune) bool { return unicode.Is(lateMarks, r) || string(r) == lateComposite }
	for _, text := range append(readTexts(t).Plain, "\u1112\u1161\u11ab", "\ufb2c\u0344", "q\u0307\u0323") {
		want := norm.NFC.String(text)
		if strings.ContainsFunc(text, late) || strings.Contains(want, "\u034f") {
			continue
		}
		if got := compose(decompose(text)); got != want {
			t.Errorf("%+q: %+q, x/text has %+q", text, got, want)
		}
	}
	long := nfc("a" + strings.Repeat("\u0323", 40) + strings.Repeat("\u0301", 3))
	if want := "\u1ea1" + strings.Repeat("\u0323", 39) + strings.Repeat("\u0301", 3); long != want {
		t.Errorf("long run: %+q, want %+q", long, want)
	}
	if got := nfc("e\xff\u0301"); got != "e\xff\u0301" {
		t.Errorf("invalid bytes do not pass: %+q", got)
	}
}

// Bytes that are no UTF-8 survive encoding, and tokens decode the same in any division.
func TestDecodePieces(t *testing.T) {
	tok := qwen3Tokenizer(t)
	for _, text := range []string{"👍🏽 日本語 é", "a\xff\xfe\xf0\x9f b\xc3", strings.Repeat("\xf0\x9f", 9)} {
		tokens := tok.Encode(text)
		var pieces string
		for _, token := range tokens {
			pieces += tok.Decode([]Token{token})
		}
		if tok.Decode(tokens) != text || pieces != text {
			t.Errorf("%q decodes to %q whole, %q in pieces", text, tok.Decode(tokens), pieces)
		}
	}
	if got := tok.Decode([]Token{-1, 1 << 30, 151935}); got != "" {
		t.Errorf("tokens outside the vocabulary decode to %q", got)
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := qwen3Tokenizer(b)
	text := strings.Repeat("def pack(n=26):\n    return [(0.1 * i, 0.2 * j) for i in range(5)]  # a comment\n", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text)
	}
}

// Added tokens of every kind are matched as Hugging Face tokenizers matches them (testdata/make_added.py).
func TestAddedTokens(t *testing.T) {
	var golden struct {
		Tokenizer json.RawMessage
		Cases     []struct {
			Text   string
			Tokens []Token
		}
	}
	if err := json.Unmarshal(gunzip(t, "added.json.gz"), &golden); err != nil {
		t.Fatal(err)
	}
	tok, err := parseTokenizer(golden.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var want [][]Token
	for _, c := range golden.Cases {
		texts, want = append(texts, c.Text), append(want, c.Tokens)
	}
	compareTokens(t, tok.EncodeSpecial, texts, want)
}
