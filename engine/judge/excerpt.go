package judge

import (
	"errors"
	"fmt"
	"strings"
)

// excerptBytes is what an excerpt keeps of each end.
const excerptBytes = 4 << 10

// excerpt keeps the head and the tail of a stream and fails once maxOutputBytes have come. One goroutine writes.
type excerpt struct {
	head, tail []byte
	total      int64
}

func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	e.total += int64(n)
	if room := excerptBytes - len(e.head); room > 0 {
		taken := min(room, len(p))
		e.head, p = append(e.head, p[:taken]...), p[taken:]
	}
	e.tail = append(e.tail, p[max(0, len(p)-excerptBytes):]...)
	e.tail = e.tail[max(0, len(e.tail)-excerptBytes):]
	if e.full() {
		return n, errors.New("output limit")
	}
	return n, nil
}

func (e *excerpt) full() bool { return e.total > maxOutputBytes }

// String is the text with what was left out named; bytes that are not UTF-8 become U+FFFD.
func (e *excerpt) String() string {
	left := e.total - int64(len(e.head)+len(e.tail))
	text := string(e.head)
	if left > 0 {
		text += fmt.Sprintf("\n… %d bytes left out …\n", left)
	}
	return strings.ToValidUTF8(text+string(e.tail), "\ufffd")
}
