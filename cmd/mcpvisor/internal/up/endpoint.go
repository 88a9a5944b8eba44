package up

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// controlEndpoint holds the two places where the other commands of the project find a run of up: the control socket and the
// journal. Either may be nil.
type controlEndpoint struct {
	socket  *control.Server
	journal *control.Journal
	// stop ends the goroutine that writes the journal.
	stop    context.CancelFunc
	written chan struct{} // closed when the journal has its last line
}

// openEndpoint opens the control socket and begins the journal. It returns an error only if another up serves the project
// already. Any other failure is reported and costs only the other commands something, because the servers need neither.
func (r *upRun) openEndpoint(m *project.GuardedManager) (*controlEndpoint, error) {
	p := &controlEndpoint{stop: func() {}, written: make(chan struct{})}
	// Without a journal there is nothing to wait for.
	close(p.written)
	lost := func(what string, err error) {
		r.options.WarnFailure(fmt.Errorf("%s: %w", what, err))
	}
	location, err := control.LocationOf(r.project)
	if err != nil {
		lost("other commands cannot find this one", err)
		return p, nil
	}
	local := control.LocalConfig{Project: r.project, Origin: r.origin, InheritEnv: r.options.InheritEnv}
	if r.options.NoControl {
		// The up that serves the project writes its journal, and a second writer would mix two histories.
		if c, err := control.Dial(context.Background(), location); !errors.Is(err, control.ErrNotRunning) {
			if err == nil {
				_ = c.Close() // nothing was asked of it
			}
			return p, nil
		}
	} else if p.socket, err = control.Serve(location, control.Local(m.Manager, local), control.OnRefused(r.reportRefused)); err != nil {
		// The demo shares the project with a running up and does without the socket.
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

// announceEnd is called before the manager is closed. It lets the journal end with the statuses that the servers have now, and
// makes the socket answer that up is ending.
func (p *controlEndpoint) announceEnd() {
	if p.socket != nil {
		p.socket.Quiesce()
	}
	p.stop()
	<-p.written
}

// closeAll is called after the manager is closed, so that a command which waits for an answer on the socket still gets it.
func (p *controlEndpoint) closeAll() {
	if p.socket != nil { // Close reports no error
		_ = p.socket.Close() // it has no error to give
	}
	if p.journal != nil {
		_ = p.journal.Close() // each line was written whole when it was appended
	}
}

// reportRefused reports a process that may not use the control socket, at most once a minute for each server, because the
// process may try without pause.
func (r *upRun) reportRefused(server, text string) {
	skipped, say := r.refusals.Allow(server, time.Now())
	if !say {
		return
	}
	if skipped > 0 {
		text += fmt.Sprintf(" (and %d times more in the minute before)", skipped)
	}
	r.options.WarnFailure(errors.New(messages.Line(text, 400)))
}
