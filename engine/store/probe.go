package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// probe tries out whether SQLite's WAL works in dir: on a network file system it fails at once, or it says that it
// works and fails at the first write, or it works until a second machine writes. Returns ErrNetwork.
func probe(dir string) error {
	scratch, err := os.MkdirTemp(dir, scratchName)
	if err != nil {
		return explain(dir, err)
	}
	defer os.RemoveAll(scratch)
	err = probeWAL(scratch, "")
	if err == nil || full(scratch, err) {
		return explain(dir, err)
	}
	return notLocal(dir, err)
}

// probeWAL writes to a scratch database in dir with one connection and reads it with another. vfs names another
// file system layer of SQLite's than the system's, for tests.
func probeWAL(dir, vfs string) error {
	mode := "mode=rwc"
	if vfs != "" {
		mode += "&vfs=" + vfs
	}
	writer, err := connect(dir, mode, "synchronous(full)")
	if err != nil {
		return err
	}
	defer writer.Close()
	var journal string
	if err := writer.QueryRow("PRAGMA journal_mode = wal").Scan(&journal); err != nil {
		return err
	}
	if !strings.EqualFold(journal, "wal") {
		return fmt.Errorf("SQLite keeps journal_mode %q there", journal)
	}
	if _, err := writer.Exec("CREATE TABLE probe (x); INSERT INTO probe VALUES (42)"); err != nil {
		return err
	}
	return probeRead(dir, mode)
}

func probeRead(dir, mode string) error {
	reader, err := connect(dir, mode)
	if err != nil {
		return err
	}
	defer reader.Close()
	var x int
	if err := reader.QueryRow("SELECT x FROM probe").Scan(&x); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if x != 42 {
		return errors.New("a second connection does not see what the first one wrote")
	}
	return nil
}

func notLocal(dir string, err error) error {
	return fmt.Errorf("store: %w: SQLite's write-ahead log does not work in %s (%w): put --dir on a local disk",
		ErrNetwork, filepath.Clean(dir), err)
}
