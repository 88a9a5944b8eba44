package control

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Call implements Backend. The result travels as bytes, so they are the server's own.
func (c *Client) Call(ctx context.Context, call Call) (Result, error) {
	m := &messages.CallTool{Server: call.Server, Tool: call.Tool, Arguments: call.Args, Progress: call.Progress != nil, Meta: call.Meta,
		Asks: call.Ask != nil, Permits: call.Permit != nil}
	if call.Qualified != "" {
		m.Server, m.Tool = "", call.Qualified
	}
	reply, err := sendWithHooks[*messages.CallToolReply](ctx, c, m, call.CallHooks)
	if err != nil {
		return Result{}, withOutcome(err, "call", call.Server, call.Tool)
	}
	return Result{Raw: reply.GetResult(), IsError: reply.GetOutcome() == string(messages.OutcomeToolError)}, nil
}

// Read implements Backend. The reply names the server that gave the resource, also if the caller named none.
func (c *Client) Read(ctx context.Context, r Read) (ReadResult, error) {
	reply, err := sendWithHooks[*messages.ReadResourceReply](ctx, c, &messages.ReadResource{Server: r.Server, Uri: r.URI,
		Progress: r.Progress != nil, Meta: r.Meta, Asks: r.Ask != nil}, r.CallHooks)
	return ReadResult{Server: reply.GetServer(), Raw: reply.GetResult()}, withOutcome(err, "read", r.Server, "")
}

// Fill implements Backend.
func (c *Client) Fill(ctx context.Context, f Fill) (FillResult, error) {
	m := &messages.GetPrompt{Server: f.Server, Prompt: f.Name, Arguments: f.Args, Progress: f.Progress != nil, Meta: f.Meta, Asks: f.Ask != nil}
	if f.Qualified != "" {
		m.Server, m.Prompt = "", f.Qualified
	}
	reply, err := sendWithHooks[*messages.GetPromptReply](ctx, c, m, f.CallHooks)
	return FillResult{Server: reply.GetServer(), Name: reply.GetPrompt(), Raw: reply.GetResult()}, withOutcome(err, "read", f.Server, "")
}

// withOutcome completes an error of the socket itself, which has no outcome yet: the request was not sent if the
// connection failed, otherwise its effect is unknown. Errors of the other side pass unchanged.
func withOutcome(err error, op, server, tool string) error {
	var e *messages.Error
	if errors.As(err, &e) && e.Outcome == "" {
		e.Op, e.Outcome, e.Server, e.Tool = op, messages.OutcomeUnknown, server, tool
		// A dialError means that no connection was made.
		var refused *dialError
		if errors.As(err, &refused) {
			e.Outcome = messages.OutcomeNotSent
		}
	}
	return err
}

// Follow implements Backend. The events have no end of their own: ctx or f ends them.
func (c *Client) Follow(ctx context.Context, server string, f func(messages.Event) error) error {
	_, err := send[*messages.Done](ctx, c, &messages.Watch{Only: server}, func(m proto.Message) error {
		if e, ok := m.(*messages.WatchEvent); ok {
			return f(e.ToEvent())
		}
		return nil
	})
	return ignoreCancel(ctx, err)
}

// Watch implements Backend. f runs on the caller's goroutine, one call at a time.
func (c *Client) Watch(ctx context.Context, server, uri string, f func() error) error {
	// The events are read while f runs, so that the other side is not held up; changes that come meanwhile become one.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { // it ends with ctx, which the deferred cancel ends
		_, err := send[*messages.Done](ctx, c, &messages.SubscribeResource{Server: server, Uri: uri}, func(proto.Message) error {
			select {
			case changed <- struct{}{}:
			default:
			}
			return nil
		})
		ended <- err
	}()
	for {
		select {
		case <-changed:
			if err := f(); err != nil {
				return err
			}
		case err := <-ended:
			return ignoreCancel(ctx, err)
		}
	}
}

// ignoreCancel returns err, or nil if the caller itself ended the request.
func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a request without an end is ended in this way
	}
	return err
}

// sendWithHooks sends a command whose answer is a result, and calls the caller's hooks meanwhile. The command announces which hooks
// there are, so that the other side asks no question that would stay open. It returns after all hooks have returned.
func sendWithHooks[R proto.Message](ctx context.Context, c *Client, command proto.Message, a CallHooks) (R, error) {
	// Questions are withdrawn one by one, or all when the request ends. open belongs to this goroutine, which calls
	// the function below.
	askCtx, cancel := context.WithCancel(ctx)
	open := map[string]context.CancelFunc{}
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	return send[R](ctx, c, command, func(m proto.Message) error {
		switch m := m.(type) {
		// Progress is reported on this goroutine: a slow hook holds up the stream, and the other side then drops
		// progress.
		case *messages.CallProgress:
			if a.Progress != nil {
				a.Progress(m.ToProgress())
			}
		// A person may take minutes, and the stream must go on meanwhile: each question has its own goroutine.
		case *messages.CallerQuestion:
			if answer := a.answerer(m); answer != nil {
				one, withdraw := context.WithCancel(askCtx)
				open[m.GetId()] = withdraw
				answering.Go(func() {
					defer withdraw()
					c.answerQuestion(one, answer)
				})
			}
		// The server does not need the answer any more, or its call has ended.
		case *messages.CallerQuestionEnded:
			if withdraw := open[m.GetId()]; withdraw != nil {
				withdraw()
				delete(open, m.GetId())
			}
		}
		return nil
	})
}

// answerQuestion asks the caller's person and sends the answer. If it does not arrive, the request itself reports its end.
func (c *Client) answerQuestion(ctx context.Context, answer func(context.Context) *messages.AnswerQuestion) {
	if a := answer(ctx); ctx.Err() == nil { // else the question was withdrawn
		_, _ = send[*messages.Done](ctx, c, a, nil)
	}
}
