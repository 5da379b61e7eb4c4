package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"skep/problems/spec"
)

const (
	maxMessageBytes = 8 << 10 // of an exception with its traceback; the bootstrap keeps to less, a forged frame may not

	maxOutputBytes = 8 << 20         // of stdout, and of stderr; more ends the candidate
	lingerGrace    = time.Second     // for a candidate to end after a complete frame
	pipePatience   = 2 * time.Second // for the pipes to run dry when nothing lives any more
	outerPatience  = 10 * time.Second

	// Time in which a candidate could run but got no processor does not count as wall time: it is our load, not its
	// doing. That holds up to this many times the limit.
	maxStarved = 4
)

// run starts one candidate, follows it to its end and says what came of it; verifying is the caller's. The error is
// that of ctx. A fault of ours is the outcome InfraError.
func (j *Judge) run(ctx context.Context, work job) (Result, error) {
	p, err := j.launcher.launch(work)
	if err != nil {
		return j.infra(err.Error()), nil
	}
	s := listen(p)
	end, lingering := s.follow(ctx, p, maxStarved*work.limits.Wall+outerPatience)
	if !s.dry() {
		return j.infra("the candidate's pipes stay open although none of its processes lives"), ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	result := classify(end, s, work.limits)
	result.Stdout, result.Stderr = s.stdout.String(), s.stderr.String()
	result.CPU, result.Wall, result.PeakBytes = end.CPU, end.Wall, end.Peak
	result.Tier, result.Host = j.launcher.tier(), j.host
	result.Lingering = lingering && result.Returned != nil
	return result, nil
}

func (j *Judge) infra(message string) Result {
	return Result{Outcome: spec.InfraError, Message: message, Tier: j.launcher.tier(), Host: j.host}
}

// streams is what comes out of one candidate.
type streams struct {
	stdout, stderr excerpt
	frame          frameReader
	files          []io.Closer
	reading        sync.WaitGroup
	framed         chan struct{} // closed when a complete frame has come
	over           chan struct{} // closed when a stream passed its limit
}

// listen starts to read the pipes of p.
func listen(p *process) *streams {
	s := &streams{framed: make(chan struct{}), over: make(chan struct{}), files: []io.Closer{p.stdout, p.stderr, p.frame}}
	framed := sync.OnceFunc(func() { close(s.framed) })
	over := sync.OnceFunc(func() { close(s.over) })
	pump := func(from io.Reader, into io.Writer, after func()) {
		defer s.reading.Done()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if _, full := into.Write(buffer[:n]); full != nil {
				over()
				return
			}
			after()
			if err != nil {
				return
			}
		}
	}
	s.reading.Add(3)
	go pump(p.stdout, &s.stdout, func() {})
	go pump(p.stderr, &s.stderr, func() {})
	go pump(p.frame, &s.frame, func() {
		if s.frame.complete() {
			framed()
		}
	})
	return s
}

// follow waits for the candidate's report and kills it where its streams or ctx demand it. patience is for a supervisor
// that does not keep its own limits.
func (s *streams) follow(ctx context.Context, p *process, patience time.Duration) (end report, lingering bool) {
	framed, over, done := s.framed, s.over, ctx.Done()
	limit := time.After(patience)
	var grace <-chan time.Time
	for {
		select {
		case end = <-p.report:
			return end, lingering
		case <-framed:
			framed, grace = nil, time.After(lingerGrace)
		case <-grace:
			lingering = true
			p.kill()
		case <-over:
			over = nil
			p.kill()
		case <-done:
			done = nil
			p.kill()
		case <-limit:
			p.kill()
		}
	}
}

// dry waits until the pipes have ended and closes them; false: they do not end, and reading goes on behind.
func (s *streams) dry() bool {
	ended := make(chan struct{})
	go func() { s.reading.Wait(); close(ended) }()
	defer func() {
		for _, f := range s.files {
			f.Close()
		}
	}()
	select {
	case <-ended:
		return true
	case <-time.After(pipePatience):
		return false
	}
}

// classify decides the outcome. A complete frame counts whatever its sender did afterwards; without one the first cause
// from outside does, then the frame's fault, then how the process ended.
func classify(end report, s *streams, limits spec.Limits) Result {
	switch {
	case end.Error != "":
		return failed(spec.InfraError, "%s", end.Error)
	case s.stdout.full() || s.stderr.full():
		return failed(spec.OutputLimit, "more than %d MiB on stdout or stderr", maxOutputBytes>>20)
	case errors.Is(s.frame.err, errTooLarge):
		return failed(spec.ResultLimit, "%v", s.frame.err)
	}
	r, empty, err := s.frame.reply()
	if !empty && err == nil {
		return replied(r, s.frame.data)
	}
	if errors.Is(err, errTooLarge) {
		return failed(spec.ResultLimit, "%v", err)
	}
	if result, ok := forced(end, limits); ok {
		return result
	}
	if !s.frame.ready && s.frame.err == nil {
		return failed(spec.InfraError, "Python ended before the walls stood (wait status %#x): %s", end.Status, s.stderr.String())
	}
	if result, ok := signalled(end, limits); ok && end.Cause != leashPulled {
		return result
	}
	if err != nil {
		return failed(spec.BadResult, "%v", err)
	}
	if end.Cause == leashPulled {
		return failed(spec.TimeoutWall, "still running long after its %v on the clock", limits.Wall)
	}
	return failed(spec.NoResult, "the process ended with exit status %d and without a result", syscall.WaitStatus(end.Status).ExitStatus())
}

func failed(o spec.Outcome, format string, args ...any) Result {
	return Result{Outcome: o, Message: fmt.Sprintf(format, args...)}
}

// replied is the outcome of a well-formed frame.
func replied(r reply, frame []byte) Result {
	text := r.message
	if r.kind != "" {
		text = r.kind + ": " + text
	}
	text = strings.TrimSpace(plainText(clip(text+"\n"+r.traceback, maxMessageBytes)))
	switch r.status {
	case statusOK:
		return Result{Outcome: spec.OK, Returned: r.value, Frame: frame}
	case statusSyntax:
		return failed(spec.SyntaxError, "%s", text)
	case statusBad:
		return failed(spec.BadResult, "%s", text)
	case statusLarge:
		return failed(spec.ResultLimit, "%s", text)
	case statusMemory:
		return failed(spec.OutOfMemory, "%s", text)
	default:
		return failed(spec.Exception, "%s", text)
	}
}

// plainText takes out what would steer a terminal: control characters but for tabs and line ends.
func plainText(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return unicode.ReplacementChar
		}
		return c
	}, strings.ReplaceAll(s, "\r\n", "\n"))
}

// forced is the outcome of a candidate that the supervisor stopped.
func forced(end report, limits spec.Limits) (Result, bool) {
	switch end.Cause {
	case overWall:
		return failed(spec.TimeoutWall, "still running after %v on the clock (%v of processor time)", limits.Wall, end.CPU.Round(10*time.Millisecond)), true
	case overCPU:
		return failed(spec.TimeoutCPU, "used more than %v of processor time", limits.CPU), true
	case overMemory:
		return failed(spec.OutOfMemory, "used more than %d MiB of memory", limits.MemoryBytes>>20), true
	case overScratch:
		return failed(spec.OutputLimit, "wrote more files than the scratch folder may hold"), true
	case overThreads:
		return failed(spec.Crash, "started too many threads and was killed"), true
	default:
		return Result{}, false
	}
}

// signalled is the outcome of a candidate that died by a signal.
func signalled(end report, limits spec.Limits) (Result, bool) {
	status := syscall.WaitStatus(end.Status)
	if !status.Signaled() {
		return Result{}, false
	}
	switch sig := status.Signal(); {
	case sig == syscall.SIGSYS:
		return failed(spec.ForbiddenSyscall, "made a system call that only hostile programs make, and was killed"), true
	case sig == syscall.SIGXCPU || sig == syscall.SIGKILL && end.CPU >= limits.CPU:
		return failed(spec.TimeoutCPU, "used more than %v of processor time", limits.CPU), true
	default:
		return failed(spec.Crash, "died by signal %d (%v)", int(sig), sig), true
	}
}
