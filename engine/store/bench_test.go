package store

import (
	"context"
	"strings"
	"testing"
)

func BenchmarkAddProgram(b *testing.B) {
	s, err := Create(b.TempDir()+"/run", testMeta())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	p := sampleProgram()
	p.Code = strings.Repeat("x = 1\n", 800)
	for b.Loop() {
		if _, err := s.AddProgram(context.Background(), p, sampleEvaluation()); err != nil {
			b.Fatal(err)
		}
	}
}

// A round of the paper's size (10 swarms of 45 agents, prompts of 10 KB) in which one number changed.
func BenchmarkSaveRoundAgain(b *testing.B) {
	s, err := Create(b.TempDir()+"/run", testMeta())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := Round{N: 1, Stage: Formed}
	for range 10 {
		swarm := Swarm{Kind: "fresh", Stage: Formed}
		for range 45 {
			swarm.Agents = append(swarm.Agents, Agent{Prompt: strings.Repeat("consider ", 1100)})
		}
		r.Swarms = append(r.Swarms, swarm)
	}
	for b.Loop() {
		r.Seen++
		if err := s.SaveRound(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
