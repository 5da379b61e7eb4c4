package engine

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skep/engine/lm/lmtest"
	"skep/engine/store"
)

// childDir names the run folder to the child of TestKilled20Times.
const childDir = "SKEP_TEST_KILLED_RUN"

// dictate gives a search of many rounds different programs to judge.
func dictate() func(int) string {
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(time.Now().UnixNano())))
	return func(int) string { return program(float64(r.IntN(1_000_000)) / 1e5) }
}

// TestSearchInAChild is the body of the child: it searches until it is killed and prints the id of every program that can be
// seen, which is what acknowledged means.
func TestSearchInAChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		return // only the child has work to do
	}
	f := begin(t, dir, Options{Numbers: small}, dictate())
	ctx := WithSink(context.Background(), sinkFunc(func(e Event) {
		if e.Stage != "evaluate" && e.Stage != "commit" {
			return
		}
		for _, r := range f.Rounds() {
			f.Search.mu.Lock()
			for _, p := range r.programs() {
				fmt.Printf("ack %d\n", p.ID)
			}
			f.Search.mu.Unlock()
		}
	}))
	noError(t, f.RunRounds(ctx, 1000))
}

// TestKilled20Times kills a search with SIGKILL at random moments and opens it again: every program that was seen is there,
// and the search goes on.
func TestKilled20Times(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	acknowledged := map[int64]bool{}
	for i := range 20 {
		for id := range killedChild(t, dir, len(acknowledged)+rand.IntN(12), time.Duration(rand.IntN(100))*time.Millisecond) {
			acknowledged[id] = true
		}
		if _, err := os.Stat(filepath.Join(dir, "run.db")); err != nil {
			continue // killed before the run was made
		}
		r := must[*store.Reader](t)(store.View(dir))
		rows := must[[]store.Program](t)(r.Programs(t.Context()))
		noError(t, r.Close())
		have := map[int64]bool{}
		for _, row := range rows {
			have[row.ID] = true
		}
		for id := range acknowledged {
			if !have[id] {
				t.Fatalf("kill %d: program %d was seen and is lost; %d are there", i, id, len(rows))
			}
		}
	}
	f := beginWith(t, lmtest.Tiny(t), dir, Options{Numbers: small}, dictate())
	rounds := len(f.Rounds())
	noError(t, f.RunRounds(t.Context(), 1))
	noError(t, f.RunRounds(t.Context(), 1))
	if got := len(f.Rounds()); got < rounds+1 {
		t.Errorf("the search does not go on: %d rounds before, %d after", rounds, got)
	}
	if len(acknowledged) < 20 || rounds < 5 {
		t.Errorf("the kills came too early to show anything: %d programs in %d rounds", len(acknowledged), rounds)
	}
	t.Logf("%d programs were seen over 20 kills, %d rounds", len(acknowledged), rounds)
}

// killedChild runs the child until it has acknowledged a number of programs, kills it some time later, and returns what it
// acknowledged.
func killedChild(t *testing.T, dir string, programs int, later time.Duration) map[int64]bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSearchInAChild$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	kill := sync.OnceFunc(func() { time.AfterFunc(later, func() { cmd.Process.Kill() }) })
	seen := map[int64]bool{}
	lines := bufio.NewScanner(out)
	var other []string
	for lines.Scan() {
		var id int64
		if _, err := fmt.Sscanf(lines.Text(), "ack %d", &id); err == nil {
			if seen[id] = true; len(seen) > programs {
				kill()
			}
		} else {
			other = append(other, lines.Text())
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child ended before it was killed: %v\n%s", err, strings.Join(other, "\n"))
	}
	return seen
}
