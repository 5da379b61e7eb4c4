package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// hiddenFile is the row of one .npy file.
type hiddenFile struct {
	file   string // name in hidden/
	dtype  string
	shape  []int
	sha256 string
	bytes  int64
}

func (h *hiddenFile) columns() []column {
	return []column{
		{"file", &h.file}, {"dtype", &h.dtype}, {"shape", document{&h.shape, "[]"}}, {"sha256", &h.sha256}, {"bytes", &h.bytes},
	}
}

// SaveHidden writes data [shape] of a stored round as a .npy file and its row once the file is durable. A file is
// never changed: saving the same again makes a new one, and the old one goes when its row has gone. Trajectories are
// kept as float16, or as float32 when a value does not fit.
func (s *Store) SaveHidden(ctx context.Context, branch string, round int, what What, shape []int, data []float32) error {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n != len(data) {
		return fmt.Errorf("store: %s of round %d: shape %v is not that of %d numbers", what, round, shape, len(data))
	}
	s.files.Lock()
	defer s.files.Unlock()
	old, found, err := s.hiddenRow(ctx, branch, round, what)
	if err != nil {
		return err
	}
	h := hiddenFile{dtype: dtypeOf(what, data), shape: shape}
	if err := s.writeHidden(&h, branch, round, what, data); err != nil {
		return explain(s.dir, err)
	}
	key := []column{{"branch", &branch}, {"round", &round}, {"what", (*string)(&what)}}
	err = s.write(ctx, func(t *tx) error { return t.upsert("hidden", len(key), append(key, h.columns()...)) })
	if err == nil && found {
		os.Remove(s.hiddenPath(old.file)) // left over if it fails; the next Open sweeps it
	}
	return err
}

func dtypeOf(what What, data []float32) string {
	if what != Trajectories {
		return singleFloat
	}
	for _, x := range data {
		if a := math.Abs(float64(x)); a >= halfLimit && !math.IsInf(a, 0) {
			return singleFloat
		}
	}
	return halfFloat
}

// writeHidden writes the file under a name that is not taken: temporary, durable, renamed, folder durable.
func (s *Store) writeHidden(h *hiddenFile, branch string, round int, what What, data []float32) error {
	tmp, err := os.CreateTemp(s.hiddenPath(""), "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	sum := sha256.New()
	err = writeNPY(io.MultiWriter(tmp, sum), h.dtype, h.shape, data)
	if err == nil {
		h.bytes, err = tmp.Seek(0, io.SeekCurrent)
	}
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	h.sha256 = hex.EncodeToString(sum.Sum(nil))
	for version := 1; ; version++ {
		h.file = hiddenFileName(branch, round, what, version)
		if _, err := os.Lstat(s.hiddenPath(h.file)); err != nil {
			break
		}
	}
	if err := os.Rename(tmp.Name(), s.hiddenPath(h.file)); err != nil {
		return err
	}
	return syncDir(s.hiddenPath(""))
}

// hiddenFileName is r000123.npy for the means of round 123, and says more only where there is more to say.
func hiddenFileName(branch string, round int, what What, version int) string {
	name := fmt.Sprintf("r%06d", round)
	if branch != Main {
		name += "-" + branch
	}
	if what != Means {
		name += "." + string(what)
	}
	if version > 1 {
		name += fmt.Sprintf(".v%d", version)
	}
	return name + ".npy"
}

var ourHidden = regexp.MustCompile(`^(r\d{6,}(-[a-z0-9_-]+)?(\.[a-z]+)?(\.v\d+)?\.npy|\d+\.tmp)$`)

// sweep removes what a crash left: scratch folders, and files of ours in hidden/ whose row was not written yet.
func (s *Store) sweep() error {
	if err := os.MkdirAll(s.hiddenPath(""), 0o777); err != nil {
		return explain(s.dir, err)
	}
	kept := map[string]bool{}
	var name string
	err := s.snapshot(context.Background(), func(q *query) error {
		q.each("hidden", []column{{"file", &name}}, "", nil, "file", func() { kept[name] = true })
		return q.err
	})
	if err != nil {
		return err
	}
	orphan := func(name string) bool { return ourHidden.MatchString(name) && !kept[name] }
	scratch := func(name string) bool { return strings.HasPrefix(name, strings.TrimSuffix(scratchName, "*")) }
	return explain(s.dir, errors.Join(remove(s.hiddenPath(""), orphan), remove(s.dir, scratch)))
}

// remove deletes what is in dir and has a name that is chosen.
func remove(dir string, chosen func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if chosen(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// Hidden reads hidden states of a round back; nil shape and data when none are kept. Returns ErrDamaged when the
// file is gone or not the one that was written.
func (r *Reader) Hidden(ctx context.Context, branch string, round int, what What) (shape []int, data []float32, err error) {
	for range 3 { // a file may be replaced between its row and its opening
		h, found, err := r.hiddenRow(ctx, branch, round, what)
		if err != nil || !found {
			return nil, nil, err
		}
		content, err := os.ReadFile(r.hiddenPath(h.file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, explain(r.dir, err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != h.sha256 {
			return nil, nil, damaged(r.hiddenPath(h.file), fmt.Sprintf("its SHA-256 is %x, not %s", sum, h.sha256))
		}
		shape, data, err = readNPY(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return nil, nil, damaged(r.hiddenPath(h.file), err.Error())
		}
		return shape, data, nil
	}
	return nil, nil, damaged(r.dir, fmt.Sprintf("the file of %s of round %d, branch %s, is missing", what, round, branch))
}

func (r *Reader) hiddenRow(ctx context.Context, branch string, round int, what What) (h hiddenFile, found bool, err error) {
	cols := h.columns()
	err = r.db.QueryRowContext(ctx, "SELECT "+names(cols)+" FROM hidden WHERE branch = ? AND round = ? AND what = ?",
		branch, round, string(what)).Scan(fields(cols)...)
	if errors.Is(err, sql.ErrNoRows) {
		return h, false, nil
	}
	return h, err == nil, explain(r.dir, err)
}

func (r *Reader) hiddenPath(file string) string { return filepath.Join(r.dir, hiddenName, file) }
