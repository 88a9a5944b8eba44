// Package project gives a command the servers that it works with: those that the daemon or a running "mcpvisor up" keeps, or those that
// the configuration names and the command starts for itself.
//
// How it fits: nearly every command follows the same steps.
//
//	LoadSetup             reads flags and files into a Setup, with supervisor/discover
//	Open                  connects over supervisor/control to the process that keeps the servers: a daemon that runs, or an up
//	Project.StartServers  otherwise starts a supervisor.Manager in this process, under a guardian
//	Project.Backend       answers the command's questions, the same way in both cases
//	Project.Close         ends what this process started, within CloseTime
//
// A command that only changes files needs the setup alone. The package prints remarks and problems, and no results.
//
// Guarantees: a command never has servers twice: with a daemon, or an up of this project, it starts none, unless --no-control says so. What
// it started ends with Close, or by the guardian if the process is killed.
//
// Not promised: that the running up has the same configuration. Where it matters its origin is compared, and a remark says so.
package project

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	daemonclient "github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// Project is the set of servers that a command works with: those of a running mcpvisor up, or those that the configuration
// names and the command starts for itself. Open makes it; the command must call close.
type Project struct {
	Options *cli.Options
	// Setup holds the configuration of flags and files; with a running up it serves only for messages and the origin.
	Setup *Setup
	// ControlLocation says where the control socket of this project is; the zero value if it cannot be found out.
	ControlLocation control.Location
	// Backend answers the command's requests. Open sets it if an up runs, otherwise StartServers does.
	control.Backend
	// Up describes the process that keeps the servers, the daemon or a mcpvisor up; nil if this process starts them itself.
	Up *control.Hello
	// attachment keeps the servers in the daemon meanwhile; nil without the daemon.
	attachment *daemonclient.Attachment
	// Names holds the names of the servers that exist, sorted.
	Names []string

	// client is the connection to the running up, OwnManager the manager of this process. Either is nil if it is not needed;
	// only the commands about sign-ins have both, see package signin.
	client     *control.Client
	OwnManager *GuardedManager
}

// Open reads the configuration and connects to a running mcpvisor up, if there is one. It starts no server; StartServers
// does. The caller must close the result.
func Open(ctx context.Context, o *cli.Options) (*Project, error) {
	setup, faulty := LoadSetup(o)
	if setup == nil {
		return nil, faulty
	}
	p := &Project{Options: o, Setup: setup}
	location, err := control.LocationOf(setup.ProjectDir)
	if err != nil {
		o.WarnFailure(err)
	} else {
		p.ControlLocation = location
		if err := p.connectUp(ctx); err != nil {
			return nil, err
		}
	}
	// A running up has its own servers, so that a configuration that cannot be read ends the command only without one.
	if p.Up == nil && faulty != nil {
		return nil, faulty
	}
	if p.Up == nil {
		p.Names = setup.ServerNames()
	}
	return p, nil
}

// connectUp uses a running mcpvisor up, if it has the servers that the command line asks for. It returns an error only for an
// interrupt and for a peer that breaks the protocol; without an up the command starts the servers itself.
func (p *Project) connectUp(ctx context.Context) error {
	if p.Options.NoControl {
		return nil
	}
	client, err := control.Dial(ctx, p.ControlLocation)
	if errors.Is(err, control.ErrNotRunning) && p.Options.ApartFlag() == "" {
		if p.attachDaemon(ctx); p.attachment != nil {
			client, err = control.Dial(ctx, p.ControlLocation)
		}
	}
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return nil
	case exit.InterruptedError(ctx) != nil:
		return exit.InterruptedError(ctx)
	// A socket that exists but cannot be used (no rights, a dead peer) is no reason to fail: the command can start the servers.
	case err != nil:
		p.Options.PrintRemark("%v; going on without it", err)
		return nil // the command can do without
	}
	hello, err := client.Hello(ctx)
	if err != nil {
		client.Close()
		return err
	}
	// Another --config or --mcp-server means other servers under possibly the same names; answering from those would be wrong.
	if p.Setup.Origin != "" && p.Setup.Origin != hello.Origin {
		if control.IsDaemon(hello.PID) {
			p.Options.PrintRemark("not using the daemon (pid %d): it knows no --config and no --mcp-server", hello.PID)
		} else {
			p.Options.PrintRemark("not using the running mcpvisor up (pid %d): it was started with another --config or --mcp-server", hello.PID)
		}
		client.Close()
		return nil
	}
	p.Names = hello.Names
	p.client, p.Backend, p.Up = client, client, &hello
	p.Options.PrintRemark("using %s (pid %d)", p.KeeperName(), hello.PID)
	// The manager that runs got its own answer flags when it started, and does not take those of another process.
	if flag := p.Options.AskFlags.ManagerFlag(); flag != "" {
		p.Options.PrintRemark("%s has no effect: give it to the mcpvisor up that keeps the servers", flag)
	}
	return nil
}

// attachDaemon asks a daemon that runs to keep the servers of this project, too, so that no server runs twice. Without one, and if it
// cannot, the command starts the servers itself.
func (p *Project) attachDaemon(ctx context.Context) {
	a, err := daemonclient.Attach(ctx, p.Setup.ProjectDir, os.LookupEnv, false)
	if err != nil {
		if !errors.Is(err, control.ErrNotRunning) && ctx.Err() == nil {
			p.Options.PrintRemark("%v; going on without it", err)
		}
		return
	}
	p.attachment = a
}

// hasInstance reports whether a running up has an instance of this name, such as github@anna. Instances come and go, so that they are
// not among Names.
func (p *Project) hasInstance(ctx context.Context, name string) bool {
	if p.Up == nil || !strings.Contains(name, "@") {
		return false
	}
	all, err := p.client.Status(ctx, control.StatusQuery{Servers: []string{name}})
	return err == nil && len(all) == 1 && all[0].InstanceOf != ""
}

// KeeperName names for a person the process that keeps the servers: the daemon, or a mcpvisor up.
func (p *Project) KeeperName() string {
	if p.Up != nil && control.IsDaemon(p.Up.PID) {
		return "the daemon"
	}
	return "the running mcpvisor up"
}

// StartServers makes sure that Backend can answer for the named servers, for all if none is named. It leaves a running up as it
// is. adjust may change the configuration before the manager starts; nil changes nothing. An unknown name is refused before
// anything is started.
func (p *Project) StartServers(ctx context.Context, only []string, adjust func(*supervisor.Config)) error {
	for _, name := range only {
		if !slices.Contains(p.Names, name) && !p.hasInstance(ctx, name) {
			return UnknownServerError("find", name, p.Names, p.Setup)
		}
	}
	if p.Up != nil {
		return nil
	}
	cfg := p.Setup.ManagerConfig(p.Options)
	if len(only) > 0 {
		maps.DeleteFunc(cfg.Servers, func(name string, _ supervisor.Spec) bool { return !slices.Contains(only, name) })
	}
	TuneShortRun(&cfg, p.Options.WaitFlag)
	if adjust != nil {
		adjust(&cfg)
	}
	m, err := StartManager(ctx, p.Options, cfg)
	if err != nil {
		return err
	}
	p.OwnManager = m
	p.Backend = control.Local(m.Manager, control.LocalConfig{
		Project: p.Setup.ProjectDir, Origin: p.Setup.Origin, InheritEnv: p.Options.InheritEnv,
	})
	return nil
}

// Close ends what the command started: it drops the connection to up, or closes the manager within CloseTime and reports
// servers that did not end in time. It works after an interrupt as well.
func (p *Project) Close() {
	if p.client != nil {
		p.client.Close()
	}
	if p.attachment != nil {
		_ = p.attachment.Close() // the daemon notices it
	}
	if p.OwnManager != nil {
		if err := p.OwnManager.CloseWithin(CloseTime); err != nil {
			p.Options.WarnFailure(err)
		}
		_ = p.Setup.Pins.Flush() // a fault of the store was reported before; without the flush tools seen first would be seen first again
	}
}

// AwaitStatus waits until the named servers (all if none is named) are connected or have failed, for at most wait. A person who
// gave --wait has given the servers that time, so that an attempt that ran out of its own timeout is repeated, not reported.
//
// A server that has failed is pending again a moment later, because its restart is scheduled. For a server that this command
// started, the status of the last attempt is returned instead of that pending one, which would say nothing; and instead of that of
// an attempt which has failed just now, and whose consequence is not decided.
func (p *Project) AwaitStatus(ctx context.Context, wait time.Duration, only ...string) ([]messages.Status, error) {
	var ended func() map[string]messages.Status
	if p.OwnManager != nil {
		ended = p.watchAttempts()
		defer ended()
	}
	all, err := p.Status(ctx, control.StatusQuery{Servers: only, Wait: wait, Retries: p.Options.WaitFlag > 0})
	// An installation may take minutes, and a default wait is no reason to cut it short.
	if err == nil && p.OwnManager != nil && p.Options.WaitFlag == 0 && wait > 0 {
		all, err = p.awaitInstalls(ctx, all, only)
	}
	if stop := exit.InterruptedError(ctx); stop != nil {
		return nil, stop
	}
	if err != nil || p.OwnManager == nil {
		return all, err
	}
	showEndedAttempts(all, ended())
	for i, st := range all {
		written := p.Setup.Specs[st.Name].Redacted()
		all[i].Config = &written // as the person wrote it, without the changes of TuneShortRun
	}
	return all, nil
}

// watchAttempts records for every server the status that its last attempt ended with, until the caller calls ended, which stops
// the recording and returns the map. ended may be called twice. The goroutine owns the map until then.
func (p *Project) watchAttempts() (ended func() map[string]messages.Status) {
	// The buffer is far larger than the events of a short run; if it overflows, attempts are missing from the map.
	w := p.OwnManager.Watch(8192)
	seen := map[string]messages.Status{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.Events(context.Background()) { // w.Close ends the loop
			if e.Kind == messages.EventPhase && e.Status != nil && !isUnderWay(*e.Status) {
				seen[e.Server] = *e.Status
			}
		}
	}()
	return func() map[string]messages.Status {
		w.Close()
		<-done
		return seen
	}
}

// isUnderWay reports whether an attempt of the server has not come to its end: it is being made, or it has failed and what follows is
// not decided, because its process or socket is still being released.
func isUnderWay(st messages.Status) bool {
	return st.Status == messages.Pending || st.Status == messages.Failed && st.Retry == ""
}

// showEndedAttempts replaces the status of each server whose attempt is under way by the one that its last attempt ended with, if there
// was one.
func showEndedAttempts(all []messages.Status, ended map[string]messages.Status) {
	for i, st := range all {
		if last, ok := ended[st.Name]; ok && isUnderWay(st) {
			all[i] = last
		}
	}
}

// UnreachableError is NotConnectedError with the time until the server is tried again, if a running mcpvisor up will try. A
// manager of this command ends with it, and tries nothing again.
func (p *Project) UnreachableError(st messages.Status) *messages.Error {
	e := status.NotConnectedError(st)
	if p.Up != nil && st.NextAttempt != nil {
		e.RetryAfter = max(time.Until(*st.NextAttempt), 0)
	}
	return e
}

// ReloadUp makes the running mcpvisor up read its files now, and reports whether it follows them. It waits 30 seconds at most.
// A removed server may still be in the names for a moment, because up ends it first.
func (p *Project) ReloadUp(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := p.client.Reload(within); err != nil {
		return false
	}
	p.RefreshNames(within)
	return true
}

// RefreshNames asks the running mcpvisor up which servers it has; on an error the old names stay.
func (p *Project) RefreshNames(ctx context.Context) {
	all, err := p.client.Status(ctx, control.StatusQuery{})
	if err != nil {
		return
	}
	p.Names = nil
	for _, st := range all {
		p.Names = append(p.Names, st.Name)
	}
}
