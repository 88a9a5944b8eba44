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

// Pool holds worker processes. It is safe for concurrent use.
type Pool struct {
	// TaskTimeout is the real time after which a worker counts as hanging, 5 min by default. It is generous: a run takes well
	// under a second, and the worker itself notices a run that hangs within seconds.
	TaskTimeout time.Duration
	// Slow is called once for each task that takes more than 10 s, in the goroutine that called Do, with a text that says what
	// the run does. nil reports nothing.
	Slow func(t Task, text string)

	command func() *exec.Cmd
	// free holds the free workers; nil stands for one that is not started.
	free chan *worker
}

// NewPool makes a pool of at most size workers, which command starts. It starts none yet.
func NewPool(command func() *exec.Cmd, size int) *Pool {
	p := &Pool{TaskTimeout: 5 * time.Minute, command: command, free: make(chan *worker, max(size, 1))}
	for range cap(p.free) {
		p.free <- nil
	}
	return p
}

// Size returns the largest number of workers.
func (p *Pool) Size() int { return cap(p.free) }

// Do gives the task to a free worker and returns its result, and waits while none is free. If ctx ends first, Do ends the
// worker, and the result has an error.
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
		// The worker had exited after the task before, because its heap was full; a new one gets the task.
		if !alive && retry && w.hasExitedCleanly() {
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

// Close ends every worker. No Do may be under way or follow.
func (p *Pool) Close() {
	for range cap(p.free) {
		if w := <-p.free; w != nil {
			w.stopWorker()
		}
	}
}

// worker is one worker process.
type worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr *headAndTail

	// answers brings the lines of its output; readAnswers closes it at the end of the output.
	answers chan []byte
	// exited is closed when the process has ended with exit.
	exited chan struct{}
	exit   error
}

// startWorker starts a worker process. Its goroutine ends with the process.
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

// readAnswers passes on the lines of the output, and waits for the process after the last one.
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

// runTask runs one task and passes its progress on. It returns false if the worker has ended, by itself or because runTask
// killed it.
func (w *worker) runTask(ctx context.Context, t Task, p *Pool) (r Result, alive bool) {
	text, err := json.Marshal(t)
	if err != nil {
		return Result{Seed: t.Seed, Error: "the task cannot be written: " + err.Error()}, true
	}
	// If the worker has ended, the closed channel below tells.
	_, _ = w.in.Write(append(text, '\n'))
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
			// SIGQUIT makes Go print the stacks of all goroutines, on systems that have the signal.
			_ = w.cmd.Process.Signal(syscall.SIGQUIT)
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

// hasExitedCleanly waits for the end of the worker and reports whether its exit status is 0.
func (w *worker) hasExitedCleanly() bool {
	<-w.exited
	return w.exit == nil
}

// crashResult is the result of a task whose worker has died: a violation with the exit status and the line of the panic.
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

// hangResult is the result of a task that neither ends nor is noticed to hang by its worker.
func (w *worker) hangResult(t Task, what string) Result {
	r := w.crashResult(t, what)
	r.Verdicts[0].ID = invariant.Hung
	return r
}

// firstLine returns the line of a panic or fatal error, else the first line.
func firstLine(words string) string {
	for line := range strings.Lines(words) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.TrimSpace(line)
		}
	}
	line, _, _ := strings.Cut(words, "\n")
	return line
}

// killProcess kills the worker and waits for it.
func (w *worker) killProcess() {
	// The process may have ended by itself.
	_ = w.cmd.Process.Kill()
	_ = w.in.Close()
	// readAnswers must reach the end of the output to wait for the process.
	for range w.answers {
	}
	<-w.exited
}

// stopWorker ends an idle worker by the end of its input, and kills it if that takes more than 10 s.
func (w *worker) stopWorker() {
	_ = w.in.Close()
	select {
	case <-w.exited:
	case <-time.After(10 * time.Second):
		w.killProcess()
	}
}

// headAndTail keeps the first and the last 16 KiB of a worker's standard error: a panic begins with its reason, and its stacks
// may be long.
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
