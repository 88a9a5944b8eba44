package campaign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// Pool is worker processes. It is safe for concurrent use.
type Pool struct {
	// TaskTimeout is how long a worker may take for one task before it counts as hanging; 5 min. It is real time, and
	// generous: a run takes well under a second, and the worker itself sees what stands still within seconds.
	TaskTimeout time.Duration
	// Slow, if not nil, is told once of each task that takes more than 10 s, and what it does. It is called by whoever called Do.
	Slow func(t Task, text string)

	command func() *exec.Cmd
	free    chan *worker // holds nil for a worker that is not started
}

// NewPool makes a pool of at most size workers, which command starts. Nothing is started yet.
func NewPool(command func() *exec.Cmd, size int) *Pool {
	p := &Pool{TaskTimeout: 5 * time.Minute, command: command, free: make(chan *worker, max(size, 1))}
	for range cap(p.free) {
		p.free <- nil
	}
	return p
}

// Size is how many workers there are at most.
func (p *Pool) Size() int { return cap(p.free) }

// Do gives the task to a worker that is free and returns its result. If ctx ends first the worker is ended, and the result
// has an error.
func (p *Pool) Do(ctx context.Context, t Task) Result {
	var w *worker
	select {
	case w = <-p.free:
	case <-ctx.Done():
		return Result{Seed: t.Seed, Error: ctx.Err().Error()}
	}
	for retry := w != nil; ; retry = false {
		if w == nil {
			var err error
			if w, err = startWorker(p.command()); err != nil {
				p.free <- nil
				return Result{Seed: t.Seed, Error: "a worker cannot be started: " + messages.Line(err.Error(), 300)}
			}
		}
		r, alive := w.runTask(ctx, t, p)
		if !alive && retry && w.hasExitedCleanly() { // it had ended after the task before
			w = nil
			continue
		}
		if !alive {
			w = nil
		}
		p.free <- w
		return r
	}
}

// Close ends every worker. No Do may be under way, and none may follow.
func (p *Pool) Close() {
	for range cap(p.free) {
		if w := <-p.free; w != nil {
			w.stopWorker()
		}
	}
}

// worker is one process.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *headAndTail

	answers chan []byte // closed at the end of its output; by read
	exited  chan struct{}
	exit    error
}

func startWorker(cmd *exec.Cmd) (*worker, error) {
	w := &worker{cmd: cmd, stderr: &headAndTail{}, answers: make(chan []byte, 1), exited: make(chan struct{})}
	cmd.Stderr = w.stderr
	var err error
	if w.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go w.readAnswers(out)
	return w, nil
}

// readAnswers ends with the process.
func (w *worker) readAnswers(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		w.answers <- line
	}
	close(w.answers)
	w.exit = w.cmd.Wait()
	close(w.exited)
}

// runTask runs one task. It reports false if the worker is no more.
func (w *worker) runTask(ctx context.Context, t Task, p *Pool) (r Result, alive bool) {
	text, err := json.Marshal(t)
	if err != nil {
		return Result{Seed: t.Seed, Error: "the task cannot be written: " + err.Error()}, true
	}
	_, _ = w.in.Write(append(text, '\n')) // a worker that has ended is seen below
	timer := time.NewTimer(p.TaskTimeout)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-w.answers:
			if !ok {
				<-w.exited
				return w.crashResult(t, "the process of the run has died"), false
			}
			r = Result{}
			if err := json.Unmarshal(line, &r); err != nil {
				w.killProcess()
				return Result{Seed: t.Seed, Error: "the result of a worker cannot be read: " + messages.Line(err.Error(), 200)}, false
			}
			if r.Slow == "" {
				return r, true
			}
			if p.Slow != nil {
				p.Slow(t, r.Slow)
			}
		case <-timer.C:
			_ = w.cmd.Process.Signal(syscall.SIGQUIT) // the stacks of all goroutines, where the system has it
			select {
			case <-w.exited:
			case <-time.After(10 * time.Second):
			}
			w.killProcess()
			return w.hangResult(t, fmt.Sprintf("The run has not ended within %v of real time", p.TaskTimeout)), false
		case <-ctx.Done():
			w.killProcess()
			return Result{Seed: t.Seed, Error: ctx.Err().Error()}, false
		}
	}
}

// hasExitedCleanly reports that the worker has ended in good order.
func (w *worker) hasExitedCleanly() bool {
	<-w.exited
	return w.exit == nil
}

// crashResult is the result of a task whose worker has died.
func (w *worker) crashResult(t Task, what string) Result {
	words := w.stderr.String()
	why := what
	var exit *exec.ExitError
	if errors.As(w.exit, &exit) {
		why += " (" + exit.String() + ")"
	}
	if head := firstLine(words); head != "" {
		why += ": " + head
	}
	return Result{Seed: t.Seed, Verdicts: []invariant.Verdict{{
		ID: Crash, Title: "the run comes to its end", Answer: invariant.Violated, Why: messages.Line(why, 500), Looked: 1,
	}}, Stack: words}
}

// hangResult is the result of a task that its worker does not end, and does not see to hang.
func (w *worker) hangResult(t Task, what string) Result {
	r := w.crashResult(t, what)
	r.Verdicts[0].ID = invariant.Hung
	return r
}

// firstLine is the line that says what happened.
func firstLine(words string) string {
	for line := range strings.Lines(words) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
	}
	line, _, _ := strings.Cut(words, "\n")
	return line
}

func (w *worker) killProcess() {
	_ = w.cmd.Process.Kill() // it may have ended by itself
	_ = w.in.Close()
	for range w.answers { // so that read comes to the end of the output
	}
	<-w.exited
}

// stopWorker lets a worker go that has nothing to do.
func (w *worker) stopWorker() {
	_ = w.in.Close()
	select {
	case <-w.exited:
	case <-time.After(10 * time.Second):
		w.killProcess()
	}
}

// headAndTail keeps the beginning and the end of what a worker writes to its standard error: a panic begins with why.
type headAndTail struct {
	mu         sync.Mutex
	head, tail bytes.Buffer
}

const keptBytes = 16 << 10

// Write implements io.Writer.
func (l *headAndTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	if room := keptBytes - l.head.Len(); room > 0 {
		l.head.Write(p[:min(room, len(p))])
		p = p[min(room, len(p)):]
	}
	l.tail.Write(p)
	if over := l.tail.Len() - keptBytes; over > 0 {
		l.tail.Next(over)
	}
	return n, nil
}

func (l *headAndTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head.String() + l.tail.String()
}
