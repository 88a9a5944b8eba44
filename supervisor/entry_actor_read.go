package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// What other actors ask of the servers' resources and prompts. Each runs beside the mailbox, bounded in number together
// with the calls, and is answered once.

// requestEnded says that what ran beside the mailbox has ended.
type requestEnded struct {
	reply  proto.Message
	sender *actor.PID
}

// runInBackground runs f off the mailbox and answers the sender with what it returns. refuse makes the reply of an error.
func (e *entryActor) runInBackground(
	ctx actor.Context, timeoutMs int64, refuse func(error) proto.Message, f func(context.Context) proto.Message,
) {
	to := ctx.Sender()
	if e.inFlight >= maxActorCalls {
		e.sendReply(to, refuse(&Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted,
			Text: fmt.Sprintf("%d requests by message are in flight already", maxActorCalls), Fix: "send it again later"}))
		return
	}
	e.inFlight++
	root, self, sender := e.root, e.self, callerFromSender(ctx)
	go func() { // ends with the request, which has its bound
		reply := refuse(&Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
			Text: "a defect of mcpvisor ended the request"})
		defer func() {
			_ = recover() // the reply above tells it
			root.Send(self, requestEnded{reply, to})
		}()
		wait, cancel := timeoutContext(timeoutMs)
		defer cancel()
		reply = f(audit.WithVia(wait, sender.via, sender.sender))
	}()
}

// listInBackground is beside for a list: each item travels in the form that item gives it, beside the servers that failed.
func listInBackground[T, P any](
	ctx actor.Context, e *entryActor, timeoutMs int64, item func(T) P, list func(context.Context) ([]T, error),
	reply func([]P, []*messages.Failure) proto.Message,
) {
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

func timeoutContext(ms int64) (context.Context, context.CancelFunc) {
	if ms <= 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(ms)*time.Millisecond)
}

// receiveRead takes the commands that read. It reports false for another one.
func (e *entryActor) receiveRead(ctx actor.Context) bool {
	m := e.m
	switch c := ctx.Message().(type) {
	case *messages.ListResources:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.Resource.ToProto,
			func(ctx context.Context) ([]messages.Resource, error) { return m.Resources(ctx, c.GetServers()...) },
			func(all []*messages.ResourceEntry, failures []*messages.Failure) proto.Message {
				return &messages.ResourcesReply{Resources: all, Failures: failures}
			})
	case *messages.ListResourceTemplates:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.ResourceTemplate.ToProto,
			func(ctx context.Context) ([]messages.ResourceTemplate, error) {
				return m.ResourceTemplates(ctx, c.GetServers()...)
			},
			func(all []*messages.ResourceTemplateEntry, failures []*messages.Failure) proto.Message {
				return &messages.ResourceTemplatesReply{Templates: all, Failures: failures}
			})
	case *messages.ListPrompts:
		listInBackground(ctx, e, c.GetTimeoutMs(), messages.Prompt.ToProto,
			func(ctx context.Context) ([]messages.Prompt, error) { return m.Prompts(ctx, c.GetServers()...) },
			func(all []*messages.PromptEntry, failures []*messages.Failure) proto.Message {
				return &messages.PromptsReply{Prompts: all, Failures: failures}
			})
	case *messages.ReadResource:
		e.readResource(ctx, c)
	case *messages.GetPrompt:
		e.getPrompt(ctx, c)
	case *messages.Complete:
		e.completeArgument(ctx, c)
	case *messages.SubscribeResource:
		e.runInBackground(ctx, 0, doneReply, func(ctx context.Context) proto.Message {
			return doneReply(m.SubscribeResource(ctx, c.GetServer(), c.GetUri()))
		})
	case *messages.UnsubscribeResource:
		e.runInBackground(ctx, 0, doneReply, func(ctx context.Context) proto.Message {
			return doneReply(m.UnsubscribeResource(ctx, c.GetServer(), c.GetUri()))
		})
	case *messages.Reload:
		reply := func(res ReloadResult, err error) proto.Message { return res.toReply(err) }
		e.runInBackground(ctx, reloadTime.Milliseconds(), func(err error) proto.Message { return reply(ReloadResult{}, err) },
			func(ctx context.Context) proto.Message { return reply(m.Reload(ctx)) })
	case requestEnded:
		e.inFlight--
		e.sendReply(c.sender, c.reply)
	default:
		return false
	}
	return true
}

func doneReply(err error) proto.Message { return &messages.Done{Failure: messages.FailureOf(err)} }

func (e *entryActor) readResource(ctx actor.Context, c *messages.ReadResource) {
	m := e.m
	reply := func(res *ResourceResult, err error) proto.Message {
		r := &messages.ReadResourceReply{RequestId: c.GetRequestId(), Server: c.GetServer(),
			Outcome: string(messages.OutcomeOf(err)), Failure: messages.FailureOf(err)}
		if res != nil {
			r.Server, r.Result = res.Server, res.Raw
		}
		return r
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply(nil, err) },
		func(ctx context.Context) proto.Message {
			ctx = messages.WithCaller(ctx, c.GetCaller())
			if c.GetServer() == "" {
				return reply(m.ReadResource(ctx, c.GetUri()))
			}
			return reply(m.ReadServerResource(ctx, c.GetServer(), c.GetUri()))
		})
}

func (e *entryActor) getPrompt(ctx actor.Context, c *messages.GetPrompt) {
	m := e.m
	reply := func(res *PromptResult, err error) proto.Message {
		r := &messages.GetPromptReply{RequestId: c.GetRequestId(), Server: c.GetServer(),
			Outcome: string(messages.OutcomeOf(err)), Failure: messages.FailureOf(err)}
		if res != nil {
			r.Server, r.Result = res.Server, res.Raw
		}
		return r
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply(nil, err) },
		func(ctx context.Context) proto.Message {
			ctx = messages.WithCaller(ctx, c.GetCaller())
			if c.GetServer() == "" {
				return reply(m.GetPrompt(ctx, c.GetPrompt(), c.GetArguments()))
			}
			return reply(m.GetServerPrompt(ctx, c.GetServer(), c.GetPrompt(), c.GetArguments()))
		})
}

func (e *entryActor) completeArgument(ctx actor.Context, c *messages.Complete) {
	m := e.m
	reply := func(res messages.Completion, err error) proto.Message {
		return &messages.CompleteReply{RequestId: c.GetRequestId(), Values: res.Values, Total: int64(res.Total),
			HasMore: res.HasMore, Failure: messages.FailureOf(err)}
	}
	e.runInBackground(ctx, c.GetTimeoutMs(), func(err error) proto.Message { return reply(messages.Completion{}, err) },
		func(ctx context.Context) proto.Message {
			ctx = messages.WithCaller(ctx, c.GetCaller())
			return reply(m.Complete(ctx, c.GetServer(), messages.CompleteRequest{Prompt: c.GetPrompt(),
				URITemplate: c.GetUriTemplate(), Argument: c.GetArgument(), Value: c.GetValue(), Context: c.GetContext()}))
		})
}

// progressEvery is the least time between two CallProgress messages of one call.
const progressEvery = 100 * time.Millisecond

// progressSender tells an actor of a call's progress, not more often than it can be looked at, and of the newest always.
type progressSender struct {
	post func(*messages.CallProgress)
	id   string

	mu       sync.Mutex
	lastSent time.Time
	next     *messages.CallProgress // what waits for its time
	timer    *time.Timer
	ended    bool
}

func (p *progressSender) addProgress(v Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = &messages.CallProgress{CallId: p.id, Progress: v.Progress, Total: v.Total, Message: v.Message}
	if p.ended || p.timer != nil {
		return
	}
	if wait := progressEvery - time.Since(p.lastSent); !p.lastSent.IsZero() && wait > 0 {
		p.timer = time.AfterFunc(wait, p.flushDue)
		return
	}
	p.sendLatest()
}

func (p *progressSender) flushDue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if !p.ended {
		p.sendLatest()
	}
}

// sendLatest is called with mu held.
func (p *progressSender) sendLatest() {
	if p.next != nil {
		p.post(p.next)
		p.next, p.lastSent = nil, time.Now()
	}
}

// endProgress tells what still waits, and nothing after that.
func (p *progressSender) endProgress() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.sendLatest()
	p.ended = true
}
