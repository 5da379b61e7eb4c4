package kernel

import (
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/traefik/yaegi/stdlib"
	"github.com/traefik/yaegi/stdlib/syscall"
	"github.com/traefik/yaegi/stdlib/unrestricted"

	"skep/kernel/cell"
	"skep/kernel/display"
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
		b, err := testBinding()
		mustDo(err)
		exitOn(session.Main(b))
	case os.Getenv(kernelEnv) != "":
		exitOn(serveTestKernel(os.Getenv(kernelEnv)))
	default:
		exports, err := listExports()
		mustDo(err)
		code := m.Run()
		_ = os.Remove(exports)
		os.Exit(code)
	}
}

func mustDo(err error) {
	if err != nil {
		exitOn(err)
	}
}

// exportsEnv names a file with lines "import path=export data file", made once by the go command: types from the
// compiler itself, an oracle for the embedded type data.
const exportsEnv = "SKEP_TEST_EXPORTS"

func listExports() (string, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "context", "fmt", "os",
		"syscall", "strings", "strconv", "time", "skep/kernel/display").Output()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "exports")
	if err != nil {
		return "", err
	}
	_, err = f.Write(out)
	return f.Name(), errors.Join(err, f.Close(), os.Setenv(exportsEnv, f.Name()))
}

func compilerTypes() (types.Importer, error) {
	b, err := os.ReadFile(os.Getenv(exportsEnv))
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(string(b)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no package %q in this test", path)
		}
		return os.Open(files[path])
	}), nil
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// testBinding gives cells the standard library and the displays.
func testBinding() (session.Binding, error) {
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
	symbols["skep/kernel/display/display"] = map[string]reflect.Value{
		"Display": reflect.ValueOf(display.Display), "HTML": reflect.ValueOf(display.HTML), "Show": reflect.ValueOf(display.Show),
		"Clear": reflect.ValueOf(display.Clear), "DisplayID": reflect.ValueOf((*display.DisplayID)(nil)),
	}
	imports, err := compilerTypes()
	return session.Binding{Symbols: symbols, Types: imports}, err
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
