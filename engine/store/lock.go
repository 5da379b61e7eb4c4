package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lock takes run.lock of dir for this process and writes who holds it: "PID HOST". The system drops the lock when
// its holder dies, so a file left behind by a dead process is taken over. The caller closes the file to release it.
// Returns an *InUseError when someone alive holds it, this process included.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, explain(dir, err)
	}
	err = flock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		return nil, holder(dir, f)
	}
	if err == nil {
		err = sign(f)
	}
	if err != nil {
		f.Close()
		return nil, explain(dir, fmt.Errorf("lock %s: %w", lockName, err))
	}
	return f, nil
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func sign(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	line := fmt.Sprintf("%d %s\n", os.Getpid(), host)
	if _, err := f.WriteAt([]byte(line), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(line)))
}

// holder reads who holds the lock. Between taking and signing it lies a moment: so it is asked for again for a while.
func holder(dir string, f *os.File) error {
	e := &InUseError{Dir: dir, Host: "unknown"}
	for range 20 {
		line := make([]byte, 512)
		n, _ := f.ReadAt(line, 0)
		if _, err := fmt.Sscan(strings.TrimSpace(string(line[:n])), &e.PID, &e.Host); err == nil {
			return e
		}
		time.Sleep(5 * time.Millisecond)
	}
	return e
}
