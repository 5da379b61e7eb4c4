package lm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// body is a file of a test server: n bytes that follow no short pattern.
func body(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	return data
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// server answers every path by handle and counts the requests.
func server(t *testing.T, handle http.HandlerFunc) (address string, requests *atomic.Int32) {
	t.Helper()
	t.Setenv("HF_HUB_OFFLINE", "")
	requests = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// serve answers with data under an etag, ranges included.
func serve(data []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// fast shortens the pauses of downloads. Tests that use it do not run in parallel.
func fast(t *testing.T) {
	t.Helper()
	pause, stall, probe := retryPause, stallTimeout, probeTimeout
	retryPause, stallTimeout, probeTimeout = time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	t.Cleanup(func() { retryPause, stallTimeout, probeTimeout = pause, stall, probe })
}

func filled(t *testing.T, o PullOptions) PullOptions {
	t.Helper()
	o, err := o.filled()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func checkFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes, hash %s; want %d, %s", path, len(got), sum(got), len(want), sum(want))
	}
	if _, err := os.Stat(path + ".incomplete"); err == nil {
		t.Errorf("%s.incomplete is still there", path)
	}
}

// A body that breaks off is resumed where it ended, over several attempts, and the second pull needs no network.
func TestPullResumes(t *testing.T) {
	fast(t)
	data := body(100_000)
	var ranges []string
	address, requests := server(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) < 3 { // the first two answers break off
			w = &cutWriter{ResponseWriter: w, left: 30_000}
		}
		serve(data, `"v1"`)(w, r)
	})
	var seen []int64
	o := PullOptions{Dir: t.TempDir(), Progress: func(done, total int64) {
		if total != int64(len(data)) || len(seen) > 0 && done < seen[len(seen)-1] {
			t.Errorf("progress %d of %d after %d", done, total, seen[len(seen)-1])
		}
		seen = append(seen, done)
	}}
	path, err := Pull(t.Context(), address+"/model.gguf", o)
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, path, data)
	if want := "|bytes=30000-|bytes=60000-"; strings.Join(ranges, "|") != want {
		t.Errorf("ranges %q, want %q", ranges, want)
	}
	if seen[len(seen)-1] != int64(len(data)) {
		t.Errorf("progress ended at %d", seen[len(seen)-1])
	}
	n := requests.Load()
	for _, offline := range []bool{false, true} {
		o.Offline = offline
		if again, err := Pull(t.Context(), address+"/model.gguf", o); err != nil || again != path {
			t.Errorf("second pull, offline %v: %s, %v", offline, again, err)
		}
	}
	if requests.Load() != n {
		t.Error("the second pull used the network")
	}
}

// cutWriter ends the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(b []byte) (int, error) {
	if len(b) < c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	c.ResponseWriter.Write(b[:c.left])
	c.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// A partial file of another version is not continued; one without a known version neither.
func TestPullOtherVersion(t *testing.T) {
	fast(t)
	data := body(50_000)
	for name, etag := range map[string]string{"other version": `"old"`, "unknown version": ""} {
		address, _ := server(t, serve(data, `"new"`))
		o := PullOptions{Dir: t.TempDir()}
		dest := filepath.Join(o.Dir, "f.gguf")
		if err := os.WriteFile(dest+".incomplete", make([]byte, 20_000), 0o644); err != nil {
			t.Fatal(err)
		}
		if etag != "" {
			if err := os.WriteFile(dest+".incomplete.etag", []byte(etag), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := newFetcher(filled(t, o)).download(t.Context(), address, dest, wanted{}, func(int64, int64) {}); err != nil {
			t.Fatal(name, err)
		}
		checkFile(t, dest, data)
	}
}

// Wrong bytes are never kept: not whole ones, and not a wrong beginning that an earlier attempt left.
func TestPullWrongBytes(t *testing.T) {
	fast(t)
	data := body(50_000)
	address, requests := server(t, serve(data, `W/"weak"`))
	o := PullOptions{Dir: t.TempDir()}
	_, err := Pull(t.Context(), address+"/f.gguf#sha256="+strings.Repeat("0", 64), o)
	if !errors.Is(err, ErrWrongBytes) || !strings.Contains(err.Error(), sum(data)) {
		t.Errorf("wrong hash: %v", err)
	}
	if requests.Load() != 1 {
		t.Errorf("%d requests for wrong bytes, want 1", requests.Load())
	}
	err = filepath.WalkDir(o.Dir, func(path string, entry os.DirEntry, err error) error {
		if info, _ := entry.Info(); err == nil && entry.Type().IsRegular() && info.Size() > 0 {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}

	dest := filepath.Join(o.Dir, "g.gguf")
	if err := os.WriteFile(dest+".incomplete", make([]byte, 20_000), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := newFetcher(filled(t, o)).download(t.Context(), address, dest, wanted{sha256: sum(data)}, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	checkFile(t, dest, data)
}

// The token goes to the hub, and to no host that the hub redirects to.
func TestPullToken(t *testing.T) {
	fast(t)
	data := body(1000)
	var stolen, given string
	storage, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		stolen += r.Header.Get("Authorization")
		serve(data, `"x"`)(w, r)
	})
	hub, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		given = r.Header.Get("Authorization")
		http.Redirect(w, r, storage+"/blob", http.StatusFound)
	})
	t.Setenv("HF_ENDPOINT", hub)
	o := PullOptions{Dir: t.TempDir(), Token: "hf_secret"}
	for _, address := range []string{hub + "/a.gguf", storage + "/b.gguf"} {
		path, err := Pull(t.Context(), address, o)
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, path, data)
	}
	if given != "Bearer hf_secret" || stolen != "" {
		t.Errorf("the hub got %q, the storage %q", given, stolen)
	}
}

// What another attempt cannot mend is reported at once; what it can is tried again; a stalled body counts as that.
func TestPullFailures(t *testing.T) {
	fast(t)
	for name, test := range map[string]struct {
		handle   http.HandlerFunc
		requests int32
		want     string
	}{
		"not found": {http.NotFound, 1, "404"},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, 1, "HF_TOKEN"},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, downloadAttempts, "503"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, 10 * downloadAttempts, "10 redirects"},
		"stalls": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write(body(10))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, downloadAttempts, "no bytes from"},
	} {
		address, requests := server(t, test.handle)
		o := PullOptions{Dir: t.TempDir()}
		path, err := Pull(t.Context(), address+"/f.gguf", o)
		if err == nil || path != "" || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, %v; want an error with %q", name, path, err, test.want)
		}
		if requests.Load() != test.requests {
			t.Errorf("%s: %d requests, want %d", name, requests.Load(), test.requests)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	address, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(body(10))
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	if _, err := Pull(ctx, address+"/f.gguf", PullOptions{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A pulled file that somebody wrote to is told from one that was only touched, and fetched again.
func TestPullDamaged(t *testing.T) {
	data := body(5000)
	address, requests := server(t, serve(data, `"x"`))
	o := PullOptions{Dir: t.TempDir()}
	pull := func() (string, error) { return Pull(t.Context(), address+"/f.gguf", o) }
	path, err := pull()
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(); err != nil || requests.Load() != 1 {
		t.Errorf("a touched file: %v after %d requests", err, requests.Load())
	}
	for _, damaged := range [][]byte{append(data[:4999:4999], data[4999]+1), data[:100]} {
		later = later.Add(time.Minute)
		if err := errors.Join(os.WriteFile(path, damaged, 0o644), os.Chtimes(path, later, later)); err != nil {
			t.Fatal(err)
		}
		o.Offline = true
		if _, err := pull(); !errors.Is(err, ErrOffline) || !errors.Is(err, ErrWrongBytes) || !strings.Contains(err.Error(), path) {
			t.Errorf("a damaged file, offline: %v", err)
		}
		o.Offline = false
		if _, err := pull(); err != nil {
			t.Error(err)
		}
		checkFile(t, path, data)
	}
	if requests.Load() != 3 {
		t.Errorf("%d requests, want 3", requests.Load())
	}
}

func TestPullNames(t *testing.T) {
	o := PullOptions{Dir: t.TempDir(), Offline: true}
	for name, want := range map[string]error{
		"qwen2.5-coder-0.5b": ErrOffline, "owner/name": ErrOffline, "owner/name:file.gguf": ErrOffline,
		"https://example.org/f.gguf": ErrOffline,
		"no-such-model":              ErrUnknownModel, "": ErrUnknownModel, "/no/such/file.gguf": ErrUnknownModel,
	} {
		if path, err := Pull(t.Context(), name, o); !errors.Is(err, want) || path != "" {
			t.Errorf("%q: %q, %v; want %v", name, path, err, want)
		}
	}
	for _, name := range []string{"https://example.org/f.gguf#sha256=12", "https://example.org/", "owner/name:../../f"} {
		if _, err := Pull(t.Context(), name, PullOptions{Dir: o.Dir}); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	local := filepath.Join("testdata", "models", "llama.gguf")
	path, err := Pull(t.Context(), local, o)
	if err != nil || !filepath.IsAbs(path) || !strings.HasSuffix(path, local) {
		t.Errorf("a path: %q, %v", path, err)
	}
	if err := checkSpace(o.Dir, 1<<60); !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "SKEP_CACHE") {
		t.Errorf("space: %v", err)
	}
}

// Of pulls at the same time, in this process or others, one fetches and all get the file.
func TestPullTogether(t *testing.T) {
	data := body(200_000)
	address, requests := server(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		serve(data, `"x"`)(w, r)
	})
	o := PullOptions{Dir: t.TempDir()}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			path, err := Pull(t.Context(), address+"/f.gguf", o)
			if err != nil {
				t.Error(err)
				return
			}
			checkFile(t, path, data)
		})
	}
	wait.Wait()
	if requests.Load() != 1 {
		t.Errorf("%d requests, want 1", requests.Load())
	}
}

// hub is a test double of the Hugging Face hub: an API with one repository, and its files.
func hub(t *testing.T, files map[string][]byte, lfs map[string]string) {
	t.Helper()
	address, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/models/owner/name/revision/main" {
			var members []string
			for name, data := range files {
				entry := fmt.Sprintf(`{"rfilename": %q, "size": %d}`, name, len(data))
				if lfs[name] != "" {
					entry = fmt.Sprintf(`{"rfilename": %q, "size": %d, "lfs": {"sha256": %q}}`, name, len(data), lfs[name])
				}
				members = append(members, entry)
			}
			fmt.Fprintf(w, `{"sha": "c0ffee", "siblings": [%s]}`, strings.Join(members, ","))
			return
		}
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/owner/name/resolve/c0ffee/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		serve(data, `"x"`)(w, r)
	})
	t.Setenv("HF_ENDPOINT", address)
}

// A repository of safetensors becomes a folder that opens; one with a single GGUF file that file; a file can be named.
func TestPullRepository(t *testing.T) {
	fast(t)
	files := map[string][]byte{"README.md": body(10), "pytorch_model.bin": body(10)}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		data, err := os.ReadFile("testdata/models/qwen2/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	hub(t, files, map[string]string{"model.safetensors": sum(files["model.safetensors"])})
	o := PullOptions{Dir: t.TempDir()}
	for _, name := range []string{"owner/name", os.Getenv("HF_ENDPOINT") + "/owner/name"} {
		path, err := Pull(t.Context(), name, o)
		if err != nil {
			t.Fatal(err)
		}
		m := mustOpen(t, path)
		if m.Config.Arch != "qwen2" {
			t.Errorf("config %+v", m.Config)
		}
		if _, err := os.Stat(filepath.Join(path, "README.md")); err == nil {
			t.Error("files that are not needed were pulled")
		}
		o.Offline = true
	}

	hub(t, files, map[string]string{"model.safetensors": strings.Repeat("1", 64)})
	if _, err := Pull(t.Context(), "owner/name", PullOptions{Dir: t.TempDir()}); !errors.Is(err, ErrWrongBytes) {
		t.Errorf("wrong hash in a repository: %v", err)
	}

	one := map[string][]byte{"README.md": body(10), "sub/only.gguf": body(2000)}
	hub(t, one, nil)
	o = PullOptions{Dir: t.TempDir()}
	for range 2 {
		path, err := Pull(t.Context(), "owner/name", o)
		if err != nil {
			t.Fatal(err)
		}
		checkFile(t, path, one["sub/only.gguf"])
		o.Offline = true
	}

	one["other.gguf"] = body(3000)
	hub(t, one, nil)
	o = PullOptions{Dir: t.TempDir()}
	if _, err := Pull(t.Context(), "owner/name", o); err == nil || !strings.Contains(err.Error(), "owner/name:file") {
		t.Errorf("several GGUF files: %v", err)
	}
	if _, err := Pull(t.Context(), "owner/name:none.gguf", o); err == nil || !strings.Contains(err.Error(), "other.gguf") {
		t.Errorf("a file that is not there: %v", err)
	}
	path, err := Pull(t.Context(), "owner/name:other.gguf", o)
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, path, one["other.gguf"])
}

// A hub with other bytes than the manifest's is told apart before anything is downloaded.
func TestProbe(t *testing.T) {
	data := body(5000)
	storage, stored := server(t, serve(data, `"x"`))
	address, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Linked-Etag", `"`+sum(data)+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(data)))
		http.Redirect(w, r, storage, http.StatusFound)
	})
	f := newFetcher(filled(t, PullOptions{}))
	if err := f.probe(t.Context(), address, wanted{5000, sum(data)}); err != nil {
		t.Error(err)
	}
	if err := f.probe(t.Context(), address, wanted{5000, strings.Repeat("0", 64)}); !errors.Is(err, ErrWrongBytes) {
		t.Errorf("other hash: %v", err)
	}
	if stored.Load() != 0 {
		t.Error("the probe asked the storage")
	}
	gone, _ := url.Parse(address)
	gone.Host = "127.0.0.1:1"
	if err := f.probe(t.Context(), gone.String(), wanted{}); err == nil {
		t.Error("an unreachable hub passes")
	}
}
