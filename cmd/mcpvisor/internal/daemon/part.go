package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
)

// part is one manager of the daemon: that of the user's servers, that of those of them that have other values of variables for some
// agents, or that of a project. Each follows the files that it is of.
type part struct {
	key  string
	load project.Selection
	vars variables
	// ownPath has the directories in which the servers' programs are looked for first.
	ownPath string
	// once makes the servers start once; err is why they could not.
	once sync.Once
	err  error

	setup    *project.Setup
	manager  *project.GuardedManager
	follower *supervisor.Follower
	// questions are those of the servers that belong to no request.
	questions *gateway.Questions
	// roots are those of the agents; the user's servers, which agents of other projects share, are not told of them.
	roots agentRoots
	// hosts counts those that use the part; the daemon's mu guards it.
	hosts int
	// journal is that of the user's servers; a project's own stand in that of its host.
	journal *runningJournal
	// views are those of its files.
	views followedViews
}

// userKey is the key of the part that has the user's servers; those with other values have it with a hash.
const userKey = "\x00user"

// start starts the servers at its first call. They outlive the connection for which it is called.
func (p *part) start(d *daemon) error {
	p.once.Do(func() { p.err = p.startServers(d) })
	return p.err
}

func (p *part) startServers(d *daemon) (err error) {
	if p.setup == nil {
		if p.setup, err = project.LoadSetupOf(d.options, p.load); err != nil {
			return err
		}
	}
	ctx := context.Background()
	cfg := p.setup.ManagerConfig(d.options)
	p.questions = gateway.PassQuestions(&cfg)
	cfg.CallWait, cfg.SharedLimits, cfg.LookupEnv = gateway.CallWait, d.limits, p.vars.lookup
	cfg.SearchPath = func() string { return searchPath(p.ownPath) }
	cfg.RememberTools = true
	if d.guard != nil {
		cfg.Guard = d.guard
	}
	if p.manager, err = project.StartManager(ctx, d.options, cfg); err != nil {
		p.manager = nil
		return err
	}
	if p.load.Dir != "" {
		p.roots.share(p.manager.Manager, p.questions)
	}
	if p.key == userKey {
		if err := p.startUserJournal(); err != nil {
			d.reportFailure(err)
		}
	}
	p.views.setGateway(d, p.setup.Gateway)
	if p.follower, err = supervisor.Follow(ctx, p.manager.Manager, supervisor.FollowOptions{Reading: &p.setup.Snapshot,
		OnReload: func(r supervisor.ReloadResult) { p.views.setGateway(d, r.Gateway) }}); err != nil {
		d.reportFailure(fmt.Errorf("changed configuration files are not followed: %w", err))
	}
	return nil
}

// startUserJournal begins the journal of the user's servers. Those that have other values of variables for some agents have none: their
// names are the same.
func (p *part) startUserJournal() error {
	location, err := control.LocationOf(p.setup.ProjectDir)
	if err != nil {
		return err
	}
	p.journal, err = startJournal(location.UserJournal, p.manager.Manager, control.LocalConfig{})
	return err
}

// closeServers ends the servers.
func (p *part) closeServers() error {
	if p.manager == nil {
		return nil
	}
	if p.follower != nil {
		p.follower.Close()
	}
	p.journal.stopWriting()
	err := p.manager.CloseWithin(closeTime)
	if closed := p.journal.closeFile(); err == nil {
		err = closed
	}
	if flushed := p.setup.Pins.Flush(); err == nil {
		err = flushed
	}
	return err
}

// partFor returns the part with a key, and makes it if there is none. The caller is counted as a host of it.
func (d *daemon) partFor(key string, make func() *part) *part {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parts[key]
	if p == nil {
		p = make()
		p.key = key
		d.parts[key] = p
	}
	p.hosts++
	return p
}

// leavePart is called once for each partFor. A part without a host ends, in the background of its last one.
func (d *daemon) leavePart(p *part) {
	d.mu.Lock()
	p.hosts--
	last := p.hosts == 0
	if last && d.parts[p.key] == p {
		delete(d.parts, p.key)
	}
	d.mu.Unlock()
	if !last {
		return
	}
	if err := p.closeServers(); err != nil {
		d.leftBehind.Store(true)
		d.reportFailure(err)
	}
}

// userPart returns the part of the user's servers. They have the values of the first agent; for one with others see variantPart.
func (d *daemon) userPart(names []string, a asking) (*part, error) {
	p := d.partFor(userKey, func() *part {
		v := valuesOf(names, a.given)
		return &part{vars: v, ownPath: a.ownPath, load: project.Selection{UserOnly: true, Lookup: v.lookup, Omit: config.OmitProjectBound}}
	})
	if err := p.start(d); err != nil {
		d.leavePart(p)
		return nil, err
	}
	return p, nil
}

// omitShared returns the function by which a part with these directories of programs leaves to other parts what these have.
func omitShared(ownPath string, others ...*part) func([]config.Parsed, map[string]messages.Spec, config.Context) {
	return func(files []config.Parsed, specs map[string]messages.Spec, here config.Context) {
		here.Program = programsOf(ownPath)
		for _, o := range others {
			there := here
			there.Lookup, there.ProjectDir, there.Program = o.vars.lookup, "", programsOf(o.ownPath)
			config.OmitShared(files, specs, here, there)
		}
	}
}

// variantPart returns the part of those of the user's servers that have other values for this agent than in the part user; nil if there
// are none.
func (d *daemon) variantPart(user *part, found discover.Configuration, want wanted, a asking) (*part, error) {
	v := valuesOf(want.users, a.given)
	here := found.Snapshot.Context
	here.Lookup, here.ProjectDir = v.lookup, ""
	var files []config.Parsed
	for _, f := range found.Snapshot.Files {
		files = append(files, found.Snapshot.Parse(f))
	}
	omit := func(files []config.Parsed, specs map[string]messages.Spec, here config.Context) {
		config.OmitProjectBound(files, specs, here)
		omitShared(a.ownPath, user)(files, specs, here)
	}
	specs := config.SharedSpecs(files, here)
	if omit(files, specs, here); len(specs) == 0 {
		return nil, nil
	}
	p := d.partFor(userKey+instanceOf(specs, want, a), func() *part {
		return &part{vars: v, ownPath: a.ownPath, load: project.Selection{UserOnly: true, Lookup: v.lookup, Omit: omit}}
	})
	if err := p.start(d); err != nil {
		d.leavePart(p)
		return nil, err
	}
	return p, nil
}
