package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/cmd/skep/page"
	"skep/engine/judge"
	"skep/engine/lm"
	"skep/engine/store"
	"skep/kernel"
	"skep/kernel/client"
	"skep/kernel/wire"
	"skep/notebooks"
)

// The demo's notebook, and the run that it makes beside it.
const (
	demoNotebook = "01_first_round.ipynb"
	demoRun      = "runs/circles"
)

// cmdDemo sets everything up, runs the first notebook through our own kernel, and says where the result is.
func cmdDemo(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	dir := fs.String("dir", "skep-demo", "folder for the notebook, its page and the run")
	model := fs.String("model", os.Getenv("SKEP_MODEL"), "language model (default $SKEP_MODEL, else "+lm.DefaultModel+"; smollm2-135m is small, and too weak to write programs)")
	python := fs.String("python", "", "Python interpreter for candidates (default: skep makes its own)")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	if *model == "" {
		*model = lm.DefaultModel
	}
	d := demo{dir: *dir, model: *model, out: io.Out, shown: newTerminal(io.Err)}
	if err := d.prepare(ctx, *python); err != nil {
		_ = os.Remove(d.dir) // only if nothing is in it
		return err
	}
	err := d.run(ctx)
	if _, e := os.Stat(d.notebook()); e != nil {
		return err // it says why there is no notebook
	}
	return errors.Join(err, d.finish(ctx, err == nil))
}

// demo is one demo under way.
type demo struct {
	dir, model string
	out        io.Writer
	shown      *terminal
	started    time.Time

	mu   sync.Mutex
	cell string // heading of the cell that runs
}

func (d *demo) notebook() string { return filepath.Join(d.dir, demoNotebook) }

// prepare makes the folder, the Python environment and the model ready.
func (d *demo) prepare(ctx context.Context, python string) error {
	if err := makeFolder(d.dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(d.dir, demoRun, "run.db")); err == nil {
		return fmt.Errorf("%s holds the run of an earlier demo: remove the folder or give another one with --dir", d.dir)
	}
	path, err := judge.Environment(ctx, judge.EnvOptions{Python: python, Progress: func(line string) { d.say("python: " + line) }})
	if err != nil {
		return err
	}
	d.say("python: " + path)
	file, err := lm.Pull(ctx, d.model, lm.PullOptions{
		Progress: func(done, total int64) {
			d.shown.line("model", fmt.Sprintf("model: %s %d of %d MB", bar(int(done>>20), int(total>>20)), done/1e6, total/1e6), false)
		},
		Log: func(line string) { d.say("model: " + line) },
	})
	if err != nil {
		return err
	}
	d.say("model: " + file)
	return errors.Join(os.Setenv("SKEP_MODEL", d.model), setPython(python)) // what the notebook's Open takes
}

// makeFolder makes a folder that can be written to.
func makeFolder(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = writable(dir)
	}
	if err != nil {
		return fmt.Errorf("%w; name another folder with --dir", err)
	}
	return nil
}

// writable makes and removes a file in dir, so that hours of work do not end at a folder that takes no result.
func writable(dir string) error {
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return fmt.Errorf("nothing can be written to %s: %w", dir, err)
	}
	return nil
}

// setPython hands the interpreter on to the kernel.
func setPython(python string) error {
	if python == "" {
		return nil
	}
	return os.Setenv("SKEP_PYTHON", python)
}

func (d *demo) say(line string) { d.shown.line("say", line, true) }

// run executes the notebook in a child kernel and keeps what it shows, also when it fails or is stopped.
func (d *demo) run(ctx context.Context) error {
	raw, err := notebooks.Files.ReadFile(demoNotebook)
	if err != nil {
		return err
	}
	nb, err := client.ParseNotebook(raw)
	if err != nil {
		return err
	}
	argv, err := kernelArgv()
	if err != nil {
		return err
	}
	d.started = time.Now()
	err = client.RunNotebook(ctx, nb, client.RunOptions{
		Options: client.Options{Dir: d.dir, Stderr: d.shown}, Argv: argv,
		Started: d.begin, Output: d.output,
		Ended: func(i int, took time.Duration, err error) {
			if err == nil && took >= time.Second {
				d.say(fmt.Sprintf("%s  done in %.1f s", d.heading(), took.Seconds()))
			}
		},
	})
	var failed *client.CellError
	if errors.As(err, &failed) {
		d.shown.done()
		fmt.Fprint(d.shown, d.shown.coloured(failed.Print()))
	}
	return errors.Join(err, nb.Save(d.notebook()))
}

func (d *demo) begin(i int, c *client.Cell) {
	d.mu.Lock()
	d.cell = fmt.Sprintf("[%d] %s", i+1, firstLine(c.Source()))
	d.mu.Unlock()
	d.shown.line("cell", d.heading(), false)
}

func (d *demo) heading() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cell
}

// output shows the last line of the text that a cell shows.
func (d *demo) output(_ int, m *wire.Message) {
	var content struct {
		Data map[string]any `json:"data"`
	}
	if m.Header.MsgType != "display_data" && m.Header.MsgType != "update_display_data" || json.Unmarshal(m.Content, &content) != nil {
		return
	}
	if text, ok := content.Data["text/plain"].(string); ok {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		d.shown.line("cell", d.heading()+"  "+tail(lines[len(lines)-1], 90), false)
	}
}

// finish makes the page and prints the six lines. done is false when the notebook did not run through.
func (d *demo) finish(ctx context.Context, done bool) error {
	d.shown.done()
	notebook := d.notebook()
	html := strings.TrimSuffix(notebook, ".ipynb") + ".html"
	if err := writePage(notebook, html); err != nil {
		return err
	}
	r, err := store.View(filepath.Join(d.dir, demoRun))
	if err != nil {
		if !done {
			return nil // it stopped before there was a run; the cell's error says why
		}
		return err
	}
	defer r.Close()
	run, err := loadRun(context.WithoutCancel(ctx), r)
	if err != nil {
		return err
	}
	d.print(run, notebook, html)
	return nil
}

// print writes the six lines.
func (d *demo) print(run storedRun, notebook, html string) {
	g := gainOf(run.Trace())
	seconds := map[string]float64{}
	for _, t := range run.times() {
		seconds[t.Stage] += t.Seconds
	}
	var times []string
	for _, stage := range slices.SortedFunc(maps.Keys(seconds), func(a, b string) int { return int(1000 * (seconds[b] - seconds[a])) }) {
		if seconds[stage] >= 0.1 {
			times = append(times, fmt.Sprintf("%s %.1f s", stage, seconds[stage]))
		}
	}
	fmt.Fprintf(d.out, "best score    %.6f before, %.6f after %d rounds%s\n", g.before, g.after, len(run.rounds), nothing(g))
	fmt.Fprintf(d.out, "gain          %+.6f from swarms, %+.6f from the tuner's one-number edits\n", g.swarms, g.tuner)
	fmt.Fprintf(d.out, "programs      %d evaluated: %s\n", len(run.programs), run.outcomes())
	fmt.Fprintf(d.out, "model         %s, profile %s: this small profile is no evidence about the paper\n", run.meta.Model, run.meta.Profile)
	fmt.Fprintf(d.out, "time          %.0f s for the notebook: %s\n", time.Since(d.started).Seconds(), strings.Join(times, ", "))
	fmt.Fprintf(d.out, "to open it    %sjupyter trust %s && jupyter lab %s   (or look at %s)\n", installFirst(), notebook, notebook, html)
}

// installFirst is what must be run before JupyterLab knows the kernel; "" when it does.
func installFirst() string {
	if data, err := kernel.UserDataDir(); err == nil {
		if _, err := os.Stat(filepath.Join(data, "kernels", "skep", "kernel.json")); err == nil {
			return ""
		}
	}
	return `go install ./cmd/skep && "$(go env GOPATH)"/bin/skep install --user && `
}

func nothing(g gain) string {
	if g.after > g.before {
		return ""
	}
	return ": nothing improved on the initial program"
}

// writePage renders a notebook as HTML: by nbconvert where Jupyter is installed, else by our own renderer.
func writePage(notebook, html string) error {
	if jupyter, err := exec.LookPath("jupyter"); err == nil {
		cmd := exec.Command(jupyter, "nbconvert", "--to", "html", "--output", filepath.Base(html), notebook)
		if cmd.Run() == nil {
			return nil
		}
	}
	raw, err := os.ReadFile(notebook)
	if err != nil {
		return err
	}
	f, err := os.Create(html)
	if err != nil {
		return err
	}
	return errors.Join(page.Notebook(f, raw, "skep"), f.Close())
}
