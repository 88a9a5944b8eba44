package control

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A command is the row of one command of package messages: who may send it, and how it is answered.
type command struct {
	// reads is true for a command that changes nothing and asks no server for anything but a list: a peer that may only look may
	// send it.
	reads bool
	// answer runs the command and returns its reply. It may send parts of the answer through x before.
	answer func(ctx context.Context, x *exchange, c proto.Message) (proto.Message, error)
}

// reading returns the row of a command that a peer with ReadOnly may send, changing that of any other one.
func reading[C proto.Message](f func(context.Context, *exchange, C) (proto.Message, error)) command {
	row := changing(f)
	row.reads = true
	return row
}

func changing[C proto.Message](f func(context.Context, *exchange, C) (proto.Message, error)) command {
	return command{answer: func(ctx context.Context, x *exchange, c proto.Message) (proto.Message, error) {
		return f(ctx, x, c.(C))
	}}
}

// commands has the commands that the socket takes, by their names. A message without a row is refused, so that a command of the
// vocabulary stays away from the socket until its right is decided here.
var commands = map[string]command{
	"GetManager": reading(func(ctx context.Context, x *exchange, _ *messages.GetManager) (proto.Message, error) {
		h, err := x.backend.Hello(ctx)
		return h.toProto(), err
	}),
	"GetStatus": reading(func(ctx context.Context, x *exchange, c *messages.GetStatus) (proto.Message, error) {
		all, err := x.backend.Status(ctx, StatusQuery{Servers: c.GetNames(), Retries: c.GetRetries(),
			Wait: time.Duration(c.GetWaitMs()) * time.Millisecond})
		return &messages.StatusReply{Servers: convertAll(all, messages.Status.ToWholeProto)}, err
	}),
	"ListTools": reading(func(ctx context.Context, x *exchange, c *messages.ListTools) (proto.Message, error) {
		all, err := x.backend.Tools(ctx, c.GetServers()...)
		return &messages.ToolsReply{Tools: convertAll(all, Tool.toProto)}, err
	}),
	"GetHistory": reading(func(ctx context.Context, x *exchange, c *messages.GetHistory) (proto.Message, error) {
		h, err := x.backend.History(ctx, c.GetServer())
		return &messages.HistoryReply{Status: h.Status.ToWholeProto(), WithheldEnv: h.Withheld,
			Entries: convertAll(h.Entries, supervisor.HistoryEntry.ToProto)}, err
	}),
	"GetLogs": reading(func(ctx context.Context, x *exchange, c *messages.GetLogs) (proto.Message, error) {
		lines, err := x.backend.Logs(ctx, c.GetServer())
		return &messages.LogsReply{Lines: convertAll(lines, supervisor.LogLine.ToProto)}, err
	}),
	"GetPermissions": reading(func(ctx context.Context, x *exchange, _ *messages.GetPermissions) (proto.Message, error) {
		rules, err := x.backend.Permissions(ctx)
		return rules.ToProto(), err
	}),
	// A list has the parts of the servers that answered, and the failures of the others beside them.
	"ListResources": reading(func(ctx context.Context, x *exchange, c *messages.ListResources) (proto.Message, error) {
		all, err := x.backend.Resources(ctx, c.GetServers()...)
		return &messages.ResourcesReply{Resources: convertAll(all, messages.Resource.ToWholeProto), Failures: messages.FailuresOf(err)}, nil
	}),
	"ListResourceTemplates": reading(func(ctx context.Context, x *exchange, c *messages.ListResourceTemplates) (proto.Message, error) {
		all, err := x.backend.Templates(ctx, c.GetServers()...)
		return &messages.ResourceTemplatesReply{Templates: convertAll(all, messages.ResourceTemplate.ToWholeProto),
			Failures: messages.FailuresOf(err)}, nil
	}),
	"ListPrompts": reading(func(ctx context.Context, x *exchange, c *messages.ListPrompts) (proto.Message, error) {
		all, err := x.backend.Prompts(ctx, c.GetServers()...)
		return &messages.PromptsReply{Prompts: convertAll(all, messages.Prompt.ToWholeProto), Failures: messages.FailuresOf(err)}, nil
	}),
	// Events are only read. A subscription asks a server for something, so it is none of the reading commands.
	"Watch": reading(func(ctx context.Context, x *exchange, c *messages.Watch) (proto.Message, error) {
		return nil, endedError(x.backend.Follow(ctx, c.GetOnly(), func(e messages.Event) error { return x.send(e.ToProto()) }))
	}),
	"SubscribeResource": changing(func(ctx context.Context, x *exchange, c *messages.SubscribeResource) (proto.Message, error) {
		updated := &messages.WatchEvent{Kind: string(messages.EventResourceUpdated), Server: c.GetServer(), Uri: c.GetUri()}
		return nil, endedError(x.backend.Watch(ctx, c.GetServer(), c.GetUri(), func() error { return x.send(updated) }))
	}),

	"Reload": changing(func(ctx context.Context, x *exchange, _ *messages.Reload) (proto.Message, error) {
		res, err := x.backend.Reload(ctx)
		return res.ToProto(), err
	}),
	"ReconnectServer": changing(func(ctx context.Context, x *exchange, c *messages.ReconnectServer) (proto.Message, error) {
		return &messages.Done{}, x.backend.Reconnect(ctx, c.GetName())
	}),
	"EnableServer": changing(func(ctx context.Context, x *exchange, c *messages.EnableServer) (proto.Message, error) {
		return &messages.Done{}, x.backend.Enable(ctx, c.GetName())
	}),
	"DisableServer": changing(func(ctx context.Context, x *exchange, c *messages.DisableServer) (proto.Message, error) {
		return &messages.Done{}, x.backend.Disable(ctx, c.GetName(), c.GetDisconnect())
	}),
	"PingServer": changing(func(ctx context.Context, x *exchange, c *messages.PingServer) (proto.Message, error) {
		took, err := x.backend.Ping(ctx, c.GetServer())
		return &messages.PingReply{TookNs: took.Nanoseconds()}, err
	}),
	"Complete": changing(func(ctx context.Context, x *exchange, c *messages.Complete) (proto.Message, error) {
		res, err := x.backend.Complete(ctx, c.GetServer(), messages.CompleteRequest{Prompt: c.GetPrompt(), URITemplate: c.GetUriTemplate(),
			Argument: c.GetArgument(), Value: c.GetValue(), Context: c.GetContext()})
		return &messages.CompleteReply{Values: res.Values, Total: int64(res.Total), HasMore: res.HasMore}, err
	}),

	"CallTool":       changing(answerCall),
	"ReadResource":   changing(answerRead),
	"GetPrompt":      changing(answerFill),
	"AnswerQuestion": changing(acceptAnswer),
}

// answerCall runs a tool: of the server that is named, or by its qualified name.
func answerCall(ctx context.Context, x *exchange, m *messages.CallTool) (proto.Message, error) {
	c := Call{Server: m.GetServer(), Tool: m.GetTool(), Args: m.GetArguments()}
	if m.GetServer() == "" {
		c.Qualified, c.Tool = m.GetTool(), ""
	}
	hooks, done := x.openHooks(m)
	c.CallHooks = hooks
	if m.GetPermits() {
		c.Permit = x.permitVia()
	}
	res, err := func() (Result, error) {
		defer done() // also if the backend panics
		return x.backend.Call(ctx, c)
	}()
	// A tool that failed has a result too; the outcome tells the client which it is.
	outcome := messages.OutcomeResult
	if res.IsError {
		outcome = messages.OutcomeToolError
	}
	return &messages.CallToolReply{Outcome: string(outcome), Result: res.Raw}, err
}

// answerRead reads a resource: of the server that is named, or of the one that offers it.
func answerRead(ctx context.Context, x *exchange, m *messages.ReadResource) (proto.Message, error) {
	hooks, done := x.openHooks(m)
	res, err := func() (ReadResult, error) {
		defer done()
		return x.backend.Read(ctx, Read{Server: m.GetServer(), URI: m.GetUri(), CallHooks: hooks})
	}()
	return &messages.ReadResourceReply{Server: res.Server, Outcome: string(messages.OutcomeResult), Result: res.Raw}, err
}

// answerFill fills a prompt: of the server that is named, or by its qualified name.
func answerFill(ctx context.Context, x *exchange, m *messages.GetPrompt) (proto.Message, error) {
	f := Fill{Server: m.GetServer(), Name: m.GetPrompt(), Args: m.GetArguments()}
	if m.GetServer() == "" {
		f.Qualified, f.Name = m.GetPrompt(), ""
	}
	hooks, done := x.openHooks(m)
	f.CallHooks = hooks
	res, err := func() (FillResult, error) {
		defer done()
		return x.backend.Fill(ctx, f)
	}()
	return &messages.GetPromptReply{Server: res.Server, Prompt: res.Name, Outcome: string(messages.OutcomeResult), Result: res.Raw}, err
}

// acceptAnswer takes the answer to a question of another request.
func acceptAnswer(ctx context.Context, x *exchange, m *messages.AnswerQuestion) (proto.Message, error) {
	return &messages.Done{}, x.questions.acceptAnswer(peerOf(ctx).Process(), m)
}

// endedError returns the error of an answer that has no reply: err, or the reason that the manager has ended.
func endedError(err error) error {
	if err != nil {
		return err
	}
	return &messages.Error{Op: "watch", Class: messages.ClassCanceled, Text: "what keeps the servers of this project ended"}
}

// convertAll returns the other form of each element. The result is never nil, so that an empty list stays one.
func convertAll[A, B any](all []A, convert func(A) B) []B {
	out := make([]B, len(all))
	for i, v := range all {
		out[i] = convert(v)
	}
	return out
}
