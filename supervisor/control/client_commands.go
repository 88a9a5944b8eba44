package control

import (
	"context"
	"errors"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// Hello returns the description that the process gave when it was dialled.
func (c *Client) Hello(context.Context) (Hello, error) { return c.hello, nil }

// Status implements Backend.
func (c *Client) Status(ctx context.Context, q StatusQuery) ([]messages.Status, error) {
	// Without Wait the other side answers at once, and Retries has no meaning.
	reply, err := send[*messages.StatusReply](ctx, c, &messages.GetStatus{Names: q.Servers, WaitMs: q.Wait.Milliseconds(), Retries: q.Retries}, nil)
	return convertAll(reply.GetServers(), (*messages.ServerStatus).ToStatus), err
}

// Tools implements Backend.
func (c *Client) Tools(ctx context.Context, servers ...string) ([]Tool, error) {
	reply, err := send[*messages.ToolsReply](ctx, c, &messages.ListTools{Servers: servers}, nil)
	return convertAll(reply.GetTools(), toolFromProto), err
}

// Resources implements Backend.
func (c *Client) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	reply, err := send[*messages.ResourcesReply](ctx, c, &messages.ListResources{Servers: servers}, nil)
	return convertAll(reply.GetResources(), (*messages.ResourceEntry).ToResource), joinFailures(reply.GetFailures(), err)
}

// Templates implements Backend.
func (c *Client) Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	reply, err := send[*messages.ResourceTemplatesReply](ctx, c, &messages.ListResourceTemplates{Servers: servers}, nil)
	return convertAll(reply.GetTemplates(), (*messages.ResourceTemplateEntry).ToTemplate), joinFailures(reply.GetFailures(), err)
}

// Prompts implements Backend.
func (c *Client) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	reply, err := send[*messages.PromptsReply](ctx, c, &messages.ListPrompts{Servers: servers}, nil)
	return convertAll(reply.GetPrompts(), (*messages.PromptEntry).ToPrompt), joinFailures(reply.GetFailures(), err)
}

// joinFailures returns the error of a list: err if there is no list, else those of the servers whose part is missing.
func joinFailures(failures []*messages.Failure, err error) error {
	if err != nil || len(failures) == 0 {
		return err
	}
	if len(failures) == 1 {
		return failures[0].ToError()
	}
	return errors.Join(convertAll(failures, (*messages.Failure).ToError)...)
}

// Complete implements Backend.
func (c *Client) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	reply, err := send[*messages.CompleteReply](ctx, c, &messages.Complete{Server: server, Prompt: r.Prompt, UriTemplate: r.URITemplate,
		Argument: r.Argument, Value: r.Value, Context: r.Context}, nil)
	// The list is never nil, as that of a server.
	return messages.Completion{Values: append([]string{}, reply.GetValues()...), Total: int(reply.GetTotal()), HasMore: reply.GetHasMore()}, err
}

// Ping implements Backend. The time is measured on the answering side, so the socket's own is not in it.
func (c *Client) Ping(ctx context.Context, server string) (time.Duration, error) {
	reply, err := send[*messages.PingReply](ctx, c, &messages.PingServer{Server: server}, nil)
	return time.Duration(reply.GetTookNs()), err
}

// Logs implements Backend.
func (c *Client) Logs(ctx context.Context, server string) ([]supervisor.LogLine, error) {
	reply, err := send[*messages.LogsReply](ctx, c, &messages.GetLogs{Server: server}, nil)
	return convertAll(reply.GetLines(), actors.LogLineFromProto), err
}

// History implements Backend.
func (c *Client) History(ctx context.Context, server string) (History, error) {
	reply, err := send[*messages.HistoryReply](ctx, c, &messages.GetHistory{Server: server}, nil)
	return History{Status: reply.GetStatus().ToStatus(), Withheld: reply.GetWithheldEnv(),
		Entries: convertAll(reply.GetEntries(), actors.EntryFromProto)}, err
}

// Permissions implements Backend.
func (c *Client) Permissions(ctx context.Context) (access.Rules, error) {
	reply, err := send[*messages.PermissionsReply](ctx, c, &messages.GetPermissions{}, nil)
	return rulesFromProto(reply), err
}

// Reload implements Backend.
func (c *Client) Reload(ctx context.Context) (supervisor.ReloadResult, error) {
	reply, err := send[*messages.ReloadReply](ctx, c, &messages.Reload{}, nil)
	return reloadFromProto(reply), err
}

// Reconnect implements Backend.
func (c *Client) Reconnect(ctx context.Context, server string) error {
	_, err := send[*messages.Done](ctx, c, &messages.ReconnectServer{Name: server}, nil)
	return err
}

// Enable implements Backend.
func (c *Client) Enable(ctx context.Context, server string) error {
	_, err := send[*messages.Done](ctx, c, &messages.EnableServer{Name: server}, nil)
	return err
}

// Disable implements Backend.
func (c *Client) Disable(ctx context.Context, server string, disconnect bool) error {
	_, err := send[*messages.Done](ctx, c, &messages.DisableServer{Name: server, Disconnect: disconnect}, nil)
	return err
}
