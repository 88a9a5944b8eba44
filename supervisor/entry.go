package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
)

// entryOptions are the options of the entry actor, through which other actors use the manager.
func (m *Manager) entryOptions() entryOptions {
	return entryOptions{supervisor: m.pid, shared: m.shared, requests: m.requestHandler, audit: m.audit, log: m.cfg.Logger,
		facade: messageFacade{m}, closeManager: func() { m.closeInBackground(closeDrain) }, emptied: m.closeDone, ended: m.entryEnded}
}

// messageFacade is the manager as other actors see it: what they ask for comes as a message, and answers travel as bytes.
type messageFacade struct{ *Manager }

// CallTool runs a tool of the named server, or by its qualified name if no server is named.
func (m messageFacade) CallTool(
	ctx context.Context, c *messages.CallTool, progress func(messages.Progress),
) (messages.Outcome, json.RawMessage, error) {
	var opts []CallOption
	if len(c.GetMeta()) > 0 {
		opts = append(opts, WithMeta(c.GetMeta()))
	}
	if progress != nil {
		opts = append(opts, WithProgress(progress))
	}
	var res *Result
	var err error
	if c.GetServer() != "" {
		res, err = m.CallServerTool(ctx, c.GetServer(), c.GetTool(), c.GetArguments(), opts...)
	} else {
		res, err = m.Manager.CallTool(ctx, c.GetTool(), c.GetArguments(), opts...)
	}
	if err != nil {
		return "", nil, err
	}
	return res.Outcome(), res.Raw, nil
}

// ReadResource reads a resource of the named server. Without a server the URI decides which one is asked.
func (m messageFacade) ReadResource(ctx context.Context, c *messages.ReadResource) (server string, result json.RawMessage, err error) {
	var res *ResourceResult
	if c.GetServer() == "" {
		res, err = m.Manager.ReadResource(ctx, c.GetUri())
	} else {
		res, err = m.ReadServerResource(ctx, c.GetServer(), c.GetUri())
	}
	if err != nil {
		return "", nil, err
	}
	return res.Server, res.Raw, nil
}

// GetPrompt fills a prompt of the named server by its own name, or by its qualified name if no server is named.
func (m messageFacade) GetPrompt(ctx context.Context, c *messages.GetPrompt) (server string, result json.RawMessage, err error) {
	var res *PromptResult
	if c.GetServer() == "" {
		res, err = m.Manager.GetPrompt(ctx, c.GetPrompt(), c.GetArguments())
	} else {
		res, err = m.GetServerPrompt(ctx, c.GetServer(), c.GetPrompt(), c.GetArguments())
	}
	if err != nil {
		return "", nil, err
	}
	return res.Server, res.Raw, nil
}

// ToolsOfCaller returns what the caller of ctx may call of a snapshot: see Manager.ToolsFor.
func (m messageFacade) ToolsOfCaller(ctx context.Context, s *Snapshot) []*Entry {
	return m.toolsOfCaller(ctx, s)
}

// Reload reads the files that the manager follows.
func (m messageFacade) Reload(ctx context.Context) *messages.ReloadReply {
	res, err := m.Manager.Reload(ctx)
	reply := res.ToProto()
	reply.Failure = messages.FailureOf(err)
	return reply
}

// ProvideToken makes the next requests of a server carry a token: see Manager.ProvideCredentials.
func (m messageFacade) ProvideToken(caller auditor.Caller, server, token string) error {
	return m.provideToken(context.Background(), caller, server, token) // nothing but the time of an AuthProvider ends it
}

// AwaitCatalog returns when the catalog shows every change that the servers have sent so far.
func (m messageFacade) AwaitCatalog(ctx context.Context, op string) error {
	return m.awaitCatalog(ctx, op)
}
