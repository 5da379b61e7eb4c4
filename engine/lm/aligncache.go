package lm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// alignCache is the file that keeps a solved alignment: a line of JSON, then W as little-endian float32.
type alignCache struct {
	path string // "": no cache
	want alignHeader
}

// alignHeader is the file's first line.
type alignHeader struct {
	Format int     `json:"format"`
	Model  string  `json:"model"` // Model.Hash
	Width  int     `json:"width"`
	Rows   int     `json:"rows"`
	Rho    float64 `json:"rho"`
	Gamma  float32 `json:"gamma"`
	SHA256 string  `json:"sha256"` // of W's bytes
}

// newAlignCache names the file; tied models and models without a hash (built in memory) have none.
func newAlignCache(m *Model, o AlignOptions, rows int) (alignCache, error) {
	if o.NoCache || m.Config.Tied || m.Hash == "" {
		return alignCache{}, nil
	}
	if o.Dir == "" {
		dir, err := CacheDir()
		if err != nil {
			return alignCache{}, err
		}
		o.Dir = filepath.Join(dir, "align")
	}
	return alignCache{
		path: filepath.Join(o.Dir, fmt.Sprintf("%s-%d-%g.wa", m.Hash, rows, o.Rho)),
		want: alignHeader{Format: 1, Model: m.Hash, Width: m.Config.Width, Rows: rows, Rho: o.Rho},
	}, nil
}

// load returns the alignment on disk, nil when there is none or it is not the one wanted, whole and unchanged.
func (c alignCache) load() *Alignment {
	if c.path == "" {
		return nil
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		return nil
	}
	line, payload, _ := bytes.Cut(data, []byte("\n"))
	var have alignHeader
	if json.Unmarshal(line, &have) != nil || have.SHA256 != checksum(payload) || len(payload) != 4*c.want.Width*c.want.Width {
		return nil
	}
	want := c.want
	want.Gamma, want.SHA256 = have.Gamma, have.SHA256
	if have != want {
		return nil
	}
	w := make([]float32, want.Width*want.Width)
	for i := range w {
		w[i] = math.Float32frombits(binary.LittleEndian.Uint32(payload[4*i:]))
	}
	return &Alignment{Gamma: have.Gamma, W: w, Rho: have.Rho, Rows: have.Rows}
}

// save writes the file under another name and renames it, so that a reader finds it whole or not at all. It gives up
// silently: the cache only saves time.
func (c alignCache) save(a *Alignment) {
	if c.path == "" {
		return
	}
	var payload []byte
	for _, x := range a.W {
		payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(x))
	}
	header := c.want
	header.Gamma, header.SHA256 = a.Gamma, checksum(payload)
	line, err := json.Marshal(header)
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o755) != nil {
		return
	}
	file, err := os.CreateTemp(filepath.Dir(c.path), ".wa-*")
	if err != nil {
		return
	}
	_, err = file.Write(append(append(line, '\n'), payload...))
	if closed := file.Close(); err != nil || closed != nil || os.Rename(file.Name(), c.path) != nil {
		os.Remove(file.Name())
	}
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
