package serve

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

const (
	// maxQuestions bounds the questions to one agent that are open at once.
	maxQuestions = 64
	// maxKept bounds the notices that wait for a stream of the session.
	maxKept = 1024
)

// A Session is one conversation with an agent: from initialize to its end in the legacy era, one connection on lines, and one
// request of the modern era over HTTP. mu guards what is not set at its beginning. It has no goroutine of its own.
type Session struct {
	Principal Principal
	// Path is what the agent has chosen of what its principal may see.
	Path Path
	// Modern is true for a request of the modern era; Version is that of the protocol.
	Modern  bool
	Version string
	// Capabilities are the agent's own words, an object or nil.
	Capabilities []byte
	// Began is when the agent began to wait for its first answer, by Options.Began; zero if that is not known.
	Began time.Time
	// State is the service's own, which Describe may set.
	State any

	id    string // empty for a session that is not in the table
	agent *Agent
	// unread are the bytes of large answers that are not written; the lock of the handler guards it.
	unread int64

	mu        sync.Mutex
	requests  map[string]*Request
	questions map[string]*question
	asked     int64
	// stream is the one that notices go to; without one they are kept, by their keys.
	stream stream
	kept   []keptNotice
	closed bool
	// cut is true once the endpoint has cancelled the requests.
	cut bool
	// silent is true once the agent can send nothing more, and so answers no question.
	silent bool
	// replay keeps what its streams have sent.
	replay replayLog
	// place, lastUsed and unbind belong to the table of sessions, and are guarded by its lock. unbind parts the session from its
	// credential, with which it would end.
	place    *list.Element
	lastUsed time.Time
	unbind   func() bool
}

type keptNotice struct {
	key  string
	body []byte
}

// answer is an agent's answer to a question.
type answer struct {
	result []byte
	err    *Error
}

// Notify sends a notification that belongs to no request on the stream of the session. If there is none, the newest of each key
// waits for one; without a key it is dropped. It never blocks.
func (s *Session) Notify(key, method string, params []byte) {
	body := appendNotification(nil, method, params)
	s.mu.Lock()
	to := s.stream
	if to == nil && !s.closed && key != "" {
		s.keepNotice(key, body)
	}
	s.mu.Unlock()
	if to != nil {
		to.sendMessage(body, false)
	}
}

// keepNotice remembers a notice until there is a stream. The caller holds mu.
func (s *Session) keepNotice(key string, body []byte) {
	for i := range s.kept {
		if s.kept[i].key == key {
			s.kept[i].body = body
			return
		}
	}
	if len(s.kept) < maxKept {
		s.kept = append(s.kept, keptNotice{key, body})
	}
}

// setStream makes a stream the one for notices, and sends what waits; false if the session has ended or has another one.
func (s *Session) setStream(to stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stream != nil {
		return false
	}
	s.stream = to
	for _, n := range s.kept {
		to.sendMessage(n.body, false)
	}
	s.kept = nil
	return true
}

// beginRequest registers a request; false if another one with its id runs, or the session has ended.
func (s *Session) beginRequest(r *Request) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.cut {
		return &Error{Code: CodeInvalidRequest, Message: "the session has ended"}
	}
	if _, runs := s.requests[string(r.ID)]; runs {
		return refused(CodeInvalidRequest, "a request with this id is being answered already")
	}
	if s.requests == nil {
		s.requests = make(map[string]*Request, 1)
	}
	s.requests[string(r.ID)] = r
	return nil
}

// finishRequest forgets a request. From here on its id may be used again. The answer may end the stream, so the questions on it that are not
// asked any more are taken back before.
func (s *Session) finishRequest(r *Request) {
	r.ended.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[string(r.ID)] == r {
		delete(s.requests, string(r.ID))
	}
	for id, q := range s.questions {
		if q.to == r.stream && q.ctx.Err() != nil {
			s.takeBack(id)
		}
	}
}

// cancelRequest acts on notifications/cancelled. initialize is no request of the table, so it is never cancelled.
//
// 2025-11-25, Cancellation: "Receivers of cancellation notifications SHOULD … Not send a response for the cancelled request".
func (s *Session) cancelRequest(params []byte) {
	id := rawjson.Member(params, "requestId")
	s.mu.Lock()
	r := s.requests[string(id)]
	delete(s.requests, string(id)) // what it still does answers nobody, so its id may be used again
	s.mu.Unlock()
	if r != nil {
		r.cancelled.Store(true)
		r.cancel()
	}
}

// A question is open at an agent, on a stream, until ctx ends.
type question struct {
	ctx    context.Context
	to     stream
	answer chan answer // capacity 1: the answer never blocks the goroutine that reads
}

// askAgent sends a question and waits for the answer. A question that is taken back is cancelled at the agent.
func (s *Session) askAgent(ctx context.Context, to stream, method string, params []byte) ([]byte, *Error) {
	q := &question{ctx, to, make(chan answer, 1)}
	s.mu.Lock()
	if s.silent {
		s.mu.Unlock()
		return nil, errAgentGone()
	}
	if s.closed || len(s.questions) >= maxQuestions {
		s.mu.Unlock()
		return nil, &Error{Code: CodeBusy, Message: "the agent cannot be asked now"}
	}
	if s.questions == nil {
		s.questions = map[string]*question{}
	}
	s.asked++
	id := strconv.FormatInt(s.asked, 10)
	s.questions[id] = q
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.questions, id)
		s.mu.Unlock()
	}()
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"method":`...)
	b = rawjson.AppendText(b, method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	if !to.sendMessage(append(b, '}'), true) {
		return nil, &Error{Code: CodeInternal, Message: "the agent does not read its stream"}
	}
	select {
	case a := <-q.answer:
		return a.result, a.err
	case <-ctx.Done():
		s.mu.Lock()
		s.takeBack(id)
		s.mu.Unlock()
		return nil, &Error{Code: CodeInternal, Message: "the question was taken back"}
	}
}

// takeBack tells the agent that a question is not asked any more, unless it is not open. The caller holds mu.
func (s *Session) takeBack(id string) {
	if q := s.questions[id]; q != nil {
		delete(s.questions, id)
		q.to.sendMessage(appendNotification(nil, "notifications/cancelled", []byte(`{"requestId":`+id+`}`)), false)
	}
}

// takeAnswer gives an agent's answer to the question that waits for it. One that nobody waits for is dropped.
func (s *Session) takeAnswer(m *message) {
	s.mu.Lock()
	q := s.questions[string(m.id)]
	delete(s.questions, string(m.id))
	s.mu.Unlock()
	if q == nil {
		return
	}
	if m.problem != nil {
		q.answer <- answer{err: &Error{Raw: append([]byte(nil), m.problem...)}}
		return
	}
	q.answer <- answer{result: append([]byte(nil), m.result...)}
}

// closeSession ends the session: its requests are cancelled, its stream ends. It reports whether it was open.
func (s *Session) closeSession() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	s.cancelRequests()
	s.refuseQuestions()
	s.kept = nil
	s.replay.closeLog()
	if s.stream != nil {
		s.stream.endStream()
	}
	return true
}

// cutRequests cancels all requests, which still have their answers; no more are begun.
func (s *Session) cutRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
	s.cancelRequests()
}

// cancelRequests cancels all requests by their ids, in the same order each time, because servers are told in it. The caller holds mu.
func (s *Session) cancelRequests() {
	for _, id := range slices.Sorted(maps.Keys(s.requests)) {
		s.requests[id].cancel()
	}
}

// endInput records that the agent can send nothing more. The questions to it are refused from now on; its requests go on.
func (s *Session) endInput() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
	s.refuseQuestions()
}

// refuseQuestions refuses all open questions. The caller holds mu.
func (s *Session) refuseQuestions() {
	for _, q := range s.questions {
		select {
		case q.answer <- answer{err: errAgentGone()}:
		default:
		}
	}
}

// errAgentGone is the error of a question that nobody can answer any more.
func errAgentGone() *Error { return &Error{Code: CodeInternal, Message: "the agent has gone"} }

// isBusy reports whether a session must not be ended for idleness.
func (s *Session) isBusy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil || len(s.requests) > 0
}
