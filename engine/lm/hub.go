package lm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The Hugging Face hub: what a repository holds, and which bytes a file has.

// probeTimeout is how long the hub may take to answer before another source is tried.
var probeTimeout = 3 * time.Second // the tests shorten it

// hubURL is the hub's address: $HF_ENDPOINT, as Hugging Face's own tools read it, else the public one.
func hubURL() *url.URL {
	if u, err := url.Parse(os.Getenv("HF_ENDPOINT")); err == nil && u.Host != "" {
		return u
	}
	return &url.URL{Scheme: "https", Host: "huggingface.co"}
}

// hubFile is the address of a file of a repository at a revision.
func hubFile(repo, revision, file string) string {
	return hubURL().JoinPath(repo, "resolve", revision, file).String()
}

// knownFromHub pulls a manifest file from its repository, unless the hub cannot be reached or has other bytes.
func (o PullOptions) knownFromHub(ctx context.Context, s Source, dest string, want wanted) error {
	f := newFetcher(o)
	address := hubFile(s.Repo, "main", s.File)
	if err := f.probe(ctx, address, want); err != nil {
		return fmt.Errorf("not from %s: %w", hubURL().Host, err)
	}
	o.Log("from " + address)
	return f.download(ctx, address, dest, want, o.Progress)
}

// probe asks the hub, within probeTimeout, whether the file is there and is the expected one.
func (f *fetcher) probe(ctx context.Context, address string, want wanted) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r, err := f.request(ctx, http.MethodHead, address)
	if err != nil {
		return err
	}
	client := *f.client // the hub's own answer counts, not that of the storage behind it
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %s", probeTimeout)
		}
		return err
	}
	response.Body.Close()
	if response.StatusCode >= 400 {
		return statusError{response.StatusCode, r.URL.Host}
	}
	sum := strings.ToLower(strings.Trim(response.Header.Get("X-Linked-Etag"), `"`))
	size, err := strconv.ParseInt(response.Header.Get("X-Linked-Size"), 10, 64)
	if err != nil || !isSHA256(sum) {
		return nil // the hub does not say; the download's own check decides
	}
	return want.check(size, sum)
}

// hubRepo is what the hub's API says of a repository.
type hubRepo struct {
	Commit string      `json:"sha"`
	Files  []hubMember `json:"siblings"`
}

type hubMember struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	LFS  *struct {
		SHA256 string `json:"sha256"`
	} `json:"lfs"`
}

// hubMaxAnswer bounds the API's answer.
const hubMaxAnswer = 64 << 20

// repo pulls the files of a repository that Open reads, or the one file that is named.
func (o PullOptions) repo(ctx context.Context, repo, file string) (string, error) {
	folder := filepath.Join(o.Dir, strings.ReplaceAll(repo, "/", "--"))
	if file != "" && !filepath.IsLocal(file) {
		return "", fmt.Errorf("%q is no file of a repository", file)
	}
	if file == "" { // a repository that was pulled whole: a folder, or the one file that a marker names
		if name, err := os.ReadFile(folder + ".file"); err == nil {
			file = string(name)
		}
	}
	if file != "" {
		return o.once(ctx, filepath.Join(folder+"--files", file), wanted{}, func(dest string) error {
			listing, err := newFetcher(o).list(ctx, repo)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(listing.Files, func(m hubMember) bool { return m.Name == file })
			if i < 0 {
				return fmt.Errorf("%s has no file %q; it has %s", repo, file, listing.names())
			}
			return o.members(ctx, repo, listing.Commit, listing.Files[i:i+1], func(string) string { return dest })
		})
	}
	return o.wholeRepo(ctx, repo, folder)
}

// wholeRepo pulls a safetensors repository into a folder that gets its name when all files are there. Of a repository
// with a single GGUF file it pulls that file.
func (o PullOptions) wholeRepo(ctx context.Context, repo, folder string) (string, error) {
	var single string
	path, err := o.once(ctx, folder, wanted{}, func(dest string) error {
		listing, err := newFetcher(o).list(ctx, repo)
		if err != nil {
			return err
		}
		members, err := listing.model()
		if err != nil {
			return fmt.Errorf("%s: %w", repo, err)
		}
		if len(members) == 1 {
			single = members[0].Name
			return nil
		}
		partial := dest + ".partial"
		err = o.members(ctx, repo, listing.Commit, members, func(name string) string { return filepath.Join(partial, name) })
		if err != nil {
			return err
		}
		return publish(partial, dest)
	})
	if err != nil || single == "" {
		return path, err
	}
	path, err = o.repo(ctx, repo, single)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(folder+".file", []byte(single), 0o644)
}

// list asks the hub for the files of a repository.
func (f *fetcher) list(ctx context.Context, repo string) (hubRepo, error) {
	var listing hubRepo
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	r, err := f.request(ctx, http.MethodGet, hubURL().JoinPath("api/models", repo, "revision/main").String()+"?blobs=true")
	if err != nil {
		return listing, err
	}
	response, err := f.client.Do(r)
	if err != nil {
		return listing, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return listing, statusError{response.StatusCode, r.URL.Host}
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, hubMaxAnswer)).Decode(&listing); err != nil {
		return listing, fmt.Errorf("the hub's list of files: %w", err)
	}
	if listing.Commit == "" {
		return listing, errors.New("the hub's list of files names no commit")
	}
	return listing, nil
}

// folderFiles are the small files that Open may read beside the tensors.
var folderFiles = []string{"config.json", "tokenizer.json", "generation_config.json", "tokenizer_config.json",
	"chat_template.jinja", "model.safetensors.index.json"}

// model picks the files that make a model: the safetensors with what belongs to them, else the only GGUF file.
func (h hubRepo) model() ([]hubMember, error) {
	var members, ggufs []hubMember
	tensors := false
	for _, m := range h.Files {
		shard := path.Ext(m.Name) == ".safetensors" && path.Base(m.Name) == m.Name && strings.HasPrefix(m.Name, "model")
		tensors = tensors || shard
		if shard || slices.Contains(folderFiles, m.Name) {
			members = append(members, m)
		}
		if path.Ext(m.Name) == ".gguf" {
			ggufs = append(ggufs, m)
		}
	}
	switch {
	case tensors && len(members) > 1:
		return members, nil
	case len(ggufs) == 1:
		return ggufs, nil
	case len(ggufs) > 1:
		return nil, fmt.Errorf("it has %d GGUF files: name one as owner/name:file, of %s", len(ggufs), hubRepo{Files: ggufs}.names())
	}
	return nil, fmt.Errorf("it holds neither safetensors files with a config.json nor a GGUF file; it has %s", h.names())
}

// names lists the files for a message.
func (h hubRepo) names() string {
	var names []string
	for _, m := range h.Files {
		names = append(names, m.Name)
	}
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	return strings.Join(names, ", ")
}

// members downloads files of one commit; where says where each goes. Progress runs over all of them.
func (o PullOptions) members(ctx context.Context, repo, commit string, all []hubMember, where func(name string) string) error {
	o.Log(fmt.Sprintf("from %s, commit %.12s", hubURL().JoinPath(repo), commit))
	var total, before int64
	for _, m := range all {
		total += m.Size
	}
	if err := checkSpace(o.Dir, total); err != nil {
		return err
	}
	f := newFetcher(o)
	for _, m := range all {
		want := wanted{bytes: m.Size}
		if m.LFS != nil && isSHA256(m.LFS.SHA256) {
			want.sha256 = strings.ToLower(m.LFS.SHA256)
		}
		if !filepath.IsLocal(m.Name) {
			return fmt.Errorf("the hub names a file %q", m.Name)
		}
		dest := where(m.Name)
		if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
			return err
		}
		if _, err := os.Stat(dest); err != nil || m.Size == 0 {
			progress := func(done, _ int64) { o.Progress(before+done, total) }
			if err := f.download(ctx, hubFile(repo, commit, m.Name), dest, want, progress); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
		before += m.Size
	}
	return nil
}
