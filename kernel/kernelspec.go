package kernel

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// SpecName is the kernelspec's folder name, the name that notebooks carry in their metadata.
const SpecName = "skep"

//go:embed logo
var logos embed.FS

// spec is kernel.json.
type spec struct {
	Argv            []string       `json:"argv"`
	DisplayName     string         `json:"display_name"`
	Language        string         `json:"language"`
	InterruptMode   string         `json:"interrupt_mode"`
	ProtocolVersion string         `json:"kernel_protocol_version"`
	Metadata        map[string]any `json:"metadata"`
}

// InstallSpec writes the kernelspec "Go (skep)" for a kernel binary below a Jupyter data folder, such as
// PREFIX/share/jupyter, and returns the kernelspec's folder. binary must be an absolute path.
func InstallSpec(dataDir, binary string) (string, error) {
	if !filepath.IsAbs(binary) {
		return "", fmt.Errorf("kernelspec: the path of the binary must be absolute, got %q", binary)
	}
	dir := filepath.Join(dataDir, "kernels", SpecName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	b, err := json.MarshalIndent(spec{
		Argv: []string{binary, "kernel", "-f", "{connection_file}"}, DisplayName: "Go (skep)", Language: "go",
		InterruptMode: "message", ProtocolVersion: "5.5", Metadata: map[string]any{"debugger": false},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	errs := []error{os.WriteFile(filepath.Join(dir, "kernel.json"), append(b, '\n'), 0o644)}
	entries, err := logos.ReadDir("logo")
	errs = append(errs, err)
	for _, e := range entries {
		data, err := logos.ReadFile("logo/" + e.Name())
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644))
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("kernelspec: %w", err)
	}
	return dir, nil
}

// UserDataDir returns the user's Jupyter data folder.
func UserDataDir() (string, error) {
	if dir := os.Getenv("JUPYTER_DATA_DIR"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("kernelspec: no home folder: %w; use --prefix", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Jupyter"), nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "jupyter"), nil
	}
	return filepath.Join(home, ".local", "share", "jupyter"), nil
}
