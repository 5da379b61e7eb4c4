package engine

import (
	"context"
	"errors"
	"fmt"
	"html"
	"runtime/debug"
	"sync"
	"time"

	"skep/engine/store"
)

// Job is a search that runs in the background. Safe for concurrent use.
type Job struct {
	search *Search
	cancel context.CancelFunc
	done   chan struct{} // closed when the job has ended
	err    error         // read after done
	pause  chan struct{} // closed by Pause
	end    time.Time
}

// errPaused ends a job at the next stage.
var errPaused = errors.New("paused")

// Start searches in the background for d, as Run does. Cells stay free to look; what changes the search is refused until the
// job has ended or was paused. ctx gives the progress sink; its end does not stop the job: Pause does. When something
// else is at work the job ends at once, and Wait says so.
func (s *Search) Start(ctx context.Context, d time.Duration) *Job {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j := &Job{search: s, cancel: cancel, done: make(chan struct{}), pause: make(chan struct{}), end: time.Now().Add(d)}
	began := make(chan struct{})
	go func() {
		defer close(j.done)
		defer cancel()
		var once sync.Once
		err := s.exclusive("job", func() (err error) {
			s.update(func() { s.job = j })
			defer s.update(func() { s.job = nil })
			defer func() { // a policy is code of a cell, and here its panic would end the process
				if v := recover(); v != nil {
					err = fmt.Errorf("engine: the job panicked: %v\n%s", v, debug.Stack())
				}
			}()
			once.Do(func() { close(began) })
			return j.run(run)
		})
		if !errors.Is(err, errPaused) {
			j.err = err
		}
		once.Do(func() { close(began) })
	}()
	<-began
	return j
}

// run goes from stage to stage and looks between them whether it is to pause.
func (j *Job) run(ctx context.Context) error {
	for time.Now().Before(j.end) {
		r, err := j.search.next(ctx, store.Main)
		if err != nil {
			return err
		}
		for _, step := range r.steps(ctx) {
			select {
			case <-j.pause:
				return errPaused
			default:
			}
			if err := step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pause ends the job behind the stage that runs now and waits for that; the round stays open there and can be stepped, or
// Start goes on with it. Pausing an ended job does nothing.
func (j *Job) Pause() error {
	j.search.update(func() {
		select {
		case <-j.pause:
		default:
			close(j.pause)
		}
	})
	<-j.done
	return j.err
}

// Stop ends the job at once: the stage that runs now is lost and the round stays at the one before.
func (j *Job) Stop() error {
	j.cancel()
	<-j.done
	if errors.Is(j.err, context.Canceled) {
		return nil
	}
	return j.err
}

// Wait waits for the end of the job, or of ctx, and returns the job's error.
func (j *Job) Wait(ctx context.Context) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Running says whether the job is at work.
func (j *Job) Running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// String says how the job stands.
func (j *Job) String() string {
	state := "job ended"
	switch {
	case j.Running():
		state = fmt.Sprintf("job running for another %s", time.Until(j.end).Round(time.Second))
	case j.err != nil:
		state = "job failed: " + j.err.Error()
	}
	return state + "; " + j.search.Standing()
}

// SimpleRender shows how the job stands.
func (j *Job) SimpleRender() map[string]any {
	return map[string]any{"text/plain": j.String(), "text/html": "<p>" + html.EscapeString(j.String()) + "</p>"}
}
