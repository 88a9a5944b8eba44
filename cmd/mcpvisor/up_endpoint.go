package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// controlEndpoint is how a run of `up` is found by the other commands of its project: the control socket and the journal.
// Either may be missing.
type controlEndpoint struct {
	socket  *control.Server
	journal *control.Journal
	stop    context.CancelFunc
	written chan struct{} // the journal has its last line
}

// openEndpoint opens the control socket and begins the journal. The error is another `up` that serves the project. What else
// goes wrong costs the other commands something, and is told; the servers need neither.
func (r *upRun) openEndpoint(m *guardedManager) (*controlEndpoint, error) {
	p := &controlEndpoint{stop: func() {}, written: make(chan struct{})}
	close(p.written)
	lost := func(what string, err error) {
		r.warnFailure(fmt.Errorf("%s: %w", what, err))
	}
	location, err := control.LocationOf(r.project)
	if err != nil {
		lost("other commands cannot find this one", err)
		return p, nil
	}
	local := control.LocalConfig{Project: r.project, Origin: r.origin, InheritEnv: r.inheritEnv}
	if r.noControl {
		// Whoever serves the project keeps its journal, and two writers would mix two stories.
		if c, err := control.Dial(context.Background(), location); !errors.Is(err, control.ErrNotRunning) {
			if err == nil {
				_ = c.Close() // nothing was asked
			}
			return p, nil
		}
	} else if p.socket, err = control.Serve(location, control.Local(m.Manager, local), control.OnRefused(r.reportRefused)); err != nil {
		if errors.Is(err, control.ErrRunning) && !r.flags.demo {
			return nil, err
		}
		lost("other commands cannot talk to this one", err)
		p.socket = nil
	}
	if r.noJournal {
		return p, nil
	}
	if p.journal, err = control.OpenJournal(location.Journal); err != nil {
		lost("there is no journal of this run", err)
		p.journal = nil
		return p, nil
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.written = stop, make(chan struct{})
	go func() {
		defer close(p.written)
		if err := p.journal.Follow(ctx, m.Manager, local); err != nil {
			lost("the journal of this run ends here", err)
		}
	}()
	return p, nil
}

// announceEnd is called before the manager's end: the story of the run ends with what the servers were then, and whoever asks from
// now on hears that it is ending.
func (p *controlEndpoint) announceEnd() {
	if p.socket != nil {
		p.socket.Quiesce()
	}
	p.stop()
	<-p.written
}

// closeAll is called after the manager's, so that whoever waits for an answer on the socket gets it.
func (p *controlEndpoint) closeAll() {
	if p.socket != nil {
		_ = p.socket.Close() // it has no error to give
	}
	if p.journal != nil {
		_ = p.journal.Close() // each line was written whole when it was appended
	}
}

// reportRefused tells the person of a process that may not use the control socket: of each server's once a minute.
func (r *upRun) reportRefused(server, text string) {
	skipped, say := r.refusals.Allow(server, time.Now())
	if !say {
		return
	}
	if skipped > 0 {
		text += fmt.Sprintf(" (and %d times more in the minute before)", skipped)
	}
	r.warnFailure(errors.New(messages.Line(text, 400)))
}
