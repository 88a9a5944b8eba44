package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/actorsystem"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/credentials"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/hooks"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/listindex"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/opener"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/permissions"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/requests"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/toolcache"
	"github.com/mcpvisor/mcpvisor/supervisor/output"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Manager is the facade: a running supervisor with its servers. All methods are safe for concurrent use. Commands (Connect,
// Toggle, Remove …) go through the supervisor actor's mailbox and wait for an outcome; reads (Status, Tools, Watch …) and calls
// take published values and wait for no actor. A nil context is refused with an error that is ErrInvalid, and nothing is done.
type Manager struct {
	// cfg is what the program said, with the defaults filled in. Nothing writes it.
	cfg    Config
	shared *core.Shared
	// calls has the links of a request's chain that know the servers, and the whole chain: see links. It asks no actor.
	calls *actors.Calls
	// outputs compares answers with output schemas and keeps the compiled schemas.
	outputs output.Checker
	// index remembers which server offers which resource and prompt: see [listindex.Index].
	index listindex.Index
	// budget counts the memory of all servers.
	budget *budget.Budget
	// credentials authorises requests and keeps sign-ins; opener makes the transports that use them.
	credentials *credentials.Set
	opener      *opener.Opener
	// toolCache keeps the lists of lazy servers between runs; nil without Config.CacheDir. Its methods accept a nil receiver.
	toolCache *toolcache.Cache
	// requestHandler answers the requests of servers.
	requestHandler *requests.Handler
	// rules are those in force, and permissions decides by them and by the person which calls may be made.
	rules       *permissions.ActiveRules
	permissions *permissions.Decider
	// hooks runs the program's functions that calls need; interceptorRuns keeps what a run of the interceptors needs for the next one.
	hooks           *hooks.Runner
	interceptorRuns sync.Pool
	// audit records what is done; nil without Config.Audit. Its methods accept a nil receiver.
	audit *auditor.Auditor

	system     *actor.ActorSystem
	ownSystem  bool            // Start made the system, so Close shuts it down
	pid        *actor.PID      // the supervisor actor
	entry      *actor.PID      // the entry actor, to which other actors send
	stopped    <-chan struct{} // closed when the supervisor actor has ended
	entryEnded chan struct{}   // closed when the entry actor has ended

	follower  atomic.Pointer[Follower] // nil while no Follower follows files for this manager
	closing   atomic.Bool              // set by the first Close: calls and commands are refused from then on
	closeOnce sync.Once
	// closingBegun is closed when closing is set, for goroutines that wait.
	closingBegun chan struct{}
	closeDone    chan struct{} // closed when the last server is gone and the empty catalog is published
	closed       chan struct{} // closed when the last actor is gone: Close returns
}

// instances numbers the managers of this process, so that several can live in one actor system.
var instances atomic.Uint64

// Start makes a manager and begins to connect cfg.Servers, in parallel. It returns at once, with a status for each of them:
// Status, Watch and Settled say how they fare. A spec that cannot work keeps no other server from running, so it does not make Start
// fail: its server has failed when Start returns, and Settled and Ready return the reason. ctx bounds only the start. The error is an *Error of class invalid, or has the
// class of ctx's error. The caller must Close the manager.
func Start(ctx context.Context, cfg Config) (*Manager, error) {
	if ctx == nil {
		return nil, refusal.NilContextError("start", "", "")
	}
	if err := ctx.Err(); err != nil {
		return nil, &Error{Op: "start", Class: messages.ClassOf(err), Text: "the context had ended before the start", Err: err}
	}
	// The copy is taken here: the program may use its value again.
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	m, supervisorActor := newManager(cfg)
	if m.system == nil {
		m.system, m.ownSystem = actorsystem.New(cfg.Logger), true
	}
	// A sign-in that is known before the first attempt decides whose cached lists a lazy server may show.
	m.loadAccounts(ctx, cfg.Servers)
	// Several managers may share one actor system, in which names must differ.
	n := instances.Add(1)
	m.pid, err = m.system.Root.SpawnNamed(actorsystem.PropsOf(cfg.ActorOptions, "supervisor", func() actor.Actor { return supervisorActor }), fmt.Sprintf("mcpvisor-%d", n))
	if err != nil {
		// No actor runs, and the caller gets no manager that could close the rest.
		m.audit.Close()
		if m.ownSystem {
			m.system.Shutdown()
		}
		return nil, refusedBySystem(err)
	}
	options := m.entryOptions()
	entry, err := m.system.Root.SpawnNamed(actorsystem.PropsOf(cfg.ActorOptions, "entry", func() actor.Actor { return newEntryActor(options) }).
		Configure(actor.WithReceiverMiddleware(closeOnPoison(options.closeManager))), fmt.Sprintf("mcpvisor-%d-entry", n))
	if err != nil {
		// The servers start already. m.entry stays nil: the returned process belongs to the actor that has the name.
		m.closeInBackground(0)
		return nil, refusedBySystem(err)
	}
	m.entry = entry
	if cfg.Pins != nil {
		// The goroutine ends when the manager closes.
		go m.followPins()
	}
	// The supervisor handles its configured servers before it handles this barrier: from here on each has a status.
	if _, err := m.awaitHandled(ctx, "start"); err != nil {
		m.closeInBackground(0)
		return nil, err
	}
	return m, nil
}

// refusedBySystem returns the error of Start for an actor that could not be spawned.
func refusedBySystem(err error) error {
	return &Error{Op: "start", Class: messages.ClassInvalid, Text: "the actor system refused the manager: " + err.Error(), Err: err}
}

// closeInBackground begins to close the manager, unless that has begun, and gives calls so long to end. It is for a Start that fails,
// whose caller gets no manager that it could close, and for the end of the entry actor.
func (m *Manager) closeInBackground(drain time.Duration) {
	m.closeOnce.Do(func() { m.beginClose(); go m.shutDown(drain) })
}

// loadAccounts reads which accounts are signed in to the lazy servers of which lists are kept: they decide whose lists may be shown.
// Servers that need no answer are skipped.
func (m *Manager) loadAccounts(ctx context.Context, specs map[string]Spec) {
	kept := map[string]Spec{}
	for name, spec := range specs {
		if spec.Connect == messages.Lazy && !spec.Disabled && spec.Invalid == "" && spec.Hold == "" && credentials.IsRemote(&spec) &&
			m.toolCache.IsKnown(name) && m.opener.SpecProblem(name, spec) == "" && m.opener.RefusingRule(spec) == "" {
			kept[name] = spec
		}
	}
	if len(kept) > 0 {
		m.credentials.LoadAccounts(ctx, kept)
	}
}

// PID returns the actor to which other actors send the commands of package messages. It replies to the sender of each; of what is no
// command with a Failure. Poison and Stop of it close the manager, and Terminated comes when its last process is gone. Poison lets
// calls that run end, within 5 s, and answers them.
func (m *Manager) PID() *actor.PID { return m.entry }

// System returns the actor system in which the manager lives: Config.System, or the one that Start made.
func (m *Manager) System() *actor.ActorSystem { return m.system }

func (m *Manager) sendCommand(command any) { m.system.Root.Send(m.pid, command) }

// askSupervisor sends the command that the function builds around its reply, and waits for the reply. server is the one that it is about,
// or empty. The channel has room for the reply, so that the supervisor's turn never blocks on a caller that has gone. An error says that
// the manager closed or that ctx ended; the command may take effect all the same.
func askSupervisor[T any](ctx context.Context, m *Manager, op, server string, command func(reply func(T)) any) (T, error) {
	var zero T
	if ctx == nil {
		return zero, refusal.NilContextError(op, server, "")
	}
	if m.closing.Load() {
		return zero, refusal.ClosedError(op)
	}
	// Whichever comes first ends the wait: the reply, the end of the manager, or the caller's patience.
	replied := make(chan T, 1)
	m.sendCommand(command(func(v T) { replied <- v }))
	select {
	case v := <-replied:
		return v, nil
	case <-m.stopped:
		return zero, refusal.ClosedError(op)
	case <-ctx.Done():
		return zero, &Error{Op: op, Server: server, Class: messages.ClassOf(ctx.Err()), Text: "the context ended first", Err: ctx.Err()}
	}
}

// Connect adds the server, or replaces its spec, and returns when its first attempt has ended: nil if it is connected
// (or rests, being lazy), else the reason as an *Error. A failed server stays and is tried again under the restart
// policy; a spec that cannot work, or that a policy refuses, is not added. ctx bounds only the waiting.
func (m *Manager) Connect(ctx context.Context, name string, spec Spec) error {
	if ctx == nil {
		return refusal.NilContextError("connect", name, "")
	}
	// A caller cannot pass a spec off as one from a file.
	spec.Scope, spec.Source = messages.ScopeRuntime, ""
	m.loadAccounts(ctx, map[string]Spec{name: spec})
	// The ticket is drawn before the command is sent, so the attempt that answers it is at least as new.
	ticket := m.shared.NextTicket()
	err, askErr := askSupervisor(ctx, m, "connect", name, func(reply func(error)) any {
		reply = m.audit.RecordingReply(auditor.CallerFromContext(ctx), auditor.AddedRecord(name, spec), reply)
		return core.AddServer{Name: name, Spec: spec, Ticket: ticket, Reply: reply}
	})
	if askErr != nil {
		return askErr
	}
	if err != nil {
		return err
	}
	return m.awaitAttempt(ctx, "connect", name, ticket)
}

// awaitAttempt waits until the attempt that the ticket belongs to has ended, and returns nil or the reason why it failed.
func (m *Manager) awaitAttempt(ctx context.Context, op, name string, ticket uint64) error {
	v, err := m.awaitTicket(ctx, op, name, ticket)
	if err != nil {
		return err
	}
	// The attempt has ended; the phase says how.
	switch v.State.Phase {
	case messages.Connected:
		return m.awaitCatalog(ctx, op)
	case messages.Failed, messages.NeedsAuth:
		return failureError(op, v)
	// The command was to disable it, or another caller's was.
	case messages.Disabled:
		return nil
	case messages.Pending:
		// The connection was lost again before its tools were in the catalog.
		if v.State.Step == messages.Restarting {
			return failureError(op, v)
		}
	}
	// The server rests, or another command has begun a newer attempt.
	return nil
}

// failureError returns as an error why a server is not connected.
func failureError(op string, v *actors.View) error {
	// The cause is the published one, without secrets.
	e := &Error{Op: op, Class: messages.ClassNetwork, Server: v.Name, Text: "it is not connected"}
	if c := v.State.Cause; c != nil {
		e.Class, e.Text, e.RetryAfter, e.Challenge = c.Class, c.Text, c.RetryAfter, c.Challenge
	}
	return e
}

// unknownServerError returns the error of a method that names a server which is not there. A manager that closes has taken its servers away.
func (m *Manager) unknownServerError(op, name string) error {
	if m.closing.Load() {
		return refusal.ClosedError(op)
	}
	return refusal.UnknownServerError(op, name, m.Servers()...)
}

// awaitTicket waits until a server has answered the command with the ticket, or is being removed. If ctx ends first the error
// names the phase that the server is in; the attempt continues.
func (m *Manager) awaitTicket(ctx context.Context, op, name string, ticket uint64) (*actors.View, error) {
	cell := m.shared.CellOf(name)
	if cell == nil {
		return nil, m.unknownServerError(op, name)
	}
	v, err := cell.Wait(ctx, func(v *actors.View) bool {
		return v.State.Answered >= ticket || v.State.Removing
	})
	if err != nil {
		return v, &Error{Op: op, Class: messages.ClassOf(err), Server: name,
			Text: fmt.Sprintf("still %s when the context ended", describePhase(v)), Fix: "it goes on in the background", Err: err}
	}
	return v, nil
}

// describePhase returns the phase and, for a pending server, the step in words for an error's text.
func describePhase(v *actors.View) string {
	if v.State.Step != "" {
		return string(v.State.Phase) + " (" + string(v.State.Step) + ")"
	}
	return string(v.State.Phase)
}

// awaitCatalog returns when the catalog shows every change that the servers have sent so far. It sends a Sync behind those
// changes; if the registry dies first, it begins again with the successor.
func (m *Manager) awaitCatalog(ctx context.Context, op string) error {
	for {
		// Changes reach the registry in the order in which the servers sent them, so a Sync behind them answers for all.
		pid, replaced := m.shared.Registry.PID()
		done := make(chan struct{})
		var once sync.Once
		// A registry's successor may run a Done that its predecessor ran already.
		m.system.Root.Send(pid, actors.Sync{Done: func() { once.Do(func() { close(done) }) }})
		select {
		case <-done:
			return nil
		case <-replaced: // the servers announce everything again to its successor
		case <-m.stopped:
			return refusal.ClosedError(op)
		case <-ctx.Done():
			return &Error{Op: op, Class: messages.ClassOf(ctx.Err()), Text: "the context ended first", Err: ctx.Err()}
		}
	}
}

// runCommand sends a command to one server and waits until its effect is visible, or the attempt that it began has ended.
func (m *Manager) runCommand(ctx context.Context, op, name string, event func(ticket uint64) lifecycle.Event) error {
	ticket := m.shared.NextTicket()
	err, askErr := askSupervisor(ctx, m, op, name, func(reply func(error)) any {
		e := event(ticket)
		return core.ServerCommand{Name: name, Event: e, Reply: m.audit.RecordingReply(auditor.CallerFromContext(ctx), auditor.CommandRecord(name, e), reply)}
	})
	if askErr != nil {
		return askErr
	}
	if err != nil {
		return err
	}
	return m.awaitAttempt(ctx, op, name, ticket)
}

// Disconnect ends the server's connection and keeps the server: it is disabled until Toggle or Connect. It returns when
// no new call can reach it and its tools are out of the catalog; calls that run already end with the connection, as outcome unknown.
// Toggle lets them go on.
func (m *Manager) Disconnect(ctx context.Context, name string) error {
	return m.disableServer(ctx, "disconnect", name, true)
}

// Toggle enables or disables a server. Disabling takes its tools out of the catalog and keeps its connection warm; it
// returns when both are visible. Enabling returns when the attempt has ended, with its reason if it failed.
func (m *Manager) Toggle(ctx context.Context, name string, enabled bool) error {
	if !enabled {
		return m.disableServer(ctx, "disable", name, false)
	}
	return m.runCommand(ctx, "enable", name, func(t uint64) lifecycle.Event { return lifecycle.Enable{Ticket: t} })
}

// disableServer disables a server and waits for the catalog, so that the caller reads its own write. cold ends the connection.
func (m *Manager) disableServer(ctx context.Context, op, name string, cold bool) error {
	cell := m.shared.CellOf(name)
	err := m.runCommand(ctx, op, name, func(t uint64) lifecycle.Event { return lifecycle.Disable{Cold: cold, Ticket: t} })
	if err != nil {
		return err
	}
	if cell != nil {
		if err := m.awaitInstancesEnd(ctx, op, name, cell); err != nil {
			return err
		}
	}
	return m.awaitCatalog(ctx, op)
}

// Reconnect tears the server's connection down, forgets its failures and dials again at once. It returns when the
// attempt has ended, with its reason if it failed. An attempt that runs already is as good as a new one: it goes on, and
// its end is this command's. A disabled server is refused.
func (m *Manager) Reconnect(ctx context.Context, name string) error {
	return m.runCommand(ctx, "reconnect", name, func(t uint64) lifecycle.Event { return lifecycle.Reconnect{Ticket: t} })
}

// Refresh lists the server's tools again and returns when the catalog shows them.
func (m *Manager) Refresh(ctx context.Context, name string) error {
	return m.runCommand(ctx, "refresh", name, func(t uint64) lifecycle.Event { return lifecycle.Refresh{Ticket: t} })
}

// Remove takes a server away that was added at runtime. It returns when no new call can reach it and its tools are out
// of the catalog; its process ends in the background, within the stop ladder's bound. A configured server is refused.
func (m *Manager) Remove(ctx context.Context, name string) error {
	// The cell is taken before the command: after the removal the name may lead to none, or to another server.
	cell := m.shared.CellOf(name)
	removal := core.RemoveServer{Name: name, Ticket: new(uint64)}
	err, askErr := askSupervisor(ctx, m, "remove", name, func(reply func(error)) any {
		removal.Reply = m.audit.RecordingReply(auditor.CallerFromContext(ctx), audit.Record{Change: "remove", Server: name}, reply)
		return removal
	})
	if askErr != nil {
		return askErr
	}
	if err != nil {
		return err
	}
	// The supervisor has accepted the removal. The server's actor closes its gate a moment later, and only then is a new call
	// impossible. A cell of another server under the same name is as good: the old one is gone.
	if cell != nil {
		if _, err := cell.Wait(ctx, func(v *actors.View) bool {
			return removal.IsUnreachable(v) || m.shared.CellOf(name) != cell
		}); err != nil {
			return &Error{Op: "remove", Class: messages.ClassOf(err), Server: name, Text: "the context ended first", Err: err}
		}
		if err := m.awaitInstancesEnd(ctx, "remove", name, cell); err != nil {
			return err
		}
	}
	return m.awaitCatalog(ctx, "remove")
}

// SetServers replaces the whole set of servers that were added at runtime; configured ones stay. It returns when the
// change is accepted, before the new servers are connected: unchanged servers keep their connections, Errors holds the specs that
// cannot work, by name. Settled waits for the attempts.
func (m *Manager) SetServers(ctx context.Context, specs map[string]Spec) (SetServersResult, error) {
	return m.replaceAll(ctx, "set servers", func(reply func(SetServersResult, error)) any {
		return core.SetServers{Specs: maps.Clone(specs), Reply: m.audit.RecordingSetReply(auditor.CallerFromContext(ctx), reply)}
	})
}

// Configure replaces the whole set of configured servers, as Config.Servers gave it; runtime servers stay. Like
// SetServers it leaves alone what did not change.
func (m *Manager) Configure(ctx context.Context, specs map[string]Spec) (SetServersResult, error) {
	command := core.ConfigureServers{Specs: maps.Clone(specs)}
	changes, err := m.configureServers(ctx, command)
	if err != nil {
		return SetServersResult{}, err
	}
	return command.SetResult(changes), nil
}

// configureServers sends the command, which Configure and the Follower share. The audit record is written before the reply, in
// the supervisor's turn, so that records stand in the order of the changes.
func (m *Manager) configureServers(ctx context.Context, command core.ConfigureServers) (config.Changes, error) {
	return askSupervisor(ctx, m, "configure", "", func(reply func(config.Changes)) any {
		command.Reply = func(c config.Changes) {
			m.audit.RecordConfigured(auditor.CallerFromContext(ctx), "configure", command.SetResult(c))
			reply(c)
		}
		return command
	})
}

// replaceAll carries a reply of two values through askSupervisor, whose replies have one.
func (m *Manager) replaceAll(ctx context.Context, op string, command func(func(SetServersResult, error)) any) (SetServersResult, error) {
	type result struct {
		res SetServersResult
		err error
	}
	r, err := askSupervisor(ctx, m, op, "", func(reply func(result)) any {
		return command(func(res SetServersResult, err error) { reply(result{res, err}) })
	})
	if err != nil {
		return r.res, err
	}
	return r.res, r.err
}

// forEachServer runs f for every name, each in a goroutine of its own, waits for all, and joins the errors in the order of names.
func forEachServer(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = f(name) })
	}
	wg.Wait()
	// A nil error per server means success; the caller gets nil only if all are nil.
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return joinedErrors(errs)
}

// joinedErrors are several errors in one line; errors.Join would put each on a line of its own.
type joinedErrors []error

// Error returns the texts, joined by semicolons.
func (j joinedErrors) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joinedErrors) Unwrap() []error { return j }

// ConnectAll enables and connects every server that is not connected, and returns when every attempt has ended. The
// error, if any, holds one *Error per server that failed.
func (m *Manager) ConnectAll(ctx context.Context) error {
	if ctx == nil {
		return refusal.NilContextError("connect", "", "")
	}
	if m.closing.Load() {
		return refusal.ClosedError("connect")
	}
	return forEachServer(m.Servers(), func(name string) error {
		cell := m.shared.CellOf(name)
		if cell == nil {
			return nil
		}
		switch cell.View().State.Phase {
		case messages.Connected:
			return nil
		case messages.Disabled:
			return m.Toggle(ctx, name, true)
		case messages.Pending:
			// A lazy server that rests is dialled; one whose attempt is under way already is only waited for.
			if cell.View().State.Step == messages.Idle {
				return m.runCommand(ctx, "connect", name, func(t uint64) lifecycle.Event { return lifecycle.Wake{Ticket: t} })
			}
			return m.runCommand(ctx, "connect", name, func(t uint64) lifecycle.Event { return lifecycle.Enable{Ticket: t} })
		case messages.Failed, messages.NeedsAuth:
		}
		return m.Reconnect(ctx, name)
	})
}

// DisconnectAll disconnects every server; they stay configured, disabled.
func (m *Manager) DisconnectAll(ctx context.Context) error {
	if ctx == nil {
		return refusal.NilContextError("disconnect", "", "")
	}
	if m.closing.Load() {
		return refusal.ClosedError("disconnect")
	}
	return forEachServer(m.Servers(), func(name string) error { return m.Disconnect(ctx, name) })
}

// Woken reports that the machine has slept, or that the network is back. Servers that wait to be tried again are tried
// within a few seconds, spread and through the start gate, and remote connections are probed. The manager notices by itself that
// the machine has slept, within 10 s; a program that knows it sooner, or that sees the network return, calls Woken. It returns at
// once.
func (m *Manager) Woken() { m.sendCommand(core.SleepNoticed{}) }

// IsClosed reports whether Close has begun: every command and call is refused from then on.
func (m *Manager) IsClosed() bool { return m.closing.Load() }

// closeDrain is how long calls may go on in a manager that is closed, where the caller sets no time.
const closeDrain = 5 * time.Second

// Close ends the manager: it refuses commands, lets calls finish for at most half of the time that ctx leaves (5 s if ctx has no
// deadline), stops all servers in parallel and waits for their processes. It is idempotent, and only the first call's ctx sets
// the time for calls. If ctx ends first it returns an error that names the servers that are still there; the rest ends in the
// background, within the bounds of the stop ladder.
func (m *Manager) Close(ctx context.Context) error {
	if ctx == nil {
		return refusal.NilContextError("close", "", "")
	}
	// Half of the caller's time is for the calls, so that the other half is left for the processes.
	drain := closeDrain
	if deadline, ok := ctx.Deadline(); ok {
		drain = max(time.Until(deadline)/2, 0)
	}
	m.closeInBackground(drain)
	select {
	case <-m.closed:
		return nil
	case <-ctx.Done():
	}
	// Both may have ended at the same time: a manager that is closed is no error.
	select {
	case <-m.closed:
		return nil
	default:
	}
	return &Error{Op: "close", Class: messages.ClassOf(ctx.Err()), Text: "not everything had ended in time: " +
		strings.Join(m.Servers(), ", "), Fix: "the rest goes on ending in the background", Err: ctx.Err()}
}

// beginClose makes the manager refuse calls and commands. Open questions to persons end with it: a call that waits for a person
// would otherwise hold its server for as long as the person thinks.
func (m *Manager) beginClose() {
	m.closing.Store(true)
	close(m.closingBegun)
}

// refreshTime bounds how long Close waits for a token refresh whose outcome is not stored yet. The server may have replaced the
// refresh token already: unless the new one is stored, the person must sign in again.
const refreshTime = 10 * time.Second

// shutDown is the goroutine of Close. The order matters: servers first, because they use credentials and clients; then what
// they used; then the actors; the audit log last but for the system, because all of these may still write records.
func (m *Manager) shutDown(drain time.Duration) {
	m.sendCommand(core.CloseAll{Drain: drain, Reply: func() { close(m.closeDone) }})
	<-m.closeDone
	m.hooks.Close()
	stored, cancel := context.WithTimeout(context.Background(), refreshTime)
	m.credentials.Close(stored)
	cancel()
	// The sessions are closed, so every connection of these clients is idle now.
	m.opener.Close()
	if m.cfg.Pins != nil {
		if err := m.cfg.Pins.Flush(); err != nil {
			m.cfg.Logger.Warn("what was learned of tools is not kept", zap.Error(err))
		}
	}
	// Other actors get no reply after this; their messages become dead letters.
	if m.entry != nil {
		m.stopEntry()
	}
	// A Stop overtakes the commands that the entry actor has passed on: the supervisor replies to them first.
	handled := make(chan struct{})
	m.sendCommand(core.Barrier{Reply: func(uint64) { close(handled) }})
	select {
	case <-handled:
	case <-m.stopped:
	}
	m.system.Root.Stop(m.pid)
	<-m.stopped
	m.audit.Close()
	if m.ownSystem {
		m.system.Shutdown()
		// The library keeps a goroutine for a nanosecond after a dead letter. Waiting for it leaves nothing after Close, which a
		// test in virtual time (testing/synctest) would otherwise fail for.
		time.Sleep(time.Microsecond)
	}
	close(m.closed)
}
