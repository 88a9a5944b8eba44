package serve

import (
	"context"
	"errors"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// attachPeriod is the time between two looks at the servers of the daemon.
const attachPeriod = 300 * time.Millisecond

// attachUp shows the servers of this project if the daemon has them, until the person leaves or the daemon ends. attached is false
// if it has not: then this command keeps them itself.
func attachUp(ctx context.Context, o *cli.Options, f upFlags) (attached bool, err error) {
	if o.NoControl || len(o.Configs)+len(o.Servers) > 0 {
		return false, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return false, nil // the run itself says what is wrong
	}
	project, err := discover.ProjectDir(dir)
	if err != nil {
		return false, nil // the same
	}
	location, err := control.LocationOf(project)
	if err != nil {
		return false, nil // the same
	}
	client, err := control.Dial(ctx, location)
	if err != nil {
		return false, nil // nobody has them
	}
	defer client.Close()
	hello, err := client.Hello(ctx)
	if err != nil || !control.IsDaemon(hello.PID) {
		return false, nil // another up has them, of which the run itself tells
	}
	r := &upRun{options: o, flags: f, project: project, attached: hello.PID, servers: map[string]supervisor.Spec{}, close: func() {}}
	for _, name := range hello.Names {
		r.servers[name] = supervisor.Spec{}
	}
	return true, r.showAttached(ctx, client)
}

// showAttached shows what changes from one look to the next.
func (r *upRun) showAttached(ctx context.Context, client control.Backend) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.defect = func(any) { stop(errOutputClosed) }
	d := r.chooseDisplay(func() { stop(errOutputClosed) })
	r.options = d.wrapOptions(r.options)
	seen := &seenServers{byName: map[string]messages.Status{}}
	d.beginRun(seen)
	if r.flags.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.flags.duration)
		defer cancel()
	}
	look := time.NewTicker(attachPeriod)
	defer look.Stop()
	for {
		all, err := client.Status(ctx, control.StatusQuery{})
		if err != nil && ctx.Err() == nil {
			d.showEnding("the daemon has ended")
			return exit.With(exit.Failed, "the daemon has ended; mcpvisor up keeps the servers of this project itself")
		}
		if err == nil {
			for _, e := range seen.update(all, time.Now()) {
				d.showEvent(e)
			}
		}
		select {
		case <-ctx.Done():
			cause := "interrupted"
			if r.flags.duration > 0 && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				cause = r.flags.duration.String() + " have passed"
			}
			r.waitBriefly(func() { d.showEnding(cause) })
			return nil
		case <-look.C:
		}
	}
}

// seenServers are the servers of the daemon as they were at the last look.
type seenServers struct {
	mu     sync.Mutex
	byName map[string]messages.Status
}

// Status implements statusSource.
func (s *seenServers) Status() (all []messages.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.byName {
		all = append(all, st)
	}
	return all
}

// AuditStats implements statusSource: the daemon's record is shown by mcpvisor audit.
func (s *seenServers) AuditStats() (none audit.Stats) { return none }

// countTools implements statusSource.
func (s *seenServers) countTools(server string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byName[server].Tools)
}

// update takes the servers of another look, and returns what has changed as events.
func (s *seenServers) update(all []messages.Status, now time.Time) (changes []messages.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[string]bool{}
	for _, st := range all {
		there[st.Name] = true
		old, known := s.byName[st.Name]
		s.byName[st.Name] = st
		if !known || old.Status != st.Status || old.Step != st.Step || old.Error != st.Error || old.Warm != st.Warm ||
			!reflect.DeepEqual(old.NextAttempt, st.NextAttempt) {
			changes = append(changes, messages.Event{Kind: messages.EventPhase, Server: st.Name, Status: &st, Time: now})
		}
		if len(old.Tools) != len(st.Tools) {
			changes = append(changes, messages.Event{Kind: messages.EventTools, Server: st.Name, Time: now})
		}
	}
	for name := range s.byName {
		if !there[name] {
			delete(s.byName, name)
			changes = append(changes, messages.Event{Kind: messages.EventRemoved, Server: name, Time: now})
		}
	}
	return changes
}

// keysText says what Ctrl-C does.
func (r *upRun) keysText() string {
	if r.attached != 0 {
		return "Ctrl-C leaves the servers to the daemon"
	}
	return "Ctrl-C ends the servers and mcpvisor"
}

// endText says what happens to the servers at the end of the run.
func (r *upRun) endText(servers int) string {
	if r.attached != 0 {
		return "the daemon keeps " + terminal.CountOf(servers, "server") + ", until mcpvisor down"
	}
	return "ending " + terminal.CountOf(servers, "server")
}

// secondInterruptText says what a second Ctrl-C does.
func (r *upRun) secondInterruptText() string {
	if r.attached != 0 {
		return ""
	}
	return " (Ctrl-C again ends them at once)"
}
