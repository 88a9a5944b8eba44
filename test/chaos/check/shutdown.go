package check

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
)

// unmanagedProcess is a process that only this file ends, so that the check sees how it ends by itself. A transport would send
// it SIGTERM and SIGKILL.
type unmanagedProcess struct {
	cmd *exec.Cmd
	// in is closed by one of the two ways of ending, and again by endTree, which does no harm.
	in io.WriteCloser
	// lines has room for 64 lines; readLines drops further ones.
	lines chan []byte
	// exited is closed when the process has ended and was waited for.
	exited  chan struct{}
	release func()
	// tree holds the process and its descendants at the time when the tree was read.
	tree []process
}

// process is one process of the system. Its id and start time together are unique, because ids are reused.
type process struct {
	pid   int
	name  string
	start uint64
}

// startUnmanaged starts the server in a process group of its own. The caller must call endTree.
func (s *serverCheck) startUnmanaged() (*unmanagedProcess, error) {
	cmd := exec.Command(s.spec.Command, s.spec.Args...)
	cmd.Env, cmd.Dir = kinds.ChildEnv(&s.spec, s.o.InheritEnv, nil), s.spec.Cwd
	cmd.SysProcAttr = ownGroup()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// A descendant may hold the output open after the process has ended.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// The guard is told of the process at once: if this program is killed during the check, the guardian ends the server.
	b := &unmanagedProcess{cmd: cmd, in: in, lines: make(chan []byte, 64), exited: make(chan struct{}), release: func() {}}
	if s.o.Guard != nil {
		b.release = s.o.Guard.Watch(cmd.Process.Pid)
	}
	var reading sync.WaitGroup
	reading.Go(func() { b.readLines(out) })
	// The goroutine ends with the process, which endTree ensures.
	go func() {
		defer close(b.exited)
		// Only the fact of the end matters here, not the exit status.
		_, _ = cmd.Process.Wait()
	}()
	go func() {
		<-b.exited
		time.AfterFunc(time.Second, func() { out.Close() })
		reading.Wait()
	}()
	return b, nil
}

// readLines passes on the lines of standard output, and drops those that the check does not wait for.
func (b *unmanagedProcess) readLines(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		select {
		case b.lines <- line:
		default:
		}
		if err != nil {
			return
		}
	}
}

// shakeHands performs the handshake and asks for the tools, so that the server is at work when it is asked to end.
func (b *unmanagedProcess) shakeHands(ctx context.Context, s *serverCheck) error {
	c := &rawClient{}
	if s.era == messages.EraModern {
		c.modern = s.version
	} else {
		hello := c.requestBody(1, "initialize", map[string]any{
			"protocolVersion": s.version, "capabilities": map[string]any{}, "clientInfo": clientInfo,
		})
		if err := b.awaitAnswer(ctx, hello, "1"); err != nil {
			return err
		}
		if err := b.writeBody(c.requestBody(0, "notifications/initialized", nil)); err != nil {
			return err
		}
	}
	return b.awaitAnswer(ctx, c.requestBody(2, "tools/list", map[string]any{}), "2")
}

// writeBody writes one message as a line.
func (b *unmanagedProcess) writeBody(body []byte) error {
	_, err := b.in.Write(append(body, '\n'))
	return err
}

// awaitAnswer writes a request and waits for the answer with the id.
func (b *unmanagedProcess) awaitAnswer(ctx context.Context, body []byte, id string) error {
	if err := b.writeBody(body); err != nil {
		return err
	}
	for {
		select {
		case line := <-b.lines:
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			if json.Unmarshal(line, &m) == nil && m.Method == "" && string(m.ID) == id {
				return nil
			}
		case <-b.exited:
			return fmt.Errorf("the process ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitExit waits for the end of the process, at most within, and returns how long it took.
func (b *unmanagedProcess) awaitExit(within time.Duration) (time.Duration, bool) {
	began := time.Now()
	select {
	case <-b.exited:
		return time.Since(began), true
	case <-time.After(within):
		return within, false
	}
}

// remainingTree waits until no descendant runs any more, and returns those that still run after within.
func (b *unmanagedProcess) remainingTree(within time.Duration) (remaining []process) {
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		remaining = remaining[:0]
		for _, p := range b.tree {
			if p.pid != b.cmd.Process.Pid && p.isRunning() {
				remaining = append(remaining, p)
			}
		}
		if len(remaining) == 0 || time.Now().After(end) {
			return remaining
		}
	}
}

// endTree ends the process and everything of its tree, and waits for it.
func (b *unmanagedProcess) endTree() {
	b.in.Close()
	select {
	// The group's id may belong to another group once all its processes have ended.
	case <-b.exited:
	default:
		b.tree = append(b.tree, processTree(b.cmd.Process.Pid)...)
		killGroup(b.cmd.Process.Pid)
		// The process may have ended meanwhile.
		_ = b.cmd.Process.Kill()
	}
	for _, p := range b.tree {
		if p.pid != b.cmd.Process.Pid {
			p.kill()
		}
	}
	<-b.exited
	b.release()
}

// checkShutdown checks how the process ends when its input ends, how it ends on SIGTERM, and what it leaves behind.
func (s *serverCheck) checkShutdown(ctx context.Context) {
	if s.kind != messages.Stdio {
		return
	}
	if !canSignal {
		s.addFinding("shutdown", NotTried, "how a process ends by itself is looked at on Linux and macOS only", "")
		return
	}
	// Each way of ending gets a process of its own, because a process ends only once.
	took, ended, ok := s.measureEnd(ctx, func(b *unmanagedProcess) { b.in.Close() })
	if !ok {
		return
	}
	// Standard input stays open here, so that only the signal can be the reason of the end.
	onTerm, byTerm, ok := s.measureEnd(ctx, func(b *unmanagedProcess) { _ = b.cmd.Process.Signal(syscall.SIGTERM) })
	if !ok {
		return
	}
	const fix = "end when standard input ends: when a client crashes that is the only thing a server sees, and it stays " +
		"behind for ever"
	switch {
	case ended:
		s.addFinding("shutdown", Pass, fmt.Sprintf("it ends %s after its input has ended", durationText(took)), "", "ms", took)
	case byTerm:
		s.addFinding("shutdown", Fail, fmt.Sprintf("its input ended, and it went on for %s until it was killed", s.o.Grace), fix)
	default:
		s.addFinding("shutdown", Fail, fmt.Sprintf("neither the end of its input nor SIGTERM ends it within %s: only SIGKILL does",
			s.o.Grace), fix)
	}
	if byTerm {
		s.addFinding("signal", Pass, fmt.Sprintf("it ends %s after SIGTERM", durationText(onTerm)), "", "ms", onTerm)
		return
	}
	s.addFinding("signal", Warn, fmt.Sprintf("SIGTERM does not end it within %s", s.o.Grace),
		"let SIGTERM end the process: containers and service managers send it first")
}

// measureEnd starts the server, asks it to end in one way, and returns how long that took and whether it ended within Grace. ok
// is false if the server could not be started again. If it ended, its descendants are judged.
func (s *serverCheck) measureEnd(ctx context.Context, ask func(*unmanagedProcess)) (took time.Duration, ended, ok bool) {
	b, err := s.startUnmanaged()
	if err != nil {
		s.addFinding("shutdown", NotTried, "it could not be started once more: "+messages.Line(err.Error(), 200), "")
		return 0, false, false
	}
	defer b.endTree()
	within, cancel := context.WithTimeout(ctx, s.connectTimeout())
	defer cancel()
	if err := b.shakeHands(within, s); err != nil {
		s.addFinding("shutdown", NotTried, "it did not shake hands once more: "+messages.Line(err.Error(), 200), "")
		return 0, false, false
	}
	// The tree is read before the end: afterwards orphans belong to process 1 and cannot be told from others.
	b.tree = processTree(b.cmd.Process.Pid)
	ask(b)
	took, ended = b.awaitExit(s.o.Grace)
	if ended {
		s.judgeChildren(b)
	}
	return took, ended, true
}

// judgeChildren judges which descendants outlived the server. The two ways of ending share one finding, and the worse result
// counts.
func (s *serverCheck) judgeChildren(b *unmanagedProcess) {
	// Descendants get as long as the server itself had, because they may end by the end of a pipe to it.
	remaining := b.remainingTree(s.o.Grace)
	// A Pass of the first way of ending gives way to a Fail of the second; a Fail stays.
	for i, f := range s.out.Findings {
		if f.ID != "children" {
			continue
		}
		if f.Verdict == Fail || len(remaining) == 0 {
			return
		}
		s.out.Findings = append(s.out.Findings[:i:i], s.out.Findings[i+1:]...)
		break
	}
	if len(remaining) == 0 {
		if countsTree {
			text := "it leaves no process behind"
			if n := len(b.tree) - 1; n > 0 {
				text += fmt.Sprintf(" (it had %s)", pluralText(n, "descendant"))
			}
			s.addFinding("children", Pass, text, "")
		}
		return
	}
	names := make([]string, len(remaining))
	for i, p := range remaining {
		names[i] = fmt.Sprintf("%s (pid %d)", messages.Line(p.name, 30), p.pid)
	}
	s.addFinding("children", Fail, fmt.Sprintf("%s after the server has ended: %s; the check has ended them",
		survivorsText(len(remaining)), strings.Join(names, ", ")),
		"end what was started before ending, and start nothing in a session of its own", "processes", len(remaining))
}

// survivorsText writes how many descendants live on.
func survivorsText(n int) string {
	if n == 1 {
		return "1 descendant lives on"
	}
	return fmt.Sprintf("%d descendants live on", n)
}
