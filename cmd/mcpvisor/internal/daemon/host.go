package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
)

// host is the servers of one directory with one set of variables, and what serves them.
type host struct {
	key string
	// once makes the servers start once; err is why they could not.
	once sync.Once
	err  error

	setup    *project.Setup
	manager  *project.GuardedManager
	gateway  *gateway.Gateway
	follower *supervisor.Follower
	socket   *control.Server
	journal  *control.Journal
	// stopJournal ends the writing of the journal, and waits for its last line.
	stopJournal func()

	// users counts the bridges, and unused closes the host some time after the last one; the daemon's mu guards both.
	users  int
	unused *time.Timer
	// held says that the servers run without a bridge, until the daemon ends.
	held bool
}

// wantedVariables returns the names of the variables that the approved entries of a directory mention, sorted. They are found by
// resolving these entries alone.
func wantedVariables(dir string) ([]string, error) {
	found, err := discover.Load(discover.Options{Dir: dir, Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	ctx := found.Snapshot.Context
	ctx.Lookup = func(name string) (string, bool) {
		names[name] = true
		return "", false
	}
	var approved []config.Parsed
	for _, f := range found.Snapshot.Files {
		p := found.Snapshot.Parse(f)
		p.Servers = maps.Clone(p.Servers)
		maps.DeleteFunc(p.Servers, func(name string, _ config.Entry) bool {
			spec := found.Specs[name]
			return spec.Hold != "" || spec.Disabled || spec.Source != p.Path
		})
		approved = append(approved, p)
	}
	config.Merge(approved, ctx)
	return slices.Sorted(maps.Keys(names)), nil
}

// wantedOnly returns the variables that were asked for: a bridge that gives more gains nothing by it.
func wantedOnly(want []string, given map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range want {
		if v, ok := given[name]; ok {
			out[name] = v
		}
	}
	return out
}

// hostKey tells apart what must run apart: directories with servers of their own, and different values of variables. ofProject is
// the key of servers that belong to the directory in any case.
func hostKey(found discover.Configuration, env map[string]string) (key, ofProject string) {
	dir := ""
	for _, name := range slices.Sorted(maps.Keys(found.Specs)) {
		if s := found.Specs[name].Scope; s == messages.ScopeProject || s == messages.ScopeLocal {
			dir = found.ProjectDir
		}
	}
	if len(found.Waiting) > 0 {
		dir = found.ProjectDir
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(h, "%q=%q\n", name, env[name])
	}
	sum := "\x00" + hex.EncodeToString(h.Sum(nil))
	return dir + sum, found.ProjectDir + sum
}

// dirOfKey returns the directory of a key; empty for the user's servers alone.
func dirOfKey(key string) string {
	dir, _, _ := strings.Cut(key, "\x00")
	return dir
}

// useHost returns the servers of a directory, which it starts if they do not run, and what the person should know. The caller
// releases them.
func (d *daemon) useHost(dir string, env map[string]string, hold bool) (*host, []string, error) {
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	setup, err := project.LoadSetupOf(d.options, dir, lookup)
	if err != nil {
		return nil, nil, err
	}
	key, ofProject := hostKey(setup.Configuration, env)
	d.mu.Lock()
	// Servers that a person has asked for in this directory have its control socket, also if they are the user's alone.
	if hold || d.hosts[ofProject] != nil {
		key = ofProject
	}
	h := d.hosts[key]
	var replaced []*host
	if h == nil {
		h = &host{key: key, setup: setup}
		// Servers with other values of variables that nobody uses any more would only keep the control socket.
		for other, old := range d.hosts {
			if old.users == 0 && !old.held && dirOfKey(other) == dirOfKey(key) {
				replaced = append(replaced, old)
				delete(d.hosts, other)
			}
		}
		d.hosts[key] = h
	}
	if h.unused != nil {
		h.unused.Stop()
	}
	h.users++
	h.held = h.held || hold
	d.mu.Unlock()
	for _, old := range replaced {
		if err := old.closeServers(); err != nil {
			d.reportFailure(err)
		}
	}
	h.once.Do(func() { h.err = h.startServers(d) })
	if h.err != nil {
		d.releaseHost(h)
		return nil, nil, h.err
	}
	var notes []string
	for _, name := range discover.AwaitingApproval(setup.Set) {
		notes = append(notes, fmt.Sprintf("the server %q waits for your approval and is not started: mcpvisor --dir %s approve %s",
			messages.Line(name, 60), messages.Line(setup.ProjectDir, 0), messages.Line(name, 60)))
	}
	return h, notes, nil
}

// releaseHost is called once for each useHost. Servers that nobody uses end after some time.
func (d *daemon) releaseHost(h *host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.users--
	if h.err != nil {
		delete(d.hosts, h.key)
		return
	}
	if h.users > 0 || h.held {
		return
	}
	h.unused = time.AfterFunc(d.idle, func() {
		defer d.recoverPanic()
		d.mu.Lock()
		if h.users > 0 || h.held || d.ending || d.hosts[h.key] != h {
			d.mu.Unlock()
			return
		}
		delete(d.hosts, h.key)
		d.mu.Unlock()
		if err := h.closeServers(); err != nil {
			d.reportFailure(err)
		}
	})
}

// closeHosts ends all servers, at the end of the daemon.
func (d *daemon) closeHosts() {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.hosts))
	d.hosts = map[string]*host{}
	d.mu.Unlock()
	var wait sync.WaitGroup
	for _, h := range all {
		wait.Go(func() {
			defer d.recoverPanic()
			if err := h.closeServers(); err != nil {
				d.reportFailure(err)
			}
		})
	}
	wait.Wait()
}

// startServers starts the servers and whatever serves them. Without a control socket, because a mcpvisor up has it, the host goes on: only
// the other commands do not find it.
func (h *host) startServers(d *daemon) error {
	// The servers outlive the bridge that has started them.
	ctx := context.Background()
	cfg := h.setup.ManagerConfig(d.options)
	gateway.PassQuestions(&cfg)
	cfg.CallWait = gateway.CallWait
	m, err := project.StartManager(ctx, d.options, cfg)
	if err != nil {
		return err
	}
	h.manager, h.stopJournal = m, func() {}
	h.gateway = gateway.New(gateway.Config{Manager: m.Manager})
	if h.follower, err = supervisor.Follow(ctx, m.Manager, supervisor.FollowOptions{Reading: &h.setup.Snapshot}); err != nil {
		d.reportFailure(fmt.Errorf("changed configuration files are not followed: %w", err))
	}
	if err := h.openControl(); err != nil {
		d.reportFailure(err)
	}
	return nil
}

// openControl opens the control socket of the project and begins its journal. The user's servers alone are no project, and have
// neither.
func (h *host) openControl() error {
	if dirOfKey(h.key) == "" {
		return nil
	}
	location, err := control.LocationOf(h.setup.ProjectDir)
	if err != nil {
		return err
	}
	local := control.LocalConfig{Project: h.setup.ProjectDir}
	if h.socket, err = control.Serve(location, control.Local(h.manager.Manager, local)); err != nil {
		h.socket = nil
		return err
	}
	if h.journal, err = control.OpenJournal(location.Journal); err != nil {
		h.journal = nil
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer func() { _ = recover() }() // the journal is no reason to end the servers
		_ = h.journal.Follow(ctx, h.manager.Manager, local)
	}()
	h.stopJournal = func() {
		stop()
		<-written
	}
	return nil
}

// closeServers ends the servers. The journal ends before the manager, with the servers as they were.
func (h *host) closeServers() error {
	if h.manager == nil {
		return nil
	}
	if h.socket != nil {
		h.socket.Quiesce()
	}
	h.stopJournal()
	if h.follower != nil {
		h.follower.Close()
	}
	h.gateway.Close()
	err := h.manager.CloseWithin(closeTime)
	if h.socket != nil {
		err = errors.Join(err, h.socket.Close())
	}
	if h.journal != nil {
		err = errors.Join(err, h.journal.Close())
	}
	return errors.Join(err, h.setup.Pins.Flush())
}
