package score

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// slack is the time beyond its own limit after which an adapter's answer counts as missing.
const slack = 15 * time.Second

// adapterProcess is one adapter process.
type adapterProcess struct {
	cmd *exec.Cmd
	// in is the adapter's standard input: one command per line. out is its standard output.
	in  io.WriteCloser
	out io.Closer
	// input names the pipe of in as the adapter sees it.
	input string
	// exited is closed when the process has ended and was waited for.
	exited chan struct{}

	// mu guards the fields below, and the writing to in. next is the last id given out; waiting maps ids to the channels of
	// open commands.
	mu      sync.Mutex
	next    int
	waiting map[int]chan adapter.Answer
}

// startAdapter starts the adapter. Its environment is that of this process and a secret that no server may see (case "secrets
// of the environment"). words receives its standard error; nil discards it.
func startAdapter(ctx context.Context, argv []string, words io.Writer) (*adapterProcess, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), secretName+"="+secret)
	cmd.WaitDelay, cmd.Stderr = time.Second, words
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the adapter does not start: %w", err)
	}
	d := &adapterProcess{cmd: cmd, in: in, out: out, input: inputPipe(cmd.Process.Pid), exited: make(chan struct{}),
		waiting: map[int]chan adapter.Answer{}}
	go d.readAnswers(out)
	return d, nil
}

// readAnswers hands the answers to those that wait, until the adapter's output ends, and then waits for the process.
// An answer whose id is not open is dropped: its command was given up, or the adapter answered twice. A channel of waiting has
// room for its answer, so that the reader never blocks.
func (d *adapterProcess) readAnswers(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		var a adapter.Answer
		if json.Unmarshal(line, &a) == nil {
			d.mu.Lock()
			waiting := d.waiting[a.ID]
			delete(d.waiting, a.ID)
			d.mu.Unlock()
			if waiting != nil {
				waiting <- a
			}
		}
		if err != nil {
			break
		}
	}
	// The exit status has no meaning here.
	_ = d.cmd.Wait()
	close(d.exited)
}

// answer is an adapter's answer to one command.
type answer struct {
	adapter.Answer
	// took is measured by this process and not by the adapter. hung is set if no answer came.
	took time.Duration
	hung bool
}

// errorText returns the error of an answer in a few words.
func (a answer) errorText() string {
	switch {
	case a.hung:
		return fmt.Sprintf("no answer of the client within %s", a.took.Round(time.Second))
	case a.Error != "":
		return shorten(a.Error)
	case !a.OK:
		return "it failed and did not say why"
	}
	return "it succeeded"
}

// shorten cuts a text to 140 characters.
func shorten(s string) string {
	const most = 140
	r := []rune(s)
	if len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// sendCommand sends a command and returns a channel with one answer: the adapter's, or an error if it has ended or hangs.
func (d *adapterProcess) sendCommand(c adapter.Command) <-chan answer {
	result := make(chan answer, 1)
	waiting := make(chan adapter.Answer, 1)
	d.mu.Lock()
	d.next++
	c.ID = d.next
	d.waiting[c.ID] = waiting
	line, err := json.Marshal(c)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	d.mu.Unlock()
	began := time.Now()
	bound := time.Duration(c.TimeoutMs)*time.Millisecond + slack
	if err != nil {
		// Mostly the adapter is about to end, and what it wrote about the reason is complete only when it has.
		go func() {
			select {
			case <-d.exited:
			case <-time.After(bound):
			}
			result <- answer{Answer: adapter.Answer{Error: "the adapter does not read any more: " + err.Error()}}
		}()
		return result
	}
	// The goroutine ends with the answer, with the adapter, or with the limit.
	go func() {
		t := time.NewTimer(bound)
		defer t.Stop()
		select {
		case a := <-waiting:
			result <- answer{Answer: a, took: time.Since(began)}
		case <-t.C:
			result <- answer{took: bound, hung: true}
		// The answer may have come just before the end; it counts.
		case <-d.exited:
			select {
			case a := <-waiting:
				result <- answer{Answer: a, took: time.Since(began)}
			default:
				result <- answer{Answer: adapter.Answer{Error: "the adapter has ended"}, took: time.Since(began)}
			}
		}
	}()
	return result
}

// quit asks the adapter to end, and reports whether it has ended within the time.
func (d *adapterProcess) quit(within time.Duration) bool {
	d.sendCommand(adapter.Command{Do: "quit"})
	select {
	case <-d.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// clientPIDs returns the processes of the client: the one that was started, and, where that is a launcher like npx, those that
// it gave its standard input, because one of them is the client. Servers and guardians have another standard input.
func (d *adapterProcess) clientPIDs() []int {
	pids := processesReading(d.input)
	if first := d.cmd.Process.Pid; !slices.Contains(pids, first) {
		pids = append(pids, first)
	}
	return pids
}

// killClient kills the client at once, and does not wait for its end.
func (d *adapterProcess) killClient() {
	for _, pid := range d.clientPIDs() {
		killProcess(pid)
	}
	_ = d.cmd.Process.Kill() // it may have ended
}

// kill ends the client at once and waits until it has ended. A process that still has its output then is a server's or a
// guardian's: it must not keep the case from going on.
func (d *adapterProcess) kill() {
	d.killClient()
	defer time.AfterFunc(outputTime, func() { _ = d.out.Close() }).Stop()
	<-d.exited
}

// outputTime bounds how long the output of a client that was killed is read.
const outputTime = 2 * time.Second

// secretName is the environment variable that holds the secret of startAdapter.
const (
	secretName = "MCPVISOR_SCORE_SECRET"
	secret     = "canary-of-the-score"
)

// lastWords keeps the last 16 KiB of an adapter's standard error. It is safe for concurrent use.
type lastWords struct {
	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (w *lastWords) Write(p []byte) (int, error) {
	const most = 16 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = append(w.end, p...)
	w.end = slices.Clone(w.end[max(0, len(w.end)-most):])
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.end)
}
