package lm

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file mapped read-only into memory. Its bytes are valid until close. Another process that cuts the
// file short meanwhile makes reads fault, so model files are only ever replaced by renaming.
type mapping struct {
	path string
	data []byte
}

func openMapping(path string) (*mapping, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || !info.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, fmt.Errorf("%w: %s is empty or no file", ErrModel, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &mapping{path, data}, nil
}

func (m *mapping) close() error { return unix.Munmap(m.data) }
