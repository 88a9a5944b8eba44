package daemon

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
)

// host is what serves the agents of one directory with one set of values of variables: the parts that have their servers, a gateway
// before them, and the control socket of the directory.
type host struct {
	key, dir string
	// once makes the host start once; err is why it could not.
	once sync.Once
	err  error

	// parts have the servers: the project's own first, then those of the user's that are meant for this host alone, then the user's.
	parts   []*part
	gateway *gateway.Gateway
	control projectControl

	// users counts the bridges, and unused closes the host some time after the last one; the daemon's mu guards both.
	users  int
	unused *time.Timer
	// held says that the servers run without a bridge, until the daemon ends.
	held bool
}

// useHost returns the host of a directory, which it starts if it does not run, and what the person should know. The caller
// releases it.
func (d *daemon) useHost(found discover.Configuration, want wanted, a asking, hold bool) (*host, []string, error) {
	parts, waiting, err := d.partsFor(found, want, a)
	if err != nil {
		return nil, nil, err
	}
	key := found.ProjectDir
	for _, p := range parts {
		key += "\x00" + p.key
	}
	d.mu.Lock()
	h := d.hosts[key]
	var replaced []*host
	isNew := h == nil
	if isNew {
		h = &host{key: key, dir: found.ProjectDir, parts: parts}
		// Servers with other values of variables that nobody uses any more would only keep the control socket.
		for other, old := range d.hosts {
			if old.dir == h.dir && !old.isUsed() {
				replaced = append(replaced, old)
				delete(d.hosts, other)
			}
		}
		d.closing.Add(len(replaced))
		d.hosts[key] = h
	}
	if h.unused != nil {
		h.unused.Stop()
	}
	h.users++
	h.held = h.held || hold
	d.mu.Unlock()
	if !isNew { // it has the same parts, and counts for them once
		d.leaveParts(parts)
	}
	for _, old := range replaced {
		old.control.close(d)
		go func() { // it ends within closeTime: servers that are slow to end must not delay the agent that has come
			defer d.closing.Done()
			defer d.recoverPanic()
			old.close(d)
		}()
	}
	h.once.Do(func() { h.err = h.start(d) })
	if h.err != nil {
		d.releaseHost(h)
		return nil, nil, h.err
	}
	h.control.open(d) // another process, or another host, may have had the socket at its start
	notes := project.UnreadableFiles(found)
	for _, name := range waiting {
		notes = append(notes, fmt.Sprintf("the server %q waits for your approval and is not started: mcpvisor --dir %s approve %s",
			messages.Line(name, 60), messages.Line(h.dir, 0), messages.Line(name, 60)))
	}
	return h, notes, nil
}

// partsFor returns the parts of a directory, the project's own first, and the servers that wait for an approval by what the files say now: a part
// that runs already knows what they said when it began. The caller is counted as a host of each part. Only those that are shared have been started.
func (d *daemon) partsFor(found discover.Configuration, want wanted, a asking) (parts []*part, waiting []string, err error) {
	user, err := d.userPart(want.users, a)
	if err != nil {
		return nil, nil, err
	}
	shared := []*part{user}
	variant, err := d.variantPart(user, found, want, a)
	if err != nil {
		d.leavePart(user)
		return nil, nil, err
	}
	if variant != nil {
		shared = []*part{variant, user}
	}
	v := valuesOf(want.all, a.given)
	load := project.Selection{Dir: found.ProjectDir, MayBeGone: true, Lookup: v.lookup, Omit: omitShared(a.ownPath, shared...)}
	setup, err := project.LoadSetupOf(d.options, load)
	if err != nil {
		d.leaveParts(shared)
		return nil, nil, err
	}
	own := d.partFor(found.ProjectDir+"\x00"+instanceOf(setup.Specs, want, a), func() *part {
		return &part{load: load, vars: v, ownPath: a.ownPath, setup: setup}
	})
	return append([]*part{own}, shared...), discover.AwaitingApproval(setup.Set), nil
}

// leaveParts is called once for each partsFor.
func (d *daemon) leaveParts(parts []*part) {
	for _, p := range parts {
		d.leavePart(p)
	}
}

// releaseHost is called once for each useHost. A host that nobody uses ends after some time.
func (d *daemon) releaseHost(h *host) {
	d.mu.Lock()
	h.users--
	if h.err != nil {
		if d.hosts[h.key] == h {
			delete(d.hosts, h.key)
		}
		last := h.users == 0
		d.mu.Unlock()
		if last {
			h.close(d)
		}
		return
	}
	defer d.mu.Unlock()
	if h.users > 0 || h.held {
		return
	}
	h.unused = time.AfterFunc(d.idle, func() {
		defer d.recoverPanic()
		if d.forgetUnused(h) {
			defer d.closing.Done()
			h.close(d)
		}
	})
}

// forgetUnused takes a host out of the daemon if no bridge and no command has used it since its timer was set. The caller closes it, and
// calls d.closing.Done. A host whose control socket is just being used gets its time again.
func (d *daemon) forgetUnused(h *host) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.users > 0 || h.held || d.ending || d.hosts[h.key] != h {
		return false
	}
	if h.isUsed() {
		h.unused.Reset(d.idle)
		return false
	}
	delete(d.hosts, h.key)
	d.closing.Add(1)
	return true
}

// isUsed reports whether the servers have a bridge, are held, or answer a command. The caller holds the daemon's mu.
func (h *host) isUsed() bool { return h.users > 0 || h.held || h.control.isBusy() }

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
			h.close(d)
		})
	}
	wait.Wait()
}

// start starts the project's own servers and whatever serves all of them. Without a control socket, because another process has it, the
// host goes on: only the other commands do not find it.
func (h *host) start(d *daemon) error {
	if err := h.parts[0].start(d); err != nil {
		return err
	}
	var shared []*supervisor.Manager
	for _, p := range h.parts[1:] {
		shared = append(shared, p.manager.Manager)
	}
	var questions []*gateway.Questions
	for _, p := range h.parts {
		questions = append(questions, p.questions)
	}
	own := h.parts[0].manager.Manager
	// Whoever reaches the socket is the user himself, and may sign in.
	cfg := gateway.Config{Manager: own, Shared: shared, Prefix: h.namePrefix(), Questions: questions,
		MaySignIn: func(string) bool { return true }}
	h.gateway = gateway.New(cfg)
	h.parts[0].views.addGateway(h.gateway)
	h.control.begin(h.dir, own, control.LocalConfig{Project: h.dir, Shared: shared})
	return nil
}

// namePrefix returns what the files say about the names of tools. What else they say about agents is for serve: who comes over the socket of
// the daemon is this user.
func (h *host) namePrefix() gateway.Prefix {
	for _, p := range h.parts {
		if g := p.setup.Gateway; g != nil && g.Invalid == "" {
			return gateway.Prefix(g.Prefix)
		}
	}
	return ""
}

// close ends the host, and the servers that no other one uses. The journal ends before the manager, with the servers as they were. So does a
// control socket that answers no command: servers may be slow to end, and the daemon that takes the place of this one opens it. A command
// that is being answered gets its outcome by the end of the manager.
func (h *host) close(d *daemon) {
	h.control.announceEnd()
	if !h.control.isBusy() {
		h.control.close(d)
	}
	if h.gateway != nil {
		h.parts[0].views.removeGateway(h.gateway)
		h.gateway.Close()
	}
	d.leaveParts(h.parts)
	h.control.close(d)
	d.passControl(h.dir)
}

// passControl gives the control socket of a directory, which a host has left, to another host of the directory.
func (d *daemon) passControl(dir string) {
	d.mu.Lock()
	var others []*host
	for _, h := range d.hosts {
		if h.dir == dir {
			others = append(others, h)
		}
	}
	d.mu.Unlock()
	for _, h := range others {
		h.control.open(d)
	}
}
