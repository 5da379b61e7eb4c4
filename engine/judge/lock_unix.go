//go:build unix

package judge

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the right to make this environment; it waits for another process that has it. The lock ends with
// the process, however that ends.
func (m *maker) lock(ctx context.Context) (unlock func(), err error) {
	file, err := os.OpenFile(m.folder+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("judge: lock the environment: %w; set SKEP_CACHE to a folder that can be written", err)
	}
	told := false
	for {
		switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return func() { file.Close() }, nil
		case unix.EWOULDBLOCK, unix.EINTR:
		default:
			file.Close()
			return nil, fmt.Errorf("judge: lock the environment: %w", err)
		}
		if !told {
			m.progress("waiting for another process that makes the Python environment")
			told = true
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
