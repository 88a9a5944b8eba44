package agents

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// lineLink is a session on lines, through pipes in memory.
type lineLink struct {
	session *session
	in      *io.PipeReader // what the endpoint writes
	out     *io.PipeWriter // what the endpoint reads
	// queue holds what is to be written, so that two operations do not write at once, and none waits for the endpoint.
	queue chan []byte
}

func newLineLink(s *session) *lineLink {
	a := s.agent
	fromAgent, out := io.Pipe()
	in, toAgent := io.Pipe()
	l := &lineLink{session: s, in: in, out: out, queue: make(chan []byte, 64)}
	_, principal := tokenFor(&a.plan)
	path := serve.Path{Server: a.plan.View}
	if a.plan.Through == scenario.ThroughPath {
		path.View = a.plan.Held
	}
	a.fleet.running.Go(func() {
		err := serve.Stdio(a.fleet.lifetime, a.fleet.serve, principal, path, fromAgent, toAgent)
		_ = fromAgent.CloseWithError(io.ErrClosedPipe)
		_ = toAgent.CloseWithError(err)
	})
	a.fleet.running.Go(l.readLines)
	a.fleet.running.Go(l.writeLines)
	return l
}

// readLines reads until the endpoint has closed its side.
func (l *lineLink) readLines() {
	r := bufio.NewReaderSize(l.in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		l.session.receiveMessage(line, 0, "")
	}
	l.session.overOnce.Do(func() { close(l.session.over) })
}

// writeLines writes what is queued, until the session is over.
func (l *lineLink) writeLines() {
	for {
		select {
		case line := <-l.queue:
			if _, err := l.out.Write(append(line, '\n')); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				return
			}
		case <-l.session.over:
			return
		}
	}
}

func (l *lineLink) send(_ context.Context, m outgoing) {
	select {
	case l.queue <- m.body:
	case <-l.session.over:
	}
}

// cancels implements link: what was asked on lines is answered, whether somebody reads it or not.
func (l *lineLink) cancels(bool) bool { return false }

// end closes the input of the endpoint; an agent that is killed reads nothing any more, too.
func (l *lineLink) end(polite bool) {
	_ = l.out.Close()
	if !polite {
		_ = l.in.CloseWithError(io.ErrClosedPipe)
	}
}
