package control

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// LocalConfig holds the facts that a manager does not know about itself.
type LocalConfig struct {
	// Project and Origin are the fields of [Hello].
	Project, Origin string
	// InheritEnv is the manager's Config.InheritEnv.
	InheritEnv bool
	// Shared are further managers, whose servers the backend shows beside those of the first: see gateway.Config.
	Shared []*supervisor.Manager
}

// Local returns a Backend for a manager of this process. It owns nothing of the manager: the caller closes it.
func Local(m *supervisor.Manager, cfg LocalConfig) Backend {
	return &localBackend{m: m, all: append(joined.Managers{m}, cfg.Shared...), cfg: cfg, started: time.Now()}
}

// localBackend is the Backend of Local. It is safe for concurrent use, because the managers are.
type localBackend struct {
	// m has the rules and the files of the project, and all are those that have its servers, m the first of them.
	m       *supervisor.Manager
	all     joined.Managers
	cfg     LocalConfig
	started time.Time
	watches watchCounts // of resources, by the methods Watch that run
}

var _ Backend = (*localBackend)(nil)

// Hello implements Backend. Every Dial asks for it first.
func (l *localBackend) Hello(context.Context) (Hello, error) {
	h := Hello{
		PID: os.Getpid(), Version: supervisor.Version(), Started: l.started,
		Project: l.cfg.Project, Origin: l.cfg.Origin, Names: l.all.Servers(),
	}
	if st := l.m.AuditStats(); st.Added > 0 { // without a record kept there is none to describe
		h.Audit = &st
	}
	return h, nil
}

// Status implements Backend.
func (l *localBackend) Status(ctx context.Context, q StatusQuery) ([]messages.Status, error) {
	if q.Wait > 0 {
		if err := l.waitSettled(ctx, q); err != nil {
			return nil, err
		}
	}
	if len(q.Servers) == 0 {
		return l.all.Status(), nil
	}
	out := make([]messages.Status, 0, len(q.Servers))
	for _, name := range q.Servers {
		st, err := l.all.Of(name).ServerStatus(name)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

// waitSettled waits for the servers that are asked about and for no other one. When the time has passed it returns
// without an error: the status shows how far they got.
func (l *localBackend) waitSettled(ctx context.Context, q StatusQuery) error {
	wait, cancel := context.WithTimeout(ctx, q.Wait)
	defer cancel()
	activity, stop := l.watchActivity() // before the first look, so that no change is missed in between
	defer stop()
	// Each round waits until all servers have an outcome; with Retries another follows while one of them will be
	// tried again.
	for retry := true; retry; {
		// The status itself says which spec cannot work.
		if err := l.all.Settled(wait, q.Servers...); err != nil && wait.Err() == nil && !errors.Is(err, supervisor.ErrNotConnected) {
			return err
		}
		retry = q.Retries && l.hasPendingRetry(q.Servers) && waitForActivity(wait, activity)
	}
	// The caller has interrupted the command: that is an error, other than the end of the wait.
	if err := ctx.Err(); err != nil && messages.ClassOf(err) == messages.ClassCanceled {
		return &messages.Error{Op: "status", Class: messages.ClassCanceled, Text: "interrupted", Err: err}
	}
	return nil
}

// hasPendingRetry reports whether an attempt of one of the servers ran out of time and the next one is scheduled.
func (l *localBackend) hasPendingRetry(servers []string) bool {
	return slices.ContainsFunc(l.all.Status(), func(st messages.Status) bool {
		return st.Status == messages.Failed && st.Class == messages.ClassTimeout && st.Retry == messages.RetryAt &&
			(len(servers) == 0 || slices.Contains(servers, st.Name))
	})
}

// watchActivity begins to watch for a server that does something else than fail; the channel then has a value. The caller calls stop.
func (l *localBackend) watchActivity() (activity <-chan struct{}, stop func()) {
	noticed := make(chan struct{}, 1)
	var watchers []*supervisor.Watcher
	for _, m := range l.all {
		w := m.Watch(4096).WithoutCalls()
		watchers = append(watchers, w)
		go func() { // it ends with the watcher
			defer func() { _ = recover() }() // the wait then ends with its time
			for e := range w.Events(context.Background()) {
				// After a gap the events in between are unknown, so it counts as activity.
				if e.Kind == messages.EventGap || e.Kind == messages.EventPhase && e.Status != nil && e.Status.Status != messages.Failed {
					select {
					case noticed <- struct{}{}:
					default:
					}
				}
			}
		}()
	}
	return noticed, func() {
		for _, w := range watchers {
			w.Close()
		}
	}
}

// waitForActivity waits until there is some; false if ctx ends first. An older event only costs one more look.
func waitForActivity(ctx context.Context, activity <-chan struct{}) bool {
	select {
	case <-activity:
		return true
	case <-ctx.Done():
		return false
	}
}

// Tools implements Backend.
func (l *localBackend) Tools(ctx context.Context, servers ...string) ([]Tool, error) {
	entries, err := l.all.ToolsOf(ctx, servers...)
	if err != nil {
		return nil, err
	}
	out := make([]Tool, len(entries))
	for i, e := range entries {
		out[i] = Tool{Qualified: e.Name, State: stateWord(e.State), Tool: *e.Tool}
	}
	return out, nil
}

// stateWord returns the word of [Tool.State].
func stateWord(s catalog.State) string {
	switch s {
	case catalog.Live:
		return "live"
	case catalog.Cached:
		return "cached"
	case catalog.Lost:
		return "lost"
	}
	return ""
}

// Call implements Backend. The hooks reach the manager through the context.
func (l *localBackend) Call(ctx context.Context, c Call) (Result, error) {
	var args any // a nil interface, not an empty RawMessage, means no arguments
	if len(c.Args) > 0 {
		args = c.Args
	}
	var res *supervisor.Result
	var err error
	ctx = supervisor.ElicitedBy(ctx, c.Ask) // a nil Ask leaves the manager's own function in place
	if c.Permit != nil {
		ctx = supervisor.AskedBy(ctx, c.Permit)
	}
	// The qualified name wins if both are given.
	if c.Qualified != "" {
		m, ctx := l.all.OwnerOfQualified(ctx, c.Qualified)
		res, err = m.CallTool(ctx, c.Qualified, args, c.callOptions()...)
	} else {
		m, ctx := l.all.Owner(ctx, c.Server)
		res, err = m.CallServerTool(ctx, c.Server, c.Tool, args, c.callOptions()...)
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Raw: res.Raw, IsError: res.IsError}, nil
}

// History implements Backend.
func (l *localBackend) History(_ context.Context, server string) (History, error) {
	m := l.all.Of(server)
	st, err := m.ServerStatus(server)
	if err != nil {
		return History{}, err
	}
	entries, err := m.History(server)
	if err != nil {
		return History{}, err
	}
	return History{Status: st, Entries: entries, Withheld: WithheldEnv(st, l.cfg.InheritEnv)}, nil
}

// WithheldEnv returns the names of the variables of this process's environment that a server with this status does
// not get; inherit is the manager's default. It is nil for a server that is no child process. Missing variables are a
// common reason for a server that does not start.
func WithheldEnv(st messages.Status, inherit bool) []string {
	if st.Config == nil || st.Transport != messages.Stdio {
		return nil
	}
	if st.Config.InheritEnv != nil {
		inherit = *st.Config.InheritEnv
	}
	// The same function computes the environment of a child, so the names are exact.
	_, withheld := stdio.ChildEnv(os.Environ(), st.Config.Env, inherit)
	return withheld
}

// Permissions implements Backend.
func (l *localBackend) Permissions(context.Context) (access.Rules, error) {
	return l.m.Permissions(), nil
}

// Reload implements Backend.
func (l *localBackend) Reload(ctx context.Context) (supervisor.ReloadResult, error) {
	return l.all.Reload(ctx)
}

// Reconnect implements Backend.
func (l *localBackend) Reconnect(ctx context.Context, server string) error {
	return l.all.Of(server).Reconnect(ctx, server)
}

// Enable implements Backend.
func (l *localBackend) Enable(ctx context.Context, server string) error {
	return l.all.Of(server).Toggle(ctx, server, true)
}

// Disable implements Backend. Disconnect also closes the connection, Toggle keeps it.
func (l *localBackend) Disable(ctx context.Context, server string, disconnect bool) error {
	if disconnect {
		return l.all.Of(server).Disconnect(ctx, server)
	}
	return l.all.Of(server).Toggle(ctx, server, false)
}
