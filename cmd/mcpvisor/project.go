package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// project is the set of servers that a command works with: those of a running mcpvisor up, or those that the configuration
// names and the command starts for itself. openProject makes it; the command must call close.
type project struct {
	options *options
	// setup holds the configuration of flags and files; with a running up it serves only for messages and the origin.
	setup *setup
	// controlLocation says where the control socket of this project is; the zero value if it cannot be found out.
	controlLocation control.Location
	// Backend answers the command's requests. openProject sets it if an up runs, otherwise startServers does.
	control.Backend
	// up describes the running mcpvisor up; nil if this process starts the servers itself.
	up *control.Hello
	// names holds the names of the servers that exist, sorted.
	names []string

	// client is the connection to the running up, ownManager the manager of this process. Either is nil if it is not needed;
	// only the commands about sign-ins have both, see signInProject.
	client     *control.Client
	ownManager *guardedManager
}

// openProject reads the configuration and connects to a running mcpvisor up, if there is one. It starts no server; startServers
// does. The caller must close the result.
func openProject(ctx context.Context, o *options) (*project, error) {
	setup, faulty := loadSetup(o)
	if setup == nil {
		return nil, faulty
	}
	p := &project{options: o, setup: setup}
	location, err := control.LocationOf(setup.ProjectDir)
	if err != nil {
		o.warnFailure(err)
	} else {
		p.controlLocation = location
		if err := p.connectUp(ctx); err != nil {
			return nil, err
		}
	}
	// A running up has its own servers, so that a configuration that cannot be read ends the command only without one.
	if p.up == nil && faulty != nil {
		return nil, faulty
	}
	if p.up == nil {
		p.names = setup.serverNames()
	}
	return p, nil
}

// connectUp uses a running mcpvisor up, if it has the servers that the command line asks for. It returns an error only for an
// interrupt and for a peer that breaks the protocol; without an up the command starts the servers itself.
func (p *project) connectUp(ctx context.Context) error {
	if p.options.noControl {
		return nil
	}
	client, err := control.Dial(ctx, p.controlLocation)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return nil
	case interruptedError(ctx) != nil:
		return interruptedError(ctx)
	// A socket that exists but cannot be used (no rights, a dead peer) is no reason to fail: the command can start the servers.
	case err != nil:
		p.options.printRemark("%v; going on without it", err)
		return nil // the command can do without
	}
	hello, err := client.Hello(ctx)
	if err != nil {
		client.Close()
		return err
	}
	// Another --config or --mcp-server means other servers under possibly the same names; answering from those would be wrong.
	if p.setup.origin != "" && p.setup.origin != hello.Origin {
		p.options.printRemark("not using the running mcpvisor up (pid %d): it was started with another --config or --mcp-server", hello.PID)
		client.Close()
		return nil
	}
	p.names = hello.Names
	p.client, p.Backend, p.up = client, client, &hello
	p.options.printRemark("using the running mcpvisor up (pid %d)", hello.PID)
	// The manager that runs got its own answer flags when it started, and does not take those of another process.
	if flag := p.options.askFlags.managerFlag(); flag != "" {
		p.options.printRemark("%s has no effect: give it to the mcpvisor up that runs", flag)
	}
	return nil
}

// startServers makes sure that Backend can answer for the named servers, for all if none is named. It leaves a running up as it
// is. adjust may change the configuration before the manager starts; nil changes nothing. An unknown name is refused before
// anything is started.
func (p *project) startServers(ctx context.Context, only []string, adjust func(*supervisor.Config)) error {
	for _, name := range only {
		if !slices.Contains(p.names, name) {
			return unknownServerError("find", name, p.names, p.setup)
		}
	}
	if p.up != nil {
		return nil
	}
	cfg := p.setup.managerConfig(p.options)
	if len(only) > 0 {
		maps.DeleteFunc(cfg.Servers, func(name string, _ supervisor.Spec) bool { return !slices.Contains(only, name) })
	}
	tuneShortRun(&cfg, p.options.waitFlag)
	if adjust != nil {
		adjust(&cfg)
	}
	m, err := startManager(ctx, p.options, cfg)
	if err != nil {
		return err
	}
	p.ownManager = m
	p.Backend = control.Local(m.Manager, control.LocalConfig{
		Project: p.setup.ProjectDir, Origin: p.setup.origin, InheritEnv: p.options.inheritEnv,
	})
	return nil
}

// close ends what the command started: it drops the connection to up, or closes the manager within closeTime and reports
// servers that did not end in time. It works after an interrupt as well.
func (p *project) close() {
	if p.client != nil {
		p.client.Close()
	}
	if p.ownManager != nil {
		if err := p.ownManager.closeWithin(closeTime); err != nil {
			p.options.warnFailure(err)
		}
		_ = p.setup.pins.Flush() // a fault of the store was reported before; without the flush tools seen first would be seen first again
	}
}

// awaitStatus waits until the named servers (all if none is named) are connected or have failed, for at most wait. A person who
// gave --wait has given the servers that time, so that an attempt that ran out of its own timeout is repeated, not reported.
//
// A server that has failed is pending again a moment later, because its restart is scheduled. For a server that this command
// started, the status of the last attempt is returned instead of that pending one, which would say nothing.
func (p *project) awaitStatus(ctx context.Context, wait time.Duration, only ...string) ([]messages.Status, error) {
	var ended func() map[string]messages.Status
	if p.ownManager != nil {
		ended = p.watchAttempts()
		defer ended()
	}
	all, err := p.Status(ctx, control.StatusQuery{Servers: only, Wait: wait, Retries: p.options.waitFlag > 0})
	// An installation may take minutes, and a default wait is no reason to cut it short.
	if err == nil && p.ownManager != nil && p.options.waitFlag == 0 && wait > 0 {
		all, err = p.awaitInstalls(ctx, all, only)
	}
	if stop := interruptedError(ctx); stop != nil {
		return nil, stop
	}
	if err != nil || p.ownManager == nil {
		return all, err
	}
	before := ended()
	for i, st := range all {
		if last, ok := before[st.Name]; ok && st.Status == messages.Pending {
			all[i] = last
		}
		written := p.setup.Specs[st.Name].Redacted()
		all[i].Config = &written // as the person wrote it, without the changes of tuneShortRun
	}
	return all, nil
}

// watchAttempts records for every server the status that its last attempt ended with, until the caller calls ended, which stops
// the recording and returns the map. ended may be called twice. The goroutine owns the map until then.
func (p *project) watchAttempts() (ended func() map[string]messages.Status) {
	// The buffer is far larger than the events of a short run; if it overflows, attempts are missing from the map.
	w := p.ownManager.Watch(8192)
	seen := map[string]messages.Status{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.Events(context.Background()) { // w.Close ends the loop
			if e.Kind == messages.EventPhase && e.Status != nil && e.Status.Status != messages.Pending {
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

// unreachableError is notConnectedError with the time until the server is tried again, if a running mcpvisor up will try. A
// manager of this command ends with it, and tries nothing again.
func (p *project) unreachableError(st messages.Status) *messages.Error {
	e := notConnectedError(st)
	if p.up != nil && st.NextAttempt != nil {
		e.RetryAfter = max(time.Until(*st.NextAttempt), 0)
	}
	return e
}

// reloadUp makes the running mcpvisor up read its files now, and reports whether it follows them. It waits 30 seconds at most.
// A removed server may still be in the names for a moment, because up ends it first.
func (p *project) reloadUp(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := p.client.Reload(within); err != nil {
		return false
	}
	p.refreshNames(within)
	return true
}

// refreshNames asks the running mcpvisor up which servers it has; on an error the old names stay.
func (p *project) refreshNames(ctx context.Context) {
	all, err := p.client.Status(ctx, control.StatusQuery{})
	if err != nil {
		return
	}
	p.names = nil
	for _, st := range all {
		p.names = append(p.names, st.Name)
	}
}
