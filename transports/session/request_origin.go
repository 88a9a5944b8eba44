package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/tasks"
)

// requestOrigin names the request of ours that a request of the server belongs to (the "originating client request"). The
// handler of a question gets the values of that request's context, so that the question reaches the person whose call it is.
//
// In the modern era the server's question is the answer to a request, and nothing needs to be found out. In the legacy era
// the session knows the origin in three cases:
//
//   - the question came on the stream of one request over HTTP (2025-11-25, Sending Messages to the Server: "The server MAY
//     send JSON-RPC requests and notifications before sending the JSON-RPC response. These messages SHOULD relate to the
//     originating client request");
//   - the question names a task that the session follows (tasks.RelatedTaskID);
//   - all requests that the server has not answered belong to one caller: a server that follows the specification asks only
//     while it works on a request, and has none of another caller. Requests that were given up without an answer count as
//     unanswered for abandonedLifetime, because the server may still work on them.
//
// In every other case the question belongs to no caller, and the program answers it.
type requestOrigin struct {
	// callerCtx is the context whose values the handler gets; nil if no caller is known.
	callerCtx context.Context
	// requestID is the request whose end withdraws the question, 0 for none; task is the same for a task.
	requestID int64
	task      *followedTask
	// timeout is the caller's CallTimeout, whose idle timeout stands still while the question is open; nil for none.
	timeout *CallTimeout
	// uncertain is true if several requests, or none of the caller's own, may be the one that the question belongs to.
	uncertain bool
}

// errCallEnded is the cause with which a handler's context is cancelled after the call of its question has ended.
var errCallEnded = errors.New("the call that the question belongs to has ended")

const (
	// abandonedLifetime is the time for which a request counts as unanswered after its caller gave it up: the default
	// of the longest time of a call.
	abandonedLifetime = 10 * time.Minute
	// maxAbandoned bounds the requests that are remembered one by one; older ones are merged.
	maxAbandoned = 64
)

// An abandonedRequest is a request that its caller gave up and the server has not answered.
type abandonedRequest struct {
	id     int64
	caller requestCaller
	until  monotime.Time // when the session forgets it
}

// requestCaller says whose a request is: who answers questions about it, nil for the program itself, which is compared by identity
// only, and the key of messages.WithCaller. Requests of two keys never count as one caller's.
type requestCaller struct {
	answerer *messages.Answerer
	key      string
}

func callerOfRequest(ctx context.Context) requestCaller {
	return requestCaller{messages.AnswererOf(ctx), messages.CallerOf(ctx)}
}

// allowsServerRequests reports whether a server may ask questions while it works on a request of ours with this method.
func allowsServerRequests(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete", "tasks/result":
		return true
	}
	return false
}

// originOf finds the request that a request of the server belongs to. streamID is the id of the request on whose stream it
// came, 0 if that is not known; params are those of the server's request. The caller holds mu.
func (s *Session) originOf(streamID int64, params []byte) requestOrigin {
	if f := s.pending[streamID]; f != nil && f.ctx != nil {
		return requestOrigin{callerCtx: f.ctx, requestID: streamID, timeout: f.timeout}
	}
	if id, _ := tasks.RelatedTaskID(params); id != "" {
		for f := range s.followedTasks {
			if f.id == id && f.ctx != nil {
				return requestOrigin{callerCtx: f.ctx, task: f, timeout: f.timeout}
			}
		}
	}
	return s.onlyCaller()
}

// onlyCaller returns the origin of a question that names no request: the only request, if there is one, or the only caller of
// all unanswered ones. The caller holds mu.
func (s *Session) onlyCaller() (b requestOrigin) {
	var one requestCaller
	n, mixed := 0, false
	count := func(ctx context.Context, found requestOrigin) {
		if n == 1 && found.timeout != nil && found.timeout == b.timeout {
			return // the request that waits for the result of a task, and the task itself, are one call
		}
		caller := callerOfRequest(ctx)
		mixed = mixed || n > 0 && caller != one
		one, b = caller, found
		n++
	}
	for id, f := range s.pending {
		if f.ctx != nil {
			count(f.ctx, requestOrigin{callerCtx: f.ctx, requestID: id, timeout: f.timeout})
		}
	}
	for f := range s.followedTasks {
		if f.ctx != nil && f.id != "" {
			count(f.ctx, requestOrigin{callerCtx: f.ctx, task: f, timeout: f.timeout})
		}
	}
	if n == 0 {
		// The server asks outside of any request of ours: the program answers.
		return requestOrigin{}
	}
	now := monotime.Now()
	// Abandoned requests of another caller make the origin uncertain; those of the same caller do not.
	for _, l := range s.abandonedRequests {
		mixed = mixed || l.until > now && l.caller != one
	}
	if n == 1 && !mixed {
		return b
	}
	if mixed {
		return requestOrigin{uncertain: true}
	}
	ctx := messages.WithCaller(messages.WithAnswerer(context.Background(), one.answerer), one.key)
	// The caller is known, but not which of its requests: nothing pauses, and no end withdraws the question.
	return requestOrigin{callerCtx: ctx, uncertain: true}
}

// extendIdleTimeouts extends the idle timeout of every request once, because a question is open whose request is not certain: a call
// does not time out while a person answers, and each lasts at most one call timeout longer. The caller holds mu.
func (s *Session) extendIdleTimeouts() {
	for _, f := range s.pending {
		if f.ctx != nil {
			f.timeout.ExtendOnce()
		}
	}
	for f := range s.followedTasks {
		f.timeout.ExtendOnce()
	}
}

// rememberAbandoned records a request that its caller gave up, until its answer comes after all or abandonedLifetime has
// passed. It drops the expired records at the same time, so it needs no timer.
func (s *Session) rememberAbandoned(ctx context.Context, id int64) {
	caller, now := callerOfRequest(ctx), monotime.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil { // the session has ended
		return
	}
	remaining := s.abandonedRequests[:0]
	for _, l := range s.abandonedRequests {
		if l.until > now {
			remaining = append(remaining, l)
		}
	}
	s.abandonedRequests = append(remaining, abandonedRequest{id, caller, now + monotime.Time(abandonedLifetime)})
	// The two oldest records become one, with the later end. If their callers differ, the merged record gets one that
	// equals no caller, so that no question is attributed to one by mistake.
	if n := len(s.abandonedRequests); n > maxAbandoned { // the oldest two become one, which no caller's question outlives
		s.abandonedRequests[1].id = 0
		if s.abandonedRequests[0].caller != s.abandonedRequests[1].caller {
			s.abandonedRequests[1].caller = requestCaller{answerer: new(messages.Answerer)}
		}
		s.abandonedRequests = append(s.abandonedRequests[:0], s.abandonedRequests[1:]...)
	}
}

// forgetAbandoned drops the record of an abandoned request because its answer has come. The caller holds mu.
func (s *Session) forgetAbandoned(id int64) {
	for i, l := range s.abandonedRequests {
		if l.id == id && id != 0 {
			s.abandonedRequests = append(s.abandonedRequests[:i], s.abandonedRequests[i+1:]...)
			return
		}
	}
}

// A servedRequest is a request of the server that a handler is answering.
type servedRequest struct {
	requestOrigin
	cancel context.CancelCauseFunc
}

// withdrawQuestions collects the questions that belong to a request, or to a task, that has ended. The caller holds mu, and
// calls cancelAll after it has released mu, because a cancellation runs the code of the handlers' contexts.
func (s *Session) withdrawQuestions(requestID int64, task *followedTask) (cancelAll func()) {
	var cancels []context.CancelCauseFunc
	for _, q := range s.serverRequests {
		if requestID != 0 && q.requestID == requestID || task != nil && q.task == task {
			cancels = append(cancels, q.cancel)
		}
	}
	return func() {
		for _, cancel := range cancels {
			cancel(errCallEnded)
		}
	}
}

// pauseTimeout stops the idle timeout of one request until resume is called, or ctx ends: a handler that forgets to return
// must not stop the clock for longer than its question lives.
func (s *Session) pauseTimeout(ctx context.Context, p *CallTimeout) (resume func()) {
	if p == nil {
		return func() {}
	}
	p.PauseIdle()
	once := sync.OnceFunc(func() { s.resumeTimeout(p) })
	detach := context.AfterFunc(ctx, once)
	return func() {
		detach()
		once()
	}
}

// valuesContext is a context with the values of another one, and its own deadline and end. A handler's context ends with the
// session and not with the call, but carries the call's values.
type valuesContext struct {
	context.Context
	values context.Context
}

// Value implements context.Context: its own values come before those of the other context.
func (c valuesContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
