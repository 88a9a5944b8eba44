package control

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
)

// callOptions returns the manager's options for the hooks; Ask and Permit travel in the context instead.
func (a *CallHooks) callOptions() (opts []supervisor.CallOption) {
	if a.Progress != nil {
		opts = append(opts, supervisor.WithProgress(a.Progress))
	}
	if len(a.Meta) > 0 {
		opts = append(opts, supervisor.WithMeta(a.Meta))
	}
	return opts
}

// Resources implements Backend.
func (l *localBackend) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	return joined.ListOf(ctx, l.all, servers, (*supervisor.Manager).Resources)
}

// Templates implements Backend.
func (l *localBackend) Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	return joined.ListOf(ctx, l.all, servers, (*supervisor.Manager).ResourceTemplates)
}

// Prompts implements Backend.
func (l *localBackend) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	return joined.ListOf(ctx, l.all, servers, (*supervisor.Manager).Prompts)
}

// Read implements Backend. Without a server the manager finds the one that offers the resource.
func (l *localBackend) Read(ctx context.Context, r Read) (ReadResult, error) {
	ctx = supervisor.ElicitedBy(ctx, r.Ask)
	var res *supervisor.ResourceResult
	var err error
	if r.Server == "" {
		// The first manager that offers it has it; the others say that they do not know it.
		for i, m := range l.all {
			own := ctx
			if i > 0 {
				own = supervisor.AlsoJudgedBy(ctx, l.m)
			}
			if res, err = m.ReadResource(own, r.URI, r.callOptions()...); err == nil || !errors.Is(err, messages.ErrUnknownResource) {
				break
			}
		}
	} else {
		m, ctx := l.all.Owner(ctx, r.Server)
		res, err = m.ReadServerResource(ctx, r.Server, r.URI, r.callOptions()...)
	}
	if err != nil {
		return ReadResult{}, err
	}
	return ReadResult{Server: res.Server, Raw: res.Raw}, nil
}

// Fill implements Backend. A qualified name contains the server's; otherwise Server and Name are used.
func (l *localBackend) Fill(ctx context.Context, f Fill) (FillResult, error) {
	ctx = supervisor.ElicitedBy(ctx, f.Ask)
	var res *supervisor.PromptResult
	var err error
	if f.Qualified != "" {
		m, ctx := l.all.OwnerOfQualified(ctx, f.Qualified)
		res, err = m.GetPrompt(ctx, f.Qualified, f.Args, f.callOptions()...)
	} else {
		m, ctx := l.all.Owner(ctx, f.Server)
		res, err = m.GetServerPrompt(ctx, f.Server, f.Name, f.Args, f.callOptions()...)
	}
	if err != nil {
		return FillResult{}, err
	}
	return FillResult{Server: res.Server, Name: res.Name, Raw: res.Raw}, nil
}

// Complete implements Backend.
func (l *localBackend) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	m, ctx := l.all.Owner(ctx, server)
	return m.Complete(ctx, server, r)
}

// Ping implements Backend.
func (l *localBackend) Ping(ctx context.Context, server string) (time.Duration, error) {
	return l.all.Of(server).Ping(ctx, server)
}

// Logs implements Backend. The status is asked first, because the manager has no error for an unknown server's logs.
func (l *localBackend) Logs(_ context.Context, server string) ([]supervisor.LogLine, error) {
	m := l.all.Of(server)
	if _, err := m.ServerStatus(server); err != nil {
		return nil, err
	}
	// An empty list and not nil, so that the answer on the socket is an array.
	return append([]supervisor.LogLine{}, m.Logs(server)...), nil
}

// Follow implements Backend. A gap is passed on for every server, because the missing events may be about this one.
func (l *localBackend) Follow(ctx context.Context, server string, f func(messages.Event) error) error {
	m := l.all.Of(server)
	if _, err := m.ServerStatus(server); err != nil {
		return err
	}
	w := m.Watch(4096)
	defer w.Close()
	// Events of other servers are skipped here, because a watcher has no filter.
	for e := range w.Events(ctx) {
		if e.Server == server || e.Kind == messages.EventGap {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Watch implements Backend.
func (l *localBackend) Watch(ctx context.Context, server, uri string, f func() error) error {
	m, ctx := l.all.Owner(ctx, server)
	w := m.Watch(4096).WithoutCalls() // before the subscription, so that the first update is not missed
	defer w.Close()
	end, err := l.watches.addWatcher(ctx, m, server, uri)
	if err != nil {
		return err
	}
	// From here on the server announces updates. The first call of f lets the caller read the present content.
	defer end()
	if err := f(); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	// The events are read while f runs, so that the watcher's queue does not fill.
	go func() {
		defer close(changed)
		for e := range w.Events(ctx) { // it ends with ctx, and with the watcher
			// A gap may hide an update, so it counts as one.
			if e.Kind != messages.EventGap && (e.Server != server || e.Kind != messages.EventResourceUpdated || e.URI != uri) {
				continue
			}
			select {
			case changed <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	for range changed {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
