package kernel

import (
	"context"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"log"
	"os"
	"testing"

	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/syscall"
	"github.com/traefik/yaegi/stdlib/unrestricted"

	"skep/kernel/cell"
	"skep/kernel/session"
	"skep/kernel/wire"
)

// The test binary plays all parts: started with childEnv it is a session, with kernelEnv a kernel on the connection file
// named there.
const (
	childEnv  = "SKEP_TEST_SESSION"
	kernelEnv = "SKEP_TEST_KERNEL"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(childEnv) != "":
		exitOn(session.Main(testBinding()))
	case os.Getenv(kernelEnv) != "":
		exitOn(serveTestKernel(os.Getenv(kernelEnv)))
	default:
		os.Exit(m.Run())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// testBinding gives cells the standard library, with types from the Go sources: an oracle for the embedded type data.
func testBinding() session.Binding {
	symbols := cell.Symbols{}
	for _, table := range []cell.Symbols{stdlib.Symbols, syscall.Symbols, unrestricted.Symbols} {
		for pkg, names := range table {
			if symbols[pkg] == nil {
				symbols[pkg] = names
				continue
			}
			for name, v := range names {
				symbols[pkg][name] = v
			}
		}
	}
	return session.Binding{Symbols: symbols, Types: importer.ForCompiler(token.NewFileSet(), "source", nil)}
}

// childCommand starts this binary as a session.
func childCommand(t testing.TB) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"/usr/bin/env", childEnv + "=1", self}
}

func serveTestKernel(file string) error {
	c, err := wire.ReadConnection(file)
	if err != nil {
		return err
	}
	logger := log.New(io.Discard, "", 0)
	front, err := Bind(c, "test-kernel", logger)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	os.Unsetenv(kernelEnv)
	s, err := New(front, Options{Session: "test-kernel", Child: []string{"/usr/bin/env", childEnv + "=1", self}, Version: "test", Log: logger})
	if err != nil {
		return err
	}
	return s.Serve(context.Background())
}
