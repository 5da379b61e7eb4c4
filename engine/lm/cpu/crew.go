package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"

	"skep/engine/lm/cpu/vec"
)

// spins bounds how long a thread that waits keeps its core, in pauses of about 50 ns: longer than the steps between two
// products of one row, far shorter than what a sleeping thread needs to wake. Sleeping at once, a token of
// smollm2-135m takes 1.2 times as long (2 cores of a Xeon).
const spins = 1000

// crew is the threads of one call: the caller's, which hands out jobs, and helpers, which take part in them. A helper
// that comes late finds nothing left to do, so nobody waits for a thread that the machine does not run.
type crew struct {
	threads  int
	spins    int
	job      atomic.Pointer[job]
	mutex    sync.Mutex
	changed  sync.Cond // job, for helpers that sleep
	sleepers atomic.Int32
}

// job is n calls of f, taken one by one.
type job struct {
	f        func(thread, i int) // nil: go home
	n        int64
	taken    atomic.Int64
	done     atomic.Int64
	finished chan struct{}
}

// startCrew starts threads-1 helpers; stop ends them.
func startCrew(threads int) *crew {
	c := &crew{threads: threads, spins: spins}
	if threads > runtime.GOMAXPROCS(0) {
		c.spins = 0 // a waiting thread would keep others from running
	}
	c.changed.L = &c.mutex
	for thread := 1; thread < threads; thread++ {
		go c.help(thread)
	}
	return c
}

func (c *crew) stop() { c.post(&job{}) }

// run calls f(thread, i) for every i < n, each once, and returns when all have returned. A panic in f ends the process.
func (c *crew) run(n int, f func(thread, i int)) {
	if n <= 1 || c.threads == 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	j := &job{f: f, n: int64(n), finished: make(chan struct{})}
	c.post(j)
	j.work(0)
	for range c.spins {
		if j.done.Load() == j.n {
			return
		}
		vec.Pause()
	}
	<-j.finished
}

// post makes j the job in hand and wakes helpers that sleep.
func (c *crew) post(j *job) {
	c.job.Store(j)
	if c.sleepers.Load() > 0 {
		c.mutex.Lock()
		c.changed.Broadcast()
		c.mutex.Unlock()
	}
}

// help works on one job after the other.
func (c *crew) help(thread int) {
	var last *job
	for {
		if last = c.next(last); last.f == nil {
			return
		}
		last.work(thread)
	}
}

// next waits for another job than last: awake for a while, then asleep.
func (c *crew) next(last *job) *job {
	for range c.spins {
		if j := c.job.Load(); j != last {
			return j
		}
		vec.Pause()
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sleepers.Add(1) // before the last look: post looks at it after the change
	defer c.sleepers.Add(-1)
	for c.job.Load() == last {
		c.changed.Wait()
	}
	return c.job.Load()
}

// work takes calls of j until none is left.
func (j *job) work(thread int) {
	for i := j.taken.Add(1) - 1; i < j.n; i = j.taken.Add(1) - 1 {
		j.f(thread, int(i))
		if j.done.Add(1) == j.n {
			close(j.finished)
		}
	}
}
