package cpu

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skep/engine/lm"
	"skep/engine/lm/lmtest"
)

// benchModel opens the model file named by SKEP_MODEL_FILE, else the tests' real model.
func benchModel(b *testing.B) *Backend {
	path := os.Getenv("SKEP_MODEL_FILE")
	if path == "" {
		path = lmtest.SmolLM(b)
	}
	m, err := lm.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	backend, err := New(m, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return backend
}

// cpuTime is what all threads of the process have computed so far: on a shared machine it says more than the clock.
func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// report gives tokens a second, and tokens a second of one core's time.
func report(b *testing.B, tokens int, start time.Duration) {
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tok/s")
	b.ReportMetric(float64(tokens*b.N)/(cpuTime(b)-start).Seconds(), "tok/cpu-s")
	b.ReportMetric(0, "ns/op")
}

func ramp(n, vocab int) []lm.Token {
	tokens := make([]lm.Token, n)
	for i := range tokens {
		tokens[i] = lm.Token((i*7919 + 13) % min(vocab, 40000))
	}
	return tokens
}

func BenchmarkPrefill(b *testing.B) {
	for _, n := range []int{64, 512, 1500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			backend := benchModel(b)
			tokens, id := ramp(n, backend.config.Vocab), backend.New()
			start := cpuTime(b)
			for b.Loop() {
				if _, err := backend.Pass(context.Background(), []lm.Span{{Tokens: tokens, Into: id, Want: lm.Want{TopK: 20}}}); err != nil {
					b.Fatal(err)
				}
			}
			report(b, n, start)
		})
	}
}

// BenchmarkDecode passes single rows of several streams behind 200 tokens each.
func BenchmarkDecode(b *testing.B) {
	for _, streams := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			backend := benchModel(b)
			const prompt, steps = 200, 16
			spans := make([]lm.Span, streams)
			for i := range spans {
				spans[i] = lm.Span{Tokens: ramp(prompt, backend.config.Vocab), Into: backend.New()}
			}
			if _, err := backend.Pass(context.Background(), spans); err != nil {
				b.Fatal(err)
			}
			start := cpuTime(b)
			for b.Loop() {
				for step := range steps {
					for i := range spans {
						spans[i].Tokens, spans[i].Pos, spans[i].At = []lm.Token{lm.Token(step)}, prompt+step, prompt+step
						spans[i].Want = lm.Want{TopK: 20}
					}
					if _, err := backend.Pass(context.Background(), spans); err != nil {
						b.Fatal(err)
					}
				}
			}
			report(b, streams*steps, start)
		})
	}
}

// BenchmarkLatent takes steps of 24 agents that share a problem of 400 tokens and have 150 of their own.
func BenchmarkLatent(b *testing.B) {
	backend := benchModel(b)
	const agents, problem, own, steps = 24, 400, 150, 8
	shared := backend.New()
	spans := []lm.Span{{Tokens: ramp(problem, backend.config.Vocab), Into: shared}}
	if _, err := backend.Pass(context.Background(), spans); err != nil {
		b.Fatal(err)
	}
	var thoughts []lm.Thought
	for range agents {
		view, into := lm.View{{Block: shared, Len: problem}}, backend.New()
		out, err := backend.Pass(context.Background(), []lm.Span{{Tokens: ramp(own, backend.config.Vocab), Pos: problem, View: view, Into: into, Want: lm.Want{Hidden: true}}})
		if err != nil {
			b.Fatal(err)
		}
		thoughts = append(thoughts, lm.Thought{Hidden: out[0].Hidden[0], Pos: problem + own, View: view, Into: into, At: own})
	}
	if err := backend.needAlignment(context.Background()); err != nil {
		b.Fatal(err)
	}
	start := cpuTime(b)
	for b.Loop() {
		if _, err := backend.Latent(context.Background(), thoughts, steps, nil); err != nil {
			b.Fatal(err)
		}
	}
	report(b, agents*steps, start)
}
