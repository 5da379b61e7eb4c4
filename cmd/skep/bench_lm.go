package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/engine/lm"
	"skep/engine/lm/cpu"
)

// Sizes of the model benchmark; llama.cpp is asked for the same.
const (
	benchPrompt  = 512 // tokens read at once
	benchWritten = 64  // tokens written by each stream
	benchStreams = 4   // streams written together
)

// lmBench is the result of `skep bench lm`: what ran, and each measurement's median.
type lmBench struct {
	Model   string    `json:"model"`
	File    string    `json:"file"`
	SHA256  string    `json:"sha256"`
	Threads int       `json:"threads"`
	Vectors string    `json:"vectors"` // instruction set of the matrix products
	Rounds  int       `json:"rounds"`
	Load    string    `json:"load_average,omitempty"` // before the first round: above 0, others were computing too
	Prefill benchPair `json:"prefill_512"`
	Decode1 benchPair `json:"decode_1"`
	Decode4 benchPair `json:"decode_4"` // tokens of the four streams together
}

// benchPair is one measurement, ours and llama.cpp's, in tokens per second; round i of both ran one after the other.
type benchPair struct {
	Ours        []float64 `json:"ours"`
	OursMedian  float64   `json:"ours_median"`
	Llama       []float64 `json:"llama_cpp,omitempty"`
	LlamaMedian float64   `json:"llama_cpp_median,omitempty"`
	Ratio       float64   `json:"ratio,omitempty"` // median over the rounds of ours / llama.cpp's
}

// benchLM measures reading and writing of a model, round by round, each round beside llama.cpp when it is given.
func benchLM(ctx context.Context, args []string, io stdio) error {
	fs := flag.NewFlagSet("bench lm", flag.ContinueOnError)
	model := fs.String("model", "", "model name or file (default $SKEP_MODEL, else the CPU's default)")
	llama := fs.String("llama-bench", "", "llama.cpp's llama-bench; llama-batched-bench is expected beside it")
	threads := fs.Int("threads", runtime.GOMAXPROCS(0), "threads")
	rounds := fs.Int("rounds", 5, "rounds; medians are printed")
	asJSON := fs.Bool("json", false, "print JSON")
	if _, err := parse(fs, args, io, 0, 0); err != nil {
		return err
	}
	if *rounds < 1 || *threads < 1 {
		return fmt.Errorf("%w: --rounds %d and --threads %d must be at least 1", errUsage, *rounds, *threads)
	}
	m, err := openModel(ctx, *model, io)
	if err != nil {
		return err
	}
	defer m.Close()
	b, err := cpu.New(m, cpu.Options{Threads: *threads})
	if err != nil {
		return err
	}
	result := &lmBench{Model: m.Name, File: m.Path, SHA256: m.Hash, Threads: *threads, Vectors: b.Stats().Kernel, Rounds: *rounds, Load: loadAverage()}
	for round := range *rounds {
		fmt.Fprintf(io.Err, "round %d of %d\n", round+1, *rounds)
		if err := result.ours(ctx, b, m.Tokenizer); err != nil {
			return err
		}
		if *llama != "" {
			if err := result.llama(ctx, *llama); err != nil {
				return err
			}
		}
	}
	for _, pair := range []*benchPair{&result.Prefill, &result.Decode1, &result.Decode4} {
		pair.summarise()
	}
	if *asJSON {
		return printJSON(io.Out, result)
	}
	return result.print(io)
}

// loadAverage is the number of running processes over the last minute as the system counts it; "" where it does not.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // Linux only; elsewhere the figures stand without it
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// endless never ends a text, so that every stream writes as many tokens as it is asked for.
type endless struct{ *lm.Tokenizer }

func (endless) Stops() []lm.Token { return nil }

// ours measures one round of our own backend.
func (r *lmBench) ours(ctx context.Context, b lm.Backend, tok *lm.Tokenizer) error {
	block := b.New()
	defer b.Free(block)
	start := time.Now()
	prompt := benchTokens(benchPrompt, b.Config().Vocab, 0)
	if _, err := b.Pass(ctx, []lm.Span{{Tokens: prompt, Into: block, Want: lm.Want{TopK: 1}}}); err != nil {
		return err
	}
	r.Prefill.Ours = append(r.Prefill.Ours, benchPrompt/time.Since(start).Seconds())
	for _, c := range []struct {
		pair    *benchPair
		streams int
	}{{&r.Decode1, 1}, {&r.Decode4, benchStreams}} {
		rate, err := decodeRate(ctx, b, tok, c.streams)
		if err != nil {
			return err
		}
		c.pair.Ours = append(c.pair.Ours, rate)
	}
	return nil
}

// decodeRate is the tokens per second of streams written together after short prompts, sampling included.
func decodeRate(ctx context.Context, b lm.Backend, tok *lm.Tokenizer, n int) (float64, error) {
	streams := make([]lm.Stream, n)
	for i := range streams {
		block := b.New()
		defer b.Free(block)
		streams[i] = lm.Stream{
			Prompt:   lm.Span{Tokens: benchTokens(16, b.Config().Vocab, i), Into: block},
			Sampling: lm.Sampling{Temperature: 0.8, TopP: 0.95, TopK: 20, MaxNew: benchWritten + 1}, // the first comes with the prompt
			Key:      lm.Key{Swarm: uint64(i)},
		}
	}
	written, err := lm.Decode(ctx, b, endless{tok}, streams, nil)
	if err != nil {
		return 0, err
	}
	slowest := slices.MaxFunc(written, func(a, b lm.Generation) int { return cmp.Compare(a.Took, b.Took) })
	return float64(n*benchWritten) / slowest.Took.Seconds(), nil
}

// benchTokens are arbitrary tokens of a vocabulary, the same in every round.
func benchTokens(n, vocab, stream int) []lm.Token {
	tokens := make([]lm.Token, n)
	for i := range tokens {
		tokens[i] = lm.Token(float64(vocab) * lm.Key{Swarm: uint64(stream)}.Uniform(uint64(i)))
	}
	return tokens
}

// llama measures one round of llama.cpp on the same file, with its defaults.
func (r *lmBench) llama(ctx context.Context, llamaBench string) error {
	threads := strconv.Itoa(r.Threads)
	out, err := runTool(ctx, llamaBench, "-m", r.File, "-p", strconv.Itoa(benchPrompt), "-n", strconv.Itoa(benchWritten), "-t", threads, "-r", "1", "-o", "json")
	if err != nil {
		return err
	}
	var tests []struct {
		Prompt int     `json:"n_prompt"`
		Rate   float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &tests); err != nil || len(tests) != 2 {
		return fmt.Errorf("%s printed %d tests where two were asked for: %w", llamaBench, len(tests), errors.Join(err, errBenchOutput))
	}
	for _, test := range tests {
		pair := &r.Decode1
		if test.Prompt > 0 {
			pair = &r.Prefill
		}
		pair.Llama = append(pair.Llama, test.Rate)
	}
	batched := filepath.Join(filepath.Dir(llamaBench), "llama-batched-bench")
	out, err = runTool(ctx, batched, "-m", r.File, "-npp", "16", "-ntg", strconv.Itoa(benchWritten), "-npl", strconv.Itoa(benchStreams),
		"-t", threads, "-c", "2048", "--output-format", "jsonl")
	if err != nil {
		return err
	}
	var together struct {
		Rate float64 `json:"speed_tg"`
	}
	if err := json.Unmarshal(lastLine(out), &together); err != nil || together.Rate == 0 {
		return fmt.Errorf("%s gave no speed_tg: %w", batched, errors.Join(err, errBenchOutput))
	}
	r.Decode4.Llama = append(r.Decode4.Llama, together.Rate)
	return nil
}

// errBenchOutput marks output of llama.cpp that we cannot read; the format known is that of commit 0c1e570.
var errBenchOutput = errors.New("not the output of a llama.cpp that we know")

// runTool runs a program and returns its stdout; its stderr is in the error only.
func runTool(ctx context.Context, path string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", path, err, lastLine(stderr.Bytes()))
	}
	return out, nil
}

func lastLine(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// summarise sets the medians. The ratio is the median of the rounds' ratios, since the machine's speed drifts.
func (p *benchPair) summarise() {
	p.OursMedian, p.LlamaMedian = median(p.Ours), median(p.Llama)
	ratios := make([]float64, len(p.Llama))
	for i := range ratios {
		ratios[i] = p.Ours[i] / p.Llama[i]
	}
	p.Ratio = median(ratios)
}

// median of xs; 0 of none.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(xs))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// print writes the result for a reader.
func (r *lmBench) print(io stdio) error {
	_, err := fmt.Fprintf(io.Out, "%s, %d threads, %s, tokens/s, median of %d rounds, load average %s before\n",
		r.Model, r.Threads, r.Vectors, r.Rounds, cmp.Or(r.Load, "unknown"))
	for _, row := range []struct {
		name string
		pair benchPair
	}{{"prefill of 512", r.Prefill}, {"one stream", r.Decode1}, {"four streams", r.Decode4}} {
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%-15s %8.1f", row.name, row.pair.OursMedian)
		if row.pair.Llama != nil {
			line += fmt.Sprintf("   llama.cpp %8.1f   ratio %.2f", row.pair.LlamaMedian, row.pair.Ratio)
		}
		_, err = fmt.Fprintln(io.Out, line)
	}
	return err
}
