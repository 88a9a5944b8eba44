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

// project is what a command works with: the servers of a running mcpvisor up, or those that the configuration names and
// the command starts for itself.
type project struct {
	*options
	setup           *setup
	controlLocation control.Location
	// Backend answers: from the first for a running up, after start otherwise.
	control.Backend
	// up is who runs already; nil if nobody does.
	up *control.Hello
	// names are the servers that exist, sorted.
	names []string

	client     *control.Client
	ownManager *guardedManager
}

// openProject finds out what there is to work with. Nothing is started yet. Close the result.
func (o *options) openProject(ctx context.Context) (*project, error) {
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
	if p.up == nil && faulty != nil {
		return nil, faulty
	}
	if p.up == nil {
		p.names = setup.serverNames()
	}
	return p, nil
}

// connectUp uses a running mcpvisor up, if it has the servers that the command line asks for.
func (p *project) connectUp(ctx context.Context) error {
	if p.noControl {
		return nil
	}
	client, err := control.Dial(ctx, p.controlLocation)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return nil
	case interruptedError(ctx) != nil:
		return interruptedError(ctx)
	case err != nil:
		p.printRemark("%v; going on without it", err)
		return nil // the command can do without
	}
	hello, err := client.Hello(ctx)
	if err != nil {
		client.Close()
		return err
	}
	if p.setup.origin != "" && p.setup.origin != hello.Origin {
		p.printRemark("not using the running mcpvisor up (pid %d): it was started with another --config or --mcp-server", hello.PID)
		client.Close()
		return nil
	}
	p.names = hello.Names
	p.client, p.Backend, p.up = client, client, &hello
	p.printRemark("using the running mcpvisor up (pid %d)", hello.PID)
	if flag := p.askFlags.managerFlag(); flag != "" {
		p.printRemark("%s has no effect: give it to the mcpvisor up that runs", flag)
	}
	return nil
}

// startServers makes sure that somebody answers for the named servers, for all if none is named. A running up is left as it
// is. adjust may change what is started; nil changes nothing.
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
	tuneShortRun(&cfg, p.waitFlag)
	if adjust != nil {
		adjust(&cfg)
	}
	m, err := startManager(ctx, p.options, cfg)
	if err != nil {
		return err
	}
	p.ownManager = m
	p.Backend = control.Local(m.Manager, control.LocalConfig{
		Project: p.setup.ProjectDir, Origin: p.setup.origin, InheritEnv: p.inheritEnv,
	})
	return nil
}

// close ends what the command started, and says what did not end in time.
func (p *project) close() {
	if p.client != nil {
		p.client.Close()
	}
	if p.ownManager != nil {
		if err := p.ownManager.closeWithin(closeTime); err != nil {
			p.warnFailure(err)
		}
		_ = p.setup.pins.Flush() // a fault of the store was told; what was seen first must not be seen first again
	}
}

// awaitStatus waits for the named servers (all if none is named) to arrive or to fail, for at most wait. Whoever has given --wait
// has given the servers that time: an attempt that runs out of its own is no failure yet.
//
// A server that has failed is on its way again a moment later. Of one that this command started, what the last attempt
// came to is told, not that another one has begun.
func (p *project) awaitStatus(ctx context.Context, wait time.Duration, only ...string) ([]messages.Status, error) {
	var ended func() map[string]messages.Status
	if p.ownManager != nil {
		ended = p.watchAttempts()
		defer ended()
	}
	all, err := p.Status(ctx, control.StatusQuery{Servers: only, Wait: wait, Retries: p.waitFlag > 0})
	if err == nil && p.ownManager != nil && p.waitFlag == 0 && wait > 0 {
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
		all[i].Config = &written // not what brisk made of it
	}
	return all, nil
}

// watchAttempts keeps of every server the status that its last attempt ended with, until the result is called.
func (p *project) watchAttempts() (ended func() map[string]messages.Status) {
	w := p.ownManager.Watch(8192)
	seen := map[string]messages.Status{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.Events(context.Background()) { // Close ends it
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
