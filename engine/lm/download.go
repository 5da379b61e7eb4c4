package lm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fetcher downloads over HTTP. A download goes to NAME.incomplete, with the server's version of it in
// NAME.incomplete.etag, and resumes from there.
type fetcher struct {
	client *http.Client
	token  string
	home   *url.URL // the only host that may see the token
	log    func(line string)
}

// Waiting times. A variable is one that the tests shorten.
var (
	stallTimeout = time.Minute // longest wait for the next bytes
	retryPause   = time.Second // before the second attempt; doubled before each further one
)

const downloadAttempts = 5

func newFetcher(o PullOptions) *fetcher {
	f := &fetcher{token: o.Token, home: hubURL(), log: o.Log}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = stallTimeout
	f.client = &http.Client{Transport: transport, CheckRedirect: f.redirect}
	return f
}

// redirect drops the token when the next host is not the one it is for.
func (f *fetcher) redirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	next.Header.Del("Authorization")
	f.authorize(next)
	return nil
}

func (f *fetcher) authorize(r *http.Request) {
	if f.token != "" && r.URL.Scheme == f.home.Scheme && r.URL.Host == f.home.Host {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
}

func (f *fetcher) request(ctx context.Context, method, address string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "skep")
	r.Header.Set("Accept-Encoding", "identity") // so that lengths and ranges are those of the file
	f.authorize(r)
	return r, nil
}

// statusError is an answer that is not the file.
type statusError struct {
	code int
	host string
}

func (e statusError) Error() string {
	text := fmt.Sprintf("%s answers %d %s", e.host, e.code, http.StatusText(e.code))
	if e.code == http.StatusUnauthorized || e.code == http.StatusForbidden {
		text += ": it may not exist, or be gated: accept its terms on the web page and set HF_TOKEN"
	}
	return text
}

// temporary reports whether the same request may succeed later.
func (e statusError) temporary() bool {
	return e.code >= 500 || e.code == http.StatusTooManyRequests || e.code == http.StatusRequestTimeout
}

// download fetches address into dest, in several attempts, each resuming where the last one ended.
func (f *fetcher) download(ctx context.Context, address, dest string, want wanted, progress func(done, total int64)) error {
	pause := retryPause
	for attempt := 1; ; attempt++ {
		err := f.attempt(ctx, address, dest, want, progress)
		var status statusError
		final := errors.As(err, &status) && !status.temporary() || errors.Is(err, errFinal)
		if err == nil || final || ctx.Err() != nil || attempt == downloadAttempts {
			return err
		}
		f.log(fmt.Sprintf("trying again in %s: %v", pause, err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// errFinal marks what another attempt cannot mend.
var errFinal = errors.New("giving up")

// attempt is one request and the copying of its body.
func (f *fetcher) attempt(ctx context.Context, address, dest string, want wanted, progress func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p, err := openPartial(dest, want)
	if err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	defer p.file.Close()
	response, err := f.get(ctx, address, p)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	resumed := response.StatusCode == http.StatusPartialContent
	if err := p.accept(response, resumed); err != nil {
		return err
	}
	total := p.size
	if response.ContentLength > 0 {
		total += response.ContentLength
	}
	if err := checkSpace(filepath.Dir(dest), total-p.size); err != nil {
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	timer := time.AfterFunc(stallTimeout, func() {
		cancel(fmt.Errorf("no bytes from %s for %s", response.Request.URL.Host, stallTimeout))
	})
	defer timer.Stop()
	progress(p.size, total)
	_, err = io.Copy(p, &watched{response.Body, func(n int) {
		timer.Reset(stallTimeout)
		progress(p.size+int64(n), total)
	}})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = cause
		}
		return fmt.Errorf("after %d bytes: %w", p.size, err)
	}
	return p.finish(dest, want, resumed)
}

// get asks for what is missing of the partial file.
func (f *fetcher) get(ctx context.Context, address string, p *partial) (*http.Response, error) {
	r, err := f.request(ctx, http.MethodGet, address)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFinal, err)
	}
	if p.size > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		if p.etag != "" {
			r.Header.Set("If-Range", p.etag)
		}
	}
	response, err := f.client.Do(r)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		return response, nil
	case http.StatusRequestedRangeNotSatisfiable: // the partial file is not a beginning of this one
		err = errors.Join(errors.New("the server has fewer bytes than an earlier attempt got: starting anew"), p.reset())
	default:
		err = statusError{response.StatusCode, response.Request.URL.Host}
	}
	response.Body.Close()
	return nil, err
}

// watched reports every read.
type watched struct {
	io.Reader
	saw func(n int)
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.saw(n)
	return n, err
}

// partial is an unfinished download and the running hash of its bytes.
type partial struct {
	file *os.File
	size int64
	etag string // strong, of the version that the bytes are from; "" when not known
	hash hash.Hash
}

// openPartial opens what an earlier attempt left. Without a way to tell that the rest will be of the same version, it
// starts anew.
func openPartial(dest string, want wanted) (*partial, error) {
	file, err := os.OpenFile(dest+".incomplete", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	p := &partial{file: file, hash: sha256.New()}
	etag, _ := os.ReadFile(p.etagPath()) // absent: not known
	p.etag = string(etag)
	if p.etag == "" && want.sha256 == "" {
		err = p.reset()
	} else {
		p.size, err = io.Copy(p.hash, file)
	}
	if err == nil && want.bytes != 0 && p.size >= want.bytes {
		err = p.reset()
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return p, nil
}

func (p *partial) etagPath() string { return p.file.Name() + ".etag" }

// reset drops the bytes and what is known of them.
func (p *partial) reset() error {
	p.size, p.etag = 0, ""
	p.hash.Reset()
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := os.Remove(p.etagPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return p.file.Truncate(0)
}

// accept prepares for the body of a response: the rest of the file, or all of it.
func (p *partial) accept(response *http.Response, resumed bool) error {
	if !resumed {
		if err := p.reset(); err != nil {
			return err
		}
		if etag := response.Header.Get("ETag"); etag != "" && !strings.HasPrefix(etag, "W/") {
			p.etag = etag
			return os.WriteFile(p.etagPath(), []byte(etag), 0o644)
		}
		return nil
	}
	from, _, _ := strings.Cut(strings.TrimPrefix(response.Header.Get("Content-Range"), "bytes "), "-")
	if start, err := strconv.ParseInt(from, 10, 64); err != nil || start != p.size {
		err = fmt.Errorf("asked for bytes from %d, got %q: starting anew", p.size, response.Header.Get("Content-Range"))
		return errors.Join(err, p.reset())
	}
	return nil
}

func (p *partial) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.size += int64(n)
	p.hash.Write(b[:n])
	if err != nil {
		err = fmt.Errorf("%w: %w", errFinal, err)
	}
	return n, err
}

// finish checks the bytes and gives the file its name. Wrong bytes are dropped; if some came from an earlier attempt,
// the download may be tried again.
func (p *partial) finish(dest string, want wanted, resumed bool) error {
	sum := hex.EncodeToString(p.hash.Sum(nil))
	if err := want.check(p.size, sum); err != nil {
		err = errors.Join(err, dropPartial(dest))
		if !resumed {
			err = fmt.Errorf("%w: %w", errFinal, err)
		}
		return err
	}
	if err := publishFile(p.file.Name(), dest, sum); err != nil {
		return err
	}
	return dropPartial(dest)
}

// dropPartial removes what unfinished downloads of dest left.
func dropPartial(dest string) error {
	var errs []error
	for _, suffix := range []string{".incomplete", ".incomplete.etag"} {
		if err := os.Remove(dest + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
