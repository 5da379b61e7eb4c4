package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestCrew does every item of many jobs of all sizes exactly once, by known threads, before run returns.
func TestCrew(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 2 * runtime.GOMAXPROCS(0)} {
		c := startCrew(threads)
		for n := range 300 {
			count := make([]atomic.Int32, n)
			c.run(n, func(thread, i int) {
				if thread < 0 || thread >= threads {
					t.Errorf("thread %d of %d", thread, threads)
				}
				count[i].Add(1)
			})
			for i := range count {
				if got := count[i].Load(); got != 1 {
					t.Fatalf("%d threads: item %d of %d was done %d times", threads, i, n, got)
				}
			}
		}
		c.stop()
	}
}

// TestCrewSleeps wakes helpers that have gone to sleep between jobs.
func TestCrewSleeps(t *testing.T) {
	c := startCrew(runtime.GOMAXPROCS(0) + 1) // more threads than cores: they sleep at once
	defer c.stop()
	for range 200 {
		for c.sleepers.Load() == 0 {
			runtime.Gosched()
		}
		var sum atomic.Int64
		c.run(50, func(_, i int) { sum.Add(int64(i)) })
		if sum.Load() != 49*50/2 {
			t.Fatalf("the items add up to %d", sum.Load())
		}
	}
}
