package engine

import (
	"fmt"
	"testing"
)

// TestPaperRound runs a whole round at the paper's counts (Table S3) with the tiny model and dictated programs: 10 swarms of
// 45 agents, 40 latent steps, 30 kept, 10 programs, up to 8 edits.
func TestPaperRound(t *testing.T) {
	f := begin(t, t.TempDir(), Options{Profile: "paper", Numbers: Numbers{NewTokens: 600}}, func(n int) string {
		if n < 10 {
			return program(2 + float64(n)/10)
		}
		return fmt.Sprintf("1: %d.5\n", n)
	})
	r := must[*Round](t)(f.Next(t.Context()))
	noError(t, r.Run(t.Context()))
	if len(r.swarms) != 10 {
		t.Fatalf("%d swarms", len(r.swarms))
	}
	for _, sw := range r.swarms {
		if len(sw.agents) != 45 || len(sw.Kept()) != 30 || len(sw.summaries) != 1 {
			t.Errorf("swarm %d: %d agents, %d kept, %d texts", sw.index, len(sw.agents), len(sw.Kept()), len(sw.summaries))
		}
		for _, a := range sw.agents {
			if len(a.trajectory) != 40 {
				t.Fatalf("agent %d took %d latent steps", a.index, len(a.trajectory))
			}
		}
		if blocks := 1 + 30 + len(sw.parents); len(sw.View()) != blocks {
			t.Errorf("swarm %d: a view of %d blocks, Eq. 6 has %d", sw.index, len(sw.View()), blocks)
		}
	}
	if n := len(f.Programs()); n != 1+10+8 {
		t.Errorf("%d programs, want the initial one, 10 written and 8 edits", n)
	}
	if best := f.Best(); best.Value != 17.5 || best.Kind != Tuner {
		t.Errorf("best is %v by %s, want the last edit's 17.5", best.Value, best.Kind)
	}
}
