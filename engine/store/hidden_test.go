package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func saveHidden(t *testing.T, s *Store, branch string, what What, shape []int, data []float32) {
	t.Helper()
	if err := s.SaveRound(context.Background(), Round{Branch: branch, N: 1, Stage: Formed}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveHidden(context.Background(), branch, 1, what, shape, data); err != nil {
		t.Fatal(err)
	}
}

func hiddenFiles(t *testing.T, s *Store) (names []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(s.Dir(), hiddenName))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestHiddenComesBack(t *testing.T) {
	s := create(t)
	halves := sevenths(24) // float16 keeps 11 bits: the sevenths come back rounded
	saveHidden(t, s, Main, Means, []int{3, 4}, sevenths(12))
	saveHidden(t, s, Main, Margins, []int{2}, []float32{0.5, float32(math.Inf(1))})
	saveHidden(t, s, Main, Trajectories, []int{2, 3, 4}, halves)
	saveHidden(t, s, "side", Means, []int{1}, []float32{9})
	want := []string{"r000001-side.npy", "r000001.margins.npy", "r000001.npy", "r000001.trajectories.npy"}
	if got := hiddenFiles(t, s); !slices.Equal(got, want) {
		t.Errorf("files %v", got)
	}
	s = reopen(t, s)
	for i, x := range halves {
		halves[i] = fromHalf(toHalf(x))
	}
	for _, c := range []struct {
		branch string
		what   What
		shape  []int
		data   []float32
	}{
		{Main, Means, []int{3, 4}, sevenths(12)}, {Main, Margins, []int{2}, []float32{0.5, float32(math.Inf(1))}},
		{Main, Trajectories, []int{2, 3, 4}, halves}, {"side", Means, []int{1}, []float32{9}}, {"side", Margins, nil, nil},
	} {
		shape, data, err := s.Hidden(context.Background(), c.branch, 1, c.what)
		if err != nil || !reflect.DeepEqual(shape, c.shape) || !reflect.DeepEqual(data, c.data) {
			t.Errorf("%s of %s: %v %v, %v", c.what, c.branch, shape, data, err)
		}
	}
}

// The row names the file's SHA-256 and size, so that a Python reader can check it.
func TestHiddenRow(t *testing.T) {
	s := create(t)
	saveHidden(t, s, Main, Means, []int{3, 4}, sevenths(12))
	b, err := os.ReadFile(filepath.Join(s.Dir(), hiddenName, "r000001.npy"))
	if err != nil {
		t.Fatal(err)
	}
	h, found, err := s.hiddenRow(context.Background(), Main, 1, Means)
	if want := (hiddenFile{"r000001.npy", "<f4", []int{3, 4}, fmt.Sprintf("%x", sha256.Sum256(b)), int64(len(b))}); err != nil || !found || !reflect.DeepEqual(h, want) {
		t.Errorf("row %+v, %v\nwant %+v", h, err, want)
	}
}

// A stage that runs again writes a new file; the old one stays as it was for whoever has it open, and goes.
func TestHiddenSavedAgain(t *testing.T) {
	s := create(t)
	saveHidden(t, s, Main, Means, []int{1}, []float32{1})
	old, err := os.Open(filepath.Join(s.Dir(), hiddenName, "r000001.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	saveHidden(t, s, Main, Means, []int{1}, []float32{2})
	if _, data, err := readNPY(old, 132); err != nil || data[0] != 1 {
		t.Errorf("the open file changed: %v %v", data, err)
	}
	if _, data, err := s.Hidden(context.Background(), Main, 1, Means); err != nil || data[0] != 2 {
		t.Errorf("got %v %v", data, err)
	}
	if got := hiddenFiles(t, s); !slices.Equal(got, []string{"r000001.v2.npy"}) {
		t.Errorf("files %v", got)
	}
}

// A large value must not become infinite without a word.
func TestTrajectoryTooLargeForHalf(t *testing.T) {
	s := create(t)
	for x, want := range map[float32]string{65519: "<f2", 65520: "<f4", -1e30: "<f4", float32(math.Inf(-1)): "<f2"} {
		saveHidden(t, s, Main, Trajectories, []int{1, 1, 1}, []float32{x})
		h, _, err := s.hiddenRow(context.Background(), Main, 1, Trajectories)
		_, data, err2 := s.Hidden(context.Background(), Main, 1, Trajectories)
		if err != nil || err2 != nil || h.dtype != want || want == "<f4" && data[0] != x {
			t.Errorf("%g is kept as %s and comes back as %v (%v, %v)", x, h.dtype, data, err, err2)
		}
	}
}

// Files that a crash left are swept; what the user put there stays.
func TestSweep(t *testing.T) {
	s := create(t)
	saveHidden(t, s, Main, Means, []int{1}, []float32{1})
	for _, name := range []string{"r000001.v2.npy", "r000007.npy", "r000001-side.trajectories.npy", "1234567.tmp", "notes.npy", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(s.Dir(), hiddenName, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Dir(), strings.Replace(scratchName, "*", "1", 1)), 0o755); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, s)
	if got := hiddenFiles(t, s); !slices.Equal(got, []string{"notes.npy", "notes.txt", "r000001.npy"}) {
		t.Errorf("files %v", got)
	}
	if left, _ := os.ReadDir(s.Dir()); slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("left %v", left)
	}
}
