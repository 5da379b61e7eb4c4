package problems

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	for _, p := range All() {
		i := p.Info()
		got, err := Get(i.Name)
		if err != nil || got.Info() != i {
			t.Errorf("Get(%q): %v", i.Name, err)
		}
		if !strings.Contains(p.Initial(), "def "+i.Entry+"(") || !strings.Contains(p.Statement(), i.Entry+"(") {
			t.Errorf("%s: the entry function %s is not in its statement and initial program", i.Name, i.Entry)
		}
	}
	if _, err := Get("circles"); err == nil || !strings.Contains(err.Error(), "circles_square_26") {
		t.Errorf("unknown name: %v", err)
	}
}
