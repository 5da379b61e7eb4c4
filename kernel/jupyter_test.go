package kernel

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestJupyterKernelTest runs the Jupyter project's own suite (jupyter_kernel_test 0.7.0), which drives the kernel through
// jupyter_client and pyzmq. It is opt-in: REQUIRE_JUPYTER=1 makes an environment with pip, REQUIRE_JUPYTER=/path/to/python
// uses one that has the package.
func TestJupyterKernelTest(t *testing.T) {
	python := os.Getenv("REQUIRE_JUPYTER")
	switch python {
	case "":
		t.Skip("opt-in: set REQUIRE_JUPYTER")
	case "1":
		python = makeVenv(t)
	}
	share := t.TempDir()
	dir := filepath.Join(share, "kernels", "skep-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(spec{Argv: kernelCommand(t), DisplayName: "test", Language: "go", InterruptMode: "message", Metadata: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel.json"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/jupyter_suite.py")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, script, "-v")
	cmd.Env = append(os.Environ(), "JUPYTER_PATH="+share)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, name := range []string{
		"kernel_info", "execute_stdout", "execute_stderr", "error", "execute_result", "display_data", "is_complete", "history",
		"completion", "inspect", "clear_output", "recv_iopub_welcome_msg",
	} {
		if !regexp.MustCompile(`(?m)^test_` + name + ` .*(\n.*)?\.\.\. ok`).Match(out) {
			t.Errorf("test_%s did not run and pass", name)
		}
	}
}

func makeVenv(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", dir).CombinedOutput(); err != nil {
		t.Fatalf("python3 -m venv: %v\n%s(Debian: install python3-venv)", err, out)
	}
	if out, err := exec.Command(filepath.Join(dir, "bin", "pip"), "install", "-q", "jupyter_kernel_test==0.7.0").CombinedOutput(); err != nil {
		t.Fatalf("pip: %v\n%s", err, out)
	}
	return filepath.Join(dir, "bin", "python")
}
