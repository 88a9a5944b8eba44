package supervisor

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/asker"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/credentials"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/opener"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/permissions"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/requests"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/toolcache"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// newManager makes a manager and everything that it consists of, from a configuration with its defaults: this is the one place
// where a part gets its options and the parts below it. No actor exists yet and no server is asked; Start spawns the supervisor's
// actor, which is returned beside the manager.
//
//	rules ─▶ audit ─▶ asker ─▶ permissions ──┐
//	credentials ─▶ opener, tool cache ───────┤──▶ calls and their chain (the callers' side)
//	request handler ─────────────────────────┘──▶ supervisor actor      (the servers' side)
func newManager(cfg Config) (*Manager, actor.Actor) {
	shared := &core.Shared{Catalog: actors.NewCatalog(cfg.Naming), Hub: actors.NewHub()}
	closing := make(chan struct{})

	rules := permissions.NewRules(permissions.RuleOptions{
		Access: cfg.Access, Hints: cfg.Ask != nil, Naming: cfg.Naming,
		Cell: shared.CellOf, Names: shared.Names, Snapshot: shared.Catalog.Snapshot,
	})
	audit := auditor.New(auditor.Options{
		Writer: cfg.Audit, RecordOptions: cfg.AuditOptions, Program: cfg.ClientName + " " + cfg.ClientVersion, Project: cfg.AuditProject,
		Log: cfg.Logger, Cell: shared.CellOf, Rules: rules,
	})
	runner := hooks.NewRunner(cfg.Logger)
	credentialSet := credentials.New(credentials.Options{
		Provider: cfg.AuthProvider, AskProgram: boundedForServer(runner), Store: cfg.AuthStore, Locks: cfg.AuthLocks, ClientName: cfg.ClientName,
		Guard: cfg.Guard, InheritEnv: cfg.InheritEnv, SearchPath: cfg.SearchPath, LookupEnv: cfg.LookupEnv, Log: cfg.Logger,
	})
	m := &Manager{
		hooks: runner, cfg: cfg, system: cfg.System, shared: shared, rules: rules, audit: audit, credentials: credentialSet, budget: cfg.SharedLimits.budgetFor(&cfg),
		permissions: permissions.New(permissions.Options{
			Rules: rules, Pin: cfg.Pin, LeastPin: cfg.LeastPin, Allow: cfg.Allow, Store: cfg.Pins, Audit: audit, Log: cfg.Logger, Hooks: runner,
			Asker:   asker.New(asker.Options{Ask: questionFunc(cfg.Ask), Audit: audit, Hooks: runner, Done: closing}),
			Publish: shared.Hub.Publish,
		}),
		opener: opener.New(opener.Options{
			Policy: cfg.Policy, Managed: cfg.Managed, Allowed: cfg.AllowedTransports, Transport: cfg.Transport, Wrap: cfg.Wrap,
			InProcess: cfg.InProcess, AskProgram: boundedForServer(runner), Guard: cfg.Guard, InheritEnv: cfg.InheritEnv, SearchPath: cfg.SearchPath, Credentials: credentialSet,
		}),
		toolCache: toolcache.New(cfg.CacheDir, cfg.InheritEnv, boundedPath(cfg.SearchPath), cfg.Logger, boundedIdentity(credentialSet.IdentityOf)),
		requestHandler: requests.New(requests.Answerers{
			Elicit: cfg.Elicit, ElicitURL: cfg.ElicitURL, Sample: cfg.Sample, SampleTools: cfg.SampleTools, Roots: cfg.Roots,
			Log: cfg.Logger, Hooks: runner, Publish: shared.Hub.Publish,
		}),
		closingBegun: closing, closeDone: make(chan struct{}), closed: make(chan struct{}), entryEnded: make(chan struct{}),
	}
	m.calls = m.newCalls()
	supervisorActor, stopped := core.New(core.Options{
		Configured: cfg.Servers, Common: m.newCommon(), Restart: cfg.Restart, Limits: cfg.Gate, SharedGate: cfg.SharedLimits.sharedGate(), WithdrawAfter: cfg.WithdrawAfter,
		Rand: cfg.Rand, ActorOptions: cfg.ActorOptions, Specs: m.opener, Credentials: credentialSet, Budget: m.budget,
		LoadToolList: m.toolCache.LoadToolList, Removed: m.forgetServer,
	}, shared)
	m.stopped = stopped
	return m, supervisorActor
}

// boundedPath returns Config.SearchPath for actors, which wait for it in their turns; nil stays nil.
func boundedPath(searchPath func() string) func() (string, bool) {
	if searchPath == nil {
		return nil
	}
	turn := new(hooks.Turn)
	return func() (string, bool) { return hooks.Get(turn, searchPath) }
}

// boundedIdentity returns a function for actors, which wait for it in their turns, of one that asks Config.LookupEnv.
func boundedIdentity(identityOf func(string, *Spec) (string, bool)) func(string, *Spec) (string, bool) {
	turn := new(hooks.Turn)
	return func(server string, spec *Spec) (string, bool) {
		type identity struct {
			text  string
			known bool
		}
		found, ok := hooks.Get(turn, func() (i identity) {
			i.text, i.known = identityOf(server, spec)
			return i
		})
		return found.text, ok && found.known
	}
}

// boundedForServer returns how the program's functions that open a server are run, its credentials included: one that does not return
// holds its request or attempt until the context of that ends, and nothing else. what is how errors name the function.
func boundedForServer(runner *hooks.Runner) func(ctx context.Context, function, what, server string, f func() error) error {
	return func(ctx context.Context, function, what, server string, f func() error) error {
		answer, err := hooks.Do(ctx, runner, nil, hooks.Call{Function: function, Op: "connect", Server: server}, f)
		var broken *hooks.Broken
		var refused *Error
		switch {
		case errors.As(err, &broken):
			return &transports.Error{Class: messages.ClassPanic, Text: what + " " + broken.Error(), Err: broken}
		case errors.As(err, &refused):
			return &transports.Error{Class: refused.Class, Text: refused.Text, Fix: refused.Fix, Err: refused}
		case err != nil:
			return &transports.Error{Class: messages.ClassOf(err), Text: what + " had not returned", Err: errors.Join(err, actors.ErrNotReturned)}
		}
		return answer
	}
}

// forgetServer drops what is remembered under the name of a server that was removed: which of its changed tools were reported, and
// what it listed.
func (m *Manager) forgetServer(server string) {
	m.permissions.ForgetServer(server)
	m.index.ForgetServer(server)
}

// forgetIfRemoved drops what was just remembered of a server, if it was removed while it was asked: nothing would forget it any more.
func (m *Manager) forgetIfRemoved(server string) {
	if !m.isConfigured(server) {
		m.index.ForgetServer(server)
	}
}

// newCalls makes the callers' side: the links of a request, composed to the one function that every request passes.
func (m *Manager) newCalls() *actors.Calls {
	calls := &actors.Calls{
		Catalog: m.shared.Catalog, Hub: m.shared.Hub, Cell: m.shared.CellOf, Wait: m.cfg.CallWait, RetryWait: m.cfg.WithdrawAfter,
		// Package actors gets these as functions, so that it needs to know nothing of rules and names.
		Refuse: m.permissions.RefuseTool, ResolveName: m.resolveToolName,
		StartInstance: m.startInstance, AllowTool: m.permissions.AllowTool,
		Wake: func(server string) {
			m.sendCommand(core.ServerCommand{Name: server, Event: lifecycle.Wake{Ticket: m.shared.NextTicket()}, Reply: func(error) {}})
		},
	}
	calls.Handle = compose(m.links(calls), calls.Send)
	return calls
}

// newCommon makes what the actors of all servers share. The hooks of an option that is not used stay nil, so that the actors do
// nothing for it.
func (m *Manager) newCommon() *actors.Common {
	common := &actors.Common{
		Hub: m.shared.Hub, Registry: &m.shared.Registry, Timing: m.cfg.Timing, Log: m.cfg.Logger,
		MaxInFlight: m.cfg.MaxInFlight, MaxQueued: m.cfg.MaxQueued,
		Session:  session.Config{ClientName: m.cfg.ClientName, ClientVersion: m.cfg.ClientVersion},
		Handlers: m.requestHandler.HandlersFor, AwaitCredentials: m.credentials.AwaitCredentials,
		Filter: m.permissions.FilterTools, Prepare: m.permissions.PrepareTools,
		// An attempt opens its transport in a goroutine of its own, so OpenTransport may block; the share is looked up late, because
		// the cell of a server may have been replaced by a re-added one.
		Open: func(ctx context.Context, name string, spec *Spec) (transports.Transport, error) {
			return m.opener.OpenTransport(ctx, name, spec, m.shared.ShareOf(name))
		},
	}
	if m.audit != nil {
		common.PhaseChanged = m.audit.RecordPhase
	}
	if m.toolCache != nil {
		common.Remember, common.RememberAll = m.toolCache.SaveToolList, m.cfg.RememberTools
	}
	return common
}
