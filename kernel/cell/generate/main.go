// Command generate writes generic.zip, the sources of the standard packages whose generic functions cells can call:
// such functions have no compiled form. Run it by `go generate ./kernel/cell` with the Go version of go.mod.
package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"go/build"
	"go/token"
	"go/types"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/gcexportdata"
)

// packages come with their source, in the order in which they import each other.
var packages = []string{"cmp", "sync/atomic", "sync", "errors", "iter", "slices", "maps"}

// needed are internal packages that those sources import; their types suffice.
var needed = []string{"internal/race", "internal/sync", "internal/synctest", "internal/reflectlite", "internal/runtime/atomic"}

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal("generate: ", err)
	}
}

func generate() error {
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	ctx := build.Default
	ctx.CgoEnabled = false
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	goroot := strings.TrimSpace(string(root))
	if err := add(archive, "LICENSE", filepath.Join(goroot, "LICENSE")); err != nil {
		return err
	}
	for _, p := range packages {
		pkg, err := ctx.ImportDir(filepath.Join(goroot, "src", filepath.FromSlash(p)), 0)
		if err != nil {
			return err
		}
		for _, f := range pkg.GoFiles {
			if err := add(archive, path.Join("src", p, f), filepath.Join(pkg.Dir, f)); err != nil {
				return err
			}
		}
	}
	for _, p := range needed {
		if err := addTypes(archive, p); err != nil {
			return fmt.Errorf("types of %s: %w", p, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile("generic.zip", b.Bytes(), 0o644)
}

func add(archive *zip.Writer, name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	w, err := archive.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

func addTypes(archive *zip.Writer, p string) error {
	out, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", p).Output()
	if err != nil {
		return err
	}
	f, err := os.Open(strings.TrimSpace(string(out)))
	if err != nil {
		return err
	}
	defer f.Close()
	//lint:ignore SA1019 go list -export names compiler archives, which this reads until Go 1.29
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	pkg, err := gcexportdata.Read(r, fset, map[string]*types.Package{}, p)
	if err != nil {
		return err
	}
	w, err := archive.Create(path.Join("types", p))
	if err != nil {
		return err
	}
	return gcexportdata.Write(w, token.NewFileSet(), pkg) // without positions, which name folders of this machine
}
