package control

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// callOptions are what the manager is told of an Aside.
func (a *CallHooks) callOptions() (opts []supervisor.CallOption) {
	if a.Progress != nil {
		opts = append(opts, supervisor.WithProgress(a.Progress))
	}
	if len(a.Meta) > 0 {
		opts = append(opts, supervisor.WithMeta(a.Meta))
	}
	return opts
}

func (l *localBackend) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	return l.m.Resources(ctx, servers...)
}

func (l *localBackend) Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	return l.m.ResourceTemplates(ctx, servers...)
}

func (l *localBackend) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	return l.m.Prompts(ctx, servers...)
}

func (l *localBackend) Read(ctx context.Context, r Read) (ReadResult, error) {
	ctx = supervisor.ElicitedBy(ctx, r.Ask)
	var res *supervisor.ResourceResult
	var err error
	if r.Server == "" {
		res, err = l.m.ReadResource(ctx, r.URI, r.callOptions()...)
	} else {
		res, err = l.m.ReadServerResource(ctx, r.Server, r.URI, r.callOptions()...)
	}
	if err != nil {
		return ReadResult{}, err
	}
	return ReadResult{Server: res.Server, Raw: res.Raw}, nil
}

func (l *localBackend) Fill(ctx context.Context, f Fill) (FillResult, error) {
	ctx = supervisor.ElicitedBy(ctx, f.Ask)
	var res *supervisor.PromptResult
	var err error
	if f.Qualified != "" {
		res, err = l.m.GetPrompt(ctx, f.Qualified, f.Args, f.callOptions()...)
	} else {
		res, err = l.m.GetServerPrompt(ctx, f.Server, f.Name, f.Args, f.callOptions()...)
	}
	if err != nil {
		return FillResult{}, err
	}
	return FillResult{Server: res.Server, Name: res.Name, Raw: res.Raw}, nil
}

func (l *localBackend) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	return l.m.Complete(ctx, server, r)
}

func (l *localBackend) Ping(ctx context.Context, server string) (time.Duration, error) {
	return l.m.Ping(ctx, server)
}

func (l *localBackend) Logs(_ context.Context, server string) ([]supervisor.LogLine, error) {
	if _, err := l.m.ServerStatus(server); err != nil {
		return nil, err
	}
	return append([]supervisor.LogLine{}, l.m.Logs(server)...), nil
}

func (l *localBackend) Follow(ctx context.Context, server string, f func(messages.Event) error) error {
	if _, err := l.m.ServerStatus(server); err != nil {
		return err
	}
	w := l.m.Watch(4096)
	defer w.Close()
	for e := range w.Events(ctx) {
		if e.Server == server || e.Kind == messages.EventGap {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// unsubscribeTime bounds the good-bye to a server that told about a resource.
const unsubscribeTime = 2 * time.Second

func (l *localBackend) Watch(ctx context.Context, server, uri string, f func() error) error {
	w := l.m.Watch(4096)
	defer w.Close()
	end, err := l.watches.addWatcher(ctx, l.m, server, uri)
	if err != nil {
		return err
	}
	defer end()
	if err := f(); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	go func() {
		defer close(changed)
		for e := range w.Events(ctx) { // it ends with ctx, and with the watcher
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

// watchCounts counts who watches a resource through a manager: the first one subscribes, and the last one ends it.
type watchCounts struct {
	mu    sync.Mutex
	count map[[2]string]int
}

func (x *watchCounts) addWatcher(ctx context.Context, m *supervisor.Manager, server, uri string) (end func(), err error) {
	key := [2]string{server, uri}
	if err := m.SubscribeResource(ctx, server, uri); err != nil { // again for the second one: it is to hear of a refusal too
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count == nil {
		x.count = map[[2]string]int{}
	}
	x.count[key]++
	return func() {
		x.mu.Lock()
		x.count[key]--
		last := x.count[key] == 0
		if last {
			delete(x.count, key)
		}
		x.mu.Unlock()
		if last {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeTime)
			defer cancel()
			_ = m.UnsubscribeResource(ctx, server, uri) // it tells of something that nobody listens to, at worst
		}
	}, nil
}
