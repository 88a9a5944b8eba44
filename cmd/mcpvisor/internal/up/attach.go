package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	daemonclient "github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// attachPeriod is the time between two looks at servers that another process keeps.
const attachPeriod = 300 * time.Millisecond

// runsApart returns the flag because of which this run keeps the servers in its own process and not in the daemon; empty if there is none.
func runsApart(o *cli.Options, f upFlags) string {
	switch {
	case f.demo:
		return "--demo"
	case f.noWatch:
		return "--no-watch"
	case f.callersAnswer:
		return "--callers-answer"
	case o.AskFlags.AnswersGiven():
		return "--answers"
	}
	return o.ApartFlag()
}

// attach shows the servers of this project, which the daemon keeps, until the person leaves or the daemon ends. It starts a daemon if
// there is none, and that one ends with this command, unless somebody else uses it then. attached is false if the servers cannot be kept
// so: then this command keeps them itself.
func (r *upRun) attach(ctx context.Context) (attached bool, err error) {
	o := r.options
	location, err := control.LocationOf(r.project)
	if err != nil {
		return false, nil // the run itself says what is wrong
	}
	// Another process that keeps the servers of the project is shown, too.
	if client, err := control.Dial(ctx, location); err == nil {
		hello, err := client.Hello(ctx)
		if err == nil && !control.IsDaemon(hello.PID) {
			defer client.Close()
			return true, r.showForeign(ctx, client, hello.PID)
		}
		_ = client.Close() // the daemon has them, and is asked below
	}
	r.attachment, err = daemonclient.Attach(ctx, r.project, os.LookupEnv, true)
	if err != nil {
		if stop := exit.InterruptedError(ctx); stop != nil {
			return true, stop
		}
		o.WarnFailure(fmt.Errorf("%w; this process keeps the servers itself", err))
		return false, nil
	}
	r.startedDaemon = r.attachment.Started
	defer func() { _ = r.attachment.Close() }() // what was to be said is said
	if !r.flags.json {
		for _, note := range r.attachment.Notes {
			r.notes = append(r.notes, note)
			o.PrintRemark("%s", note)
		}
	}
	return true, r.showAttached(ctx, location)
}

// showForeign shows what another process keeps.
func (r *upRun) showForeign(ctx context.Context, client control.Backend, pid int) error {
	r.attached, r.foreign = pid, true
	r.options.PrintRemark("process %d runs mcpvisor up for this project already; this shows what it keeps", pid)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	v := r.beginView(stop)
	ctx, cancel := r.withDuration(ctx)
	defer cancel()
	if err := v.follow(ctx, client, nil); err != nil {
		r.showLoss(v, "the process that kept the servers has ended")
		return exit.With(exit.Failed, fmt.Sprintf("process %d, which kept the servers, has ended", pid))
	}
	r.waitBriefly(func() { v.display.showEnding(r.leaveCause(ctx)) })
	return nil
}

// showAttached shows what the daemon keeps. If the daemon is killed or replaced, the next one is found or started.
func (r *upRun) showAttached(ctx context.Context, location control.Location) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var v *view
	ctx, cancel := r.withDuration(ctx)
	defer cancel()
	for {
		client, err := control.Dial(ctx, location)
		if err == nil {
			var hello control.Hello
			if hello, err = client.Hello(ctx); err == nil {
				if v != nil && r.attached != hello.PID {
					r.options.PrintRemark("the daemon has gone; another one, process %d, keeps the servers now", hello.PID)
				}
				r.attached = hello.PID
			}
			if v == nil {
				v = r.beginView(stop)
			}
			err = v.follow(ctx, client, r.attachment.Gone())
			_ = client.Close() // it is not asked any more
		} else if v == nil {
			if stop := exit.InterruptedError(ctx); stop != nil {
				return stop
			}
			return fmt.Errorf("the daemon keeps the servers, but its control socket cannot be used: %w", err)
		}
		if ctx.Err() != nil {
			return r.leaveDaemon(ctx, v)
		}
		if err == errDaemonEnded { //nolint:errorlint // it is returned by follow as it is
			r.showLoss(v, "the daemon was asked to end")
			return nil
		}
		// It was killed, or a newer one takes its place. Its servers are those of the next one.
		_ = r.attachment.Close()
		next, err := daemonclient.Attach(ctx, r.project, os.LookupEnv, true)
		if err != nil {
			if ctx.Err() != nil {
				r.showLoss(v, r.leaveCause(ctx)+" after the daemon had ended")
				return nil
			}
			r.showLoss(v, "the daemon has ended")
			return exit.WithCode(exit.Failed, err)
		}
		r.attachment, r.startedDaemon = next, next.Started
	}
}

// showLoss ends the view of servers whose keeper has ended.
func (r *upRun) showLoss(v *view, cause string) {
	r.keeperEnded = true
	v.display.showEnding(cause)
}

// leaveDaemon ends the view of what the daemon keeps, and waits for the end of the daemon if that ends with this command.
func (r *upRun) leaveDaemon(ctx context.Context, v *view) error {
	start := time.Now()
	r.endsDaemon = r.attachment.Detach() == daemonclient.Ended
	if v == nil {
		return nil
	}
	r.waitBriefly(func() { v.display.showEnding(r.leaveCause(ctx)) })
	if r.endsDaemon {
		within, cancel := context.WithTimeout(context.Background(), daemonclient.DrainTime+daemonclient.CloseTime)
		defer cancel()
		r.attachment.AwaitEnd(within)
		r.waitBriefly(func() { v.display.showEnded(time.Since(start)) })
	}
	if errors.Is(context.Cause(ctx), errOutputClosed) {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// withDuration bounds a context by --duration.
func (r *upRun) withDuration(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.flags.duration > 0 {
		return context.WithTimeout(ctx, r.flags.duration)
	}
	return context.WithCancel(ctx)
}

// leaveCause says for a person why the view ends.
func (r *upRun) leaveCause(ctx context.Context) string {
	if r.flags.duration > 0 && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return r.flags.duration.String() + " have passed"
	}
	return "interrupted"
}

// view is a display of servers that another process keeps, and what it has shown.
type view struct {
	display display
	seen    *seenServers
	files   *fileFaults
}

// beginView begins to show.
func (r *upRun) beginView(stop context.CancelCauseFunc) *view {
	// By default Go ends the process at a write to a closed standard output. The daemon should hear of the end instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	r.defect = func(any) { stop(errOutputClosed) }
	d := r.chooseDisplay(func() { stop(errOutputClosed) })
	r.options = d.wrapOptions(r.options)
	v := &view{display: d, seen: &seenServers{byName: map[string]messages.Status{}}, files: newFileFaults(r.reading)}
	d.beginRun(v.seen)
	return v
}

// errDaemonEnded says that the daemon was asked to end.
var errDaemonEnded = errors.New("the daemon has ended")

// follow shows what changes from one look to the next. It returns nil when ctx ends, errDaemonEnded when the daemon says that it ends, and
// another error when it has gone otherwise.
func (v *view) follow(ctx context.Context, client control.Backend, gone <-chan daemonclient.Ending) error {
	look := time.NewTicker(attachPeriod)
	defer look.Stop()
	for {
		all, err := client.Status(ctx, control.StatusQuery{})
		if err == nil {
			first := v.seen.isEmpty()
			changed, changes := v.seen.update(all, time.Now())
			if !first && !changed.None() {
				v.display.showReload(supervisor.ReloadResult{Changes: changed})
			}
			for _, e := range changes {
				v.display.showEvent(e)
			}
			if faults := v.files.newFaults(); len(faults) > 0 {
				v.display.showReload(supervisor.ReloadResult{Changes: config.Changes{Kept: changed.Kept}, Problems: faults})
			}
		} else if gone == nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case how := <-gone:
			if how == daemonclient.Ended {
				return errDaemonEnded
			}
			return control.ErrNotRunning
		case <-look.C:
		}
	}
}

// seenServers are the servers of the daemon as they were at the last look.
type seenServers struct {
	mu     sync.Mutex
	byName map[string]messages.Status
	// looked says that there was a first look.
	looked bool
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

// isEmpty reports whether nothing has been seen yet.
func (s *seenServers) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.looked
}

// update takes the servers of another look, and returns which have come and gone, and everything that has changed as events.
func (s *seenServers) update(all []messages.Status, now time.Time) (came config.Changes, changes []messages.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = true
	there := map[string]bool{}
	for _, st := range all {
		there[st.Name] = true
		old, known := s.byName[st.Name]
		if !known && st.InstanceOf == "" {
			came.Added = append(came.Added, st.Name)
		} else if known {
			came.Kept = append(came.Kept, st.Name)
		}
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
			if s.byName[name].InstanceOf == "" {
				came.Removed = append(came.Removed, name)
			}
			delete(s.byName, name)
			changes = append(changes, messages.Event{Kind: messages.EventRemoved, Server: name, Time: now})
		}
	}
	slices.Sort(came.Removed)
	return came, changes
}

// keysText says what Ctrl-C does.
func (r *upRun) keysText() string {
	switch {
	case r.foreign:
		return fmt.Sprintf("Ctrl-C leaves the servers to process %d", r.attached)
	case r.startedDaemon:
		return "Ctrl-C ends the servers, unless an agent uses them"
	case r.attached != 0:
		return "Ctrl-C leaves the servers to the daemon"
	}
	return "Ctrl-C ends the servers and mcpvisor"
}

// endText says what happens to the servers at the end of the run.
func (r *upRun) endText(servers int) string {
	switch {
	case r.keeperEnded:
		return "its " + terminal.CountOf(servers, "server") + " ended with it"
	case r.foreign:
		return fmt.Sprintf("process %d keeps %s", r.attached, terminal.CountOf(servers, "server"))
	case r.attached != 0 && !r.endsDaemon:
		return "the daemon keeps " + terminal.CountOf(servers, "server") + "; mcpvisor down ends the daemon"
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
