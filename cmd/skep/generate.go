package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	goio "io"
	"os"
	"runtime"
	"slices"
	"strings"

	"skep/engine/lm"
	"skep/engine/lm/cpu"
)

// generated is the JSON result of `skep generate`.
type generated struct {
	Model           string     `json:"model"`
	Text            string     `json:"text"`
	Tokens          []lm.Token `json:"tokens"`
	Reason          string     `json:"reason"` // stop, length; interrupted when it was cut short
	PromptTokens    int        `json:"prompt_tokens"`
	Steps           int        `json:"steps"`
	Drafted         int        `json:"drafted"`
	Accepted        int        `json:"accepted"`
	Seconds         float64    `json:"seconds"` // of writing, the prompt's reading left out
	TokensPerSecond float64    `json:"tokens_per_second"`
}

// generateFlags are the settings of `skep generate`.
type generateFlags struct {
	model, promptFile string
	chat, json, draft bool
	threads           int
	seed              uint64
	sampling          lm.Sampling
}

// cmdGenerate writes the continuation of a prompt: as it comes, or with --json at the end as one object.
func cmdGenerate(ctx context.Context, args []string, io stdio) error {
	f, err := parseGenerate(args, io)
	if err != nil {
		return err
	}
	prompt, err := readPrompt(f.promptFile, io)
	if err != nil {
		return err
	}
	m, err := openModel(ctx, f.model, io)
	if err != nil {
		return err
	}
	defer m.Close()
	tokens, err := promptTokens(m, prompt, f.chat)
	if err != nil {
		return err
	}
	b, err := cpu.New(m, cpu.Options{Threads: f.threads})
	if err != nil {
		return err
	}
	stream := lm.Stream{
		Prompt:   lm.Span{Tokens: tokens, Into: b.New()},
		Sampling: f.sampling,
		Key:      lm.Key{Run: f.seed},
	}
	if f.draft {
		stream.Draft = lm.NewDrafter()
	}
	var onText func(int, string)
	if !f.json {
		onText = func(_ int, text string) { fmt.Fprint(io.Out, text) }
	}
	written, err := lm.Decode(ctx, b, m.Tokenizer, []lm.Stream{stream}, onText)
	if len(written) == 0 {
		return err
	}
	return errors.Join(err, printGenerated(io, f.json, m.Name, len(tokens), written[0]))
}

func parseGenerate(args []string, io stdio) (generateFlags, error) {
	var f generateFlags
	fs := flag.NewFlagSet("generate", flag.ContinueOnError)
	fs.StringVar(&f.model, "model", "", "model name or file (default $SKEP_MODEL, else the CPU's default)")
	fs.StringVar(&f.promptFile, "prompt-file", "-", "file with the prompt; - reads stdin")
	fs.BoolVar(&f.chat, "chat", false, "wrap the prompt as a user's turn; without it special tokens in the prompt count as such")
	fs.BoolVar(&f.json, "json", false, "print one JSON object at the end")
	fs.BoolVar(&f.draft, "draft", true, "draft tokens by looking them up in the prompt; changes the time, never the text")
	fs.IntVar(&f.threads, "threads", runtime.GOMAXPROCS(0), "threads")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the draws")
	fs.IntVar(&f.sampling.MaxNew, "max-new", 256, "most new tokens; 0: up to the end of the context")
	fs.Float64Var(&f.sampling.Temperature, "temperature", 0, "temperature; 0 takes the best token")
	fs.Float64Var(&f.sampling.TopP, "top-p", 0.95, "probability mass kept, in (0, 1]")
	fs.IntVar(&f.sampling.TopK, "top-k", 20, "best tokens kept; 0: all")
	_, err := parse(fs, args, io, 0, 0)
	if err == nil && f.threads < 1 {
		err = fmt.Errorf("%w: --threads %d must be at least 1", errUsage, f.threads)
	}
	return f, err
}

func readPrompt(path string, io stdio) (string, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = goio.ReadAll(io.In)
	} else {
		data, err = os.ReadFile(path)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("read the prompt: %w", err)
	case len(data) == 0:
		return "", fmt.Errorf("the prompt in %q is empty", path)
	}
	return string(data), nil
}

// promptTokens turns a prompt into tokens, as text with special tokens or as the turn of a user.
func promptTokens(m *lm.Model, prompt string, chat bool) ([]lm.Token, error) {
	if !chat {
		return slices.Concat(m.Tokenizer.Begin(), m.Tokenizer.EncodeSpecial(prompt)), nil
	}
	if err := m.Chat.Err(); err != nil {
		return nil, fmt.Errorf("--chat: %w", err)
	}
	return slices.Concat(m.Chat.System(""), m.Chat.UserOpen(), m.Tokenizer.Encode(strings.TrimSpace(prompt)),
		m.Chat.UserClose(), m.Chat.AssistantOpen()), nil
}

func printGenerated(io stdio, asJSON bool, model string, prompt int, g lm.Generation) error {
	result := generated{
		Model: model, Text: g.Text, Tokens: g.Tokens, Reason: g.Reason, PromptTokens: prompt,
		Steps: g.Steps, Drafted: g.Drafted, Accepted: g.Accepted, Seconds: g.Took.Seconds(),
	}
	if g.Reason == "" {
		result.Reason = "interrupted"
	}
	if result.Seconds > 0 {
		result.TokensPerSecond = float64(len(g.Tokens)-1) / result.Seconds // the first token comes with the prompt
	}
	if asJSON {
		return printJSON(io.Out, result)
	}
	fmt.Fprintln(io.Out)
	fmt.Fprintf(io.Err, "%s: %d tokens after %d, %.1f tokens/s, ended by %s, %d of %d drafts accepted\n",
		model, len(g.Tokens), prompt, result.TokensPerSecond, result.Reason, g.Accepted, g.Drafted)
	return nil
}
