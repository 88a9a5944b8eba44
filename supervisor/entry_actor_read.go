package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
)

// This file has what other actors ask about the servers' resources and prompts. Each request runs in a goroutine, counts among
// the maxActorCalls, and is replied to once.

// reloadTime bounds a reload that another actor asks for: its message carries no deadline.
const reloadTime = 30 * time.Second

// requestEnded carries a reply from a request's goroutine back to the actor.
type requestEnded struct {
	request *openRequest
	reply   proto.Message
}

// runInBackground runs f in a goroutine and replies to the sender with its result. refuse makes a reply of an error: for too many
// requests, and for a panic.
func (e *entryActor) runInBackground(
	ctx actor.Context, timeoutMs int64, refuse func(error) proto.Message, f func(context.Context) proto.Message,
) {
	// Where the message names a caller, the request is made on its behalf.
	var caller string
	if m, ok := ctx.Message().(interface{ GetCaller() string }); ok {
		caller = m.GetCaller()
	}
	to := requesterOf(ctx)
	if e.inFlight >= maxActorCalls {
		e.sendReply(to, refuse(&messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted,
			Text: fmt.Sprintf("%d requests by message are in flight already", maxActorCalls), Fix: "send it again later"}))
		return
	}
	// It is open until requestEnded arrives, which the goroutine always sends.
	request := e.addRequest(to, refuse)
	root, self, sender := e.root, e.self, auditor.CallerFromSender(ctx)
	go func() { // ends with f, which the timeout or the server's own bounds end
		reply := refuse(&messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
			Text: "a defect of mcpvisor ended the request"})
		defer func() {
			_ = recover() // reply says so already
			root.Send(self, requestEnded{request, reply})
		}()
		// The server's own timeouts apply within this bound.
		wait, cancel := timeoutContext(timeoutMs)
		defer cancel()
		reply = f(audit.WithVia(messages.WithCaller(wait, caller), sender.Via, sender.Sender))
	}()
}

// listInBackground runs a list in the background. item translates each element, and the servers that failed stand in the
// reply beside the elements of the others.
func listInBackground[T, P any](
	ctx actor.Context, e *entryActor, timeoutMs int64, item func(T) P, list func(context.Context) ([]T, error),
	reply func([]P, []*messages.Failure) proto.Message,
) {
	// The parts of the servers that answered are sent even if others failed.
	form := func(all []T, err error) proto.Message {
		var travel []P
		for _, v := range all {
			travel = append(travel, item(v))
		}
		return reply(travel, messages.FailuresOf(err))
	}
	e.runInBackground(ctx, timeoutMs, func(err error) proto.Message { return form(nil, err) },
		func(ctx context.Context) proto.Message { return form(list(ctx)) })
}

// timeoutContext returns a context that ends after so many milliseconds; none for 0, as the requests have bounds of their own.
func timeoutContext(ms int64) (context.Context, context.CancelFunc) {
	if ms <= 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
}

// receiveRead handles the messages that read from servers. It reports false for any other message.
func (e *entryActor) receiveRead(ctx actor.Context) bool {
	facade := e.facade
	switch c := ctx.Message().(type) {
	case *messages.ListResources:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.Resource.ToProto,
			func(ctx context.Context) ([]messages.Resource, error) {
				return facade.Resources(ctx, c.GetServers()...)
			},
			func(all []*messages.ResourceEntry, failures []*messages.Failure) proto.Message {
				return &messages.ResourcesReply{Resources: all, Failures: failures}
			})
	case *messages.ListResourceTemplates:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.ResourceTemplate.ToProto,
			func(ctx context.Context) ([]messages.ResourceTemplate, error) {
				return facade.ResourceTemplates(ctx, c.GetServers()...)
			},
			func(all []*messages.ResourceTemplateEntry, failures []*messages.Failure) proto.Message {
				return &messages.ResourceTemplatesReply{Templates: all, Failures: failures}
			})
	case *messages.ListPrompts:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.Prompt.ToProto,
			func(ctx context.Context) ([]messages.Prompt, error) { return facade.Prompts(ctx, c.GetServers()...) },
			func(all []*messages.PromptEntry, failures []*messages.Failure) proto.Message {
				return &messages.PromptsReply{Prompts: all, Failures: failures}
			})
	case *messages.ReadResource:
		e.readResource(ctx, c)
	case *messages.GetPrompt:
		e.getPrompt(ctx, c)
	case *messages.Complete:
		e.completeArgument(ctx, c)
	// The events of a subscription come through Watch; this reply says only that the server agreed.
	case *messages.SubscribeResource:
		// A subscription has no timeout of the sender's: the server's request timeout bounds it.
		e.runInBackground(ctx, 0, doneReply, func(ctx context.Context) proto.Message {
			return doneReply(facade.SubscribeResource(ctx, c.GetServer(), c.GetUri()))
		})
	case *messages.UnsubscribeResource:
		e.runInBackground(ctx, 0, doneReply, func(ctx context.Context) proto.Message {
			return doneReply(facade.UnsubscribeResource(ctx, c.GetServer(), c.GetUri()))
		})
	// A reload may wait for other changes, so it is bounded here.
	case *messages.Reload:
		e.runInBackground(ctx, reloadTime.Milliseconds(), func(err error) proto.Message {
			return &messages.ReloadReply{Failure: messages.FailureOf(err)}
		}, func(ctx context.Context) proto.Message { return facade.Reload(ctx) })
	// The three after it are read from what is published, so that they are answered in the actor's turn.
	case *messages.PingServer:
		e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message {
			return &messages.PingReply{Failure: messages.FailureOf(err)}
		}, func(ctx context.Context) proto.Message {
			took, err := facade.Ping(ctx, c.GetServer())
			return &messages.PingReply{TookNs: took.Nanoseconds(), Failure: messages.FailureOf(err)}
		})
	case *messages.GetHistory:
		e.sendReply(requesterOf(ctx), e.historyReply(c.GetServer()))
	case *messages.GetLogs:
		e.sendReply(requesterOf(ctx), e.logsReply(c.GetServer()))
	case *messages.GetPermissions:
		e.sendReply(requesterOf(ctx), facade.Permissions().ToProto())
	case requestEnded:
		if e.endRequest(c.request) {
			e.sendReply(c.request.to, c.reply)
		}
	default:
		return false
	}
	return true
}

// doneReply is the reply of a command that has no result.
func doneReply(err error) proto.Message { return &messages.Done{Failure: messages.FailureOf(err)} }

// readResource reads a resource of the named server, or of the one that offers the URI.
func (e *entryActor) readResource(ctx actor.Context, c *messages.ReadResource) {
	facade := e.facade
	// One function makes the reply for every outcome, so that each has the request's id.
	reply := func(server string, result json.RawMessage, err error) proto.Message {
		if err != nil {
			server = c.GetServer()
		}
		return &messages.ReadResourceReply{Server: server, Result: result,
			Outcome: string(messages.OutcomeOf(err)), Failure: messages.FailureOf(err)}
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply("", nil, err) },
		func(ctx context.Context) proto.Message {
			return reply(facade.ReadResource(ctx, c))
		})
}

// getPrompt fills a prompt of the named server by its own name, or by its qualified name if no server is named.
func (e *entryActor) getPrompt(ctx actor.Context, c *messages.GetPrompt) {
	facade := e.facade
	reply := func(server string, result json.RawMessage, err error) proto.Message {
		if err != nil {
			server = c.GetServer()
		}
		return &messages.GetPromptReply{Server: server, Result: result,
			Outcome: string(messages.OutcomeOf(err)), Failure: messages.FailureOf(err)}
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply("", nil, err) },
		func(ctx context.Context) proto.Message {
			return reply(facade.GetPrompt(ctx, c))
		})
}

// completeArgument asks a server for proposals for one argument.
func (e *entryActor) completeArgument(ctx actor.Context, c *messages.Complete) {
	facade := e.facade
	reply := func(res messages.Completion, err error) proto.Message {
		p := res.ToProto()
		p.Failure = messages.FailureOf(err)
		return p
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply(messages.Completion{}, err) },
		func(ctx context.Context) proto.Message {
			return reply(facade.Complete(ctx, c.GetServer(), c.ToRequest()))
		})
}

// historyReply is a server's status and its past. What the environment of a server lacks stays on this machine.
func (e *entryActor) historyReply(server string) *messages.HistoryReply {
	st, err := e.facade.ServerStatus(server)
	if err != nil {
		return &messages.HistoryReply{Failure: messages.FailureOf(err)}
	}
	entries, err := e.facade.History(server)
	reply := &messages.HistoryReply{Status: st.ToProto(), Failure: messages.FailureOf(err)}
	for _, entry := range entries {
		reply.Entries = append(reply.Entries, entry.ToProto())
	}
	return reply
}

// logsReply has the newest log messages of a server. The status is asked first, because an unknown server has no logs and no error.
func (e *entryActor) logsReply(server string) *messages.LogsReply {
	_, err := e.facade.ServerStatus(server)
	reply := &messages.LogsReply{Failure: messages.FailureOf(err)}
	for _, line := range e.facade.Logs(server) {
		reply.Lines = append(reply.Lines, line.ToProto())
	}
	return reply
}
