package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// requestOrigin says which request of ours a request of the server belongs to. A question of the server is answered with the
// values of that request's context, so that the person is asked whose call it is.
//
// In the modern era the server's question is the answer to a request, and nothing needs to be found out. In the legacy
// era the session knows it in three cases:
//   - the question came on the stream of one request over HTTP (2025-11-25, Sending Messages to the Server: "The server
//     MAY send JSON-RPC requests and notifications before sending the JSON-RPC response. These messages SHOULD relate to
//     the originating client request");
//   - the question names a task that the session follows (relatedTask);
//   - every request that the server has not answered is one caller's: a server that follows the specification asks while
//     it works on a request, and has none of anybody else. Requests that were given up without an answer count as
//     unanswered for lingering, because the server may still be at work on them.
//
// In every other case the question belongs to no caller, and the program answers it.
type requestOrigin struct {
	// callerCtx is the context whose values the answer is asked with; nil if no caller is known.
	callerCtx context.Context
	// requestID is the request whose end takes the question back, 0 for none; task is the same for a task.
	requestID int64
	task      *followedTask
	// timeout stands still while the question is open; nil for none.
	timeout *CallTimeout
}

// errCallEnded takes a question back whose call has ended.
var errCallEnded = errors.New("the call that the question belongs to has ended")

const (
	// abandonedLifetime is how long a request counts as unanswered that was given up: the longest time of a call by default.
	abandonedLifetime = 10 * time.Minute
	// maxAbandoned bounds how many are remembered one by one.
	maxAbandoned = 64
)

// abandonedRequest is a request that its caller gave up and the server has not answered.
type abandonedRequest struct {
	id     int64
	caller *messages.Answerer
	until  monotime
}

// allowsServerRequests reports whether a server may ask questions while it works on such a request of ours.
func allowsServerRequests(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete", "tasks/result":
		return true
	}
	return false
}

// originOf finds the request that a request of the server belongs to. on is the id of the request on whose stream it
// came, 0 if that is not known. The caller holds mu.
func (s *Session) originOf(streamID int64, params []byte) requestOrigin {
	if f := s.pending[streamID]; f != nil && f.ctx != nil {
		return requestOrigin{callerCtx: f.ctx, requestID: streamID, timeout: f.timeout}
	}
	if id, _ := rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(params, "_meta"), relatedTask), "taskId")); id != "" {
		for f := range s.followedTasks {
			if f.id == id && f.ctx != nil {
				return requestOrigin{callerCtx: f.ctx, task: f, timeout: f.timeout}
			}
		}
	}
	return s.onlyCaller()
}

// onlyCaller is the request that a question belongs to if every unanswered one is the same caller's. The clocks of
// several requests are begun anew once for a question of which nobody knows whose it is: each call then lasts at most
// one call timeout longer. The caller holds mu.
func (s *Session) onlyCaller() (b requestOrigin) {
	var one *messages.Answerer
	n, mixed := 0, false
	count := func(ctx context.Context, found requestOrigin) {
		if n == 1 && found.timeout != nil && found.timeout == b.timeout {
			return // the request by which a task's result is waited for
		}
		caller := messages.AnswererOf(ctx)
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
		return requestOrigin{}
	}
	now := monotimeNow()
	for _, l := range s.abandonedRequests {
		mixed = mixed || l.until > now && l.caller != one
	}
	if n == 1 && !mixed {
		return b
	}
	for _, f := range s.pending {
		if f.ctx != nil {
			f.timeout.extendOnce()
		}
	}
	for f := range s.followedTasks {
		f.timeout.extendOnce()
	}
	if mixed {
		return requestOrigin{}
	}
	return requestOrigin{callerCtx: messages.WithAnswerer(context.Background(), one)}
}

// rememberAbandoned remembers a request that was given up. It is forgotten when its answer comes after all.
func (s *Session) rememberAbandoned(ctx context.Context, id int64) {
	caller, now := messages.AnswererOf(ctx), monotimeNow()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return
	}
	remaining := s.abandonedRequests[:0]
	for _, l := range s.abandonedRequests {
		if l.until > now {
			remaining = append(remaining, l)
		}
	}
	s.abandonedRequests = append(remaining, abandonedRequest{id, caller, now + monotime(abandonedLifetime)})
	if n := len(s.abandonedRequests); n > maxAbandoned { // the oldest two become one, which no caller's question outlives
		s.abandonedRequests[1].id = 0
		if s.abandonedRequests[0].caller != s.abandonedRequests[1].caller {
			s.abandonedRequests[1].caller = new(messages.Answerer)
		}
		s.abandonedRequests = append(s.abandonedRequests[:0], s.abandonedRequests[1:]...)
	}
}

// forgetAbandoned forgets a request that was given up. The caller holds mu.
func (s *Session) forgetAbandoned(id int64) {
	for i, l := range s.abandonedRequests {
		if l.id == id && id != 0 {
			s.abandonedRequests = append(s.abandonedRequests[:i], s.abandonedRequests[i+1:]...)
			return
		}
	}
}

// servedRequest is a request of the server that is being answered.
type servedRequest struct {
	requestOrigin
	cancel context.CancelCauseFunc
}

// withdrawQuestions ends the questions that belong to a request, or to a task, that has ended. The caller holds mu, and calls the
// result without it.
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

// pauseTimeout stops the clock of one request until the result is called, or ctx ends.
func (s *Session) pauseTimeout(ctx context.Context, p *CallTimeout) (resume func()) {
	if p == nil {
		return func() {}
	}
	p.pauseIdle()
	once := sync.OnceFunc(func() { s.resumeTimeout(p) })
	detach := context.AfterFunc(ctx, once)
	return func() {
		detach()
		once()
	}
}

// valuesContext is a context with the values of another one.
type valuesContext struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c valuesContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
