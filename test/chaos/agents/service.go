package agents

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// observedService is the gateway, and what it answered to calls whose agents have gone: nobody else hears of these.
type observedService struct {
	serve.Service

	mu sync.Mutex
	// orphans are calls whose agents have gone, by the id of the call; done are calls that were answered, until their agents have the
	// answer.
	orphans map[string]*agent
	done    map[string]served
	// begun are the calls that are being served.
	begun map[string]bool
	// callers are the principals of all calls that agents have made. An agent that tries the state of another principal names its call, too,
	// and one that sends its own answers once more names its own: the answers to both say nothing of the call.
	callers map[string]string
	// handled counts the requests that are being served, and parked holds when calls came back to their agents for input.
	handled int
	parked  []time.Duration
	// uses are those of the sessions of the legacy era over HTTP, until the endpoint has ended them.
	uses map[*serve.Session]*sessionUse
	now  func() time.Duration
	// noteTask takes a task that a call has become.
	noteTask func(call, principal string, result []byte)
	// noteRefused takes the refusal to let a call become a task, with the requests of its principal that are being served.
	noteRefused func(principal string, making int)
	making      map[string]int
}

// sessionUse says how many requests of a session are being served, since when the oldest of them at the latest, and when the last one ended.
type sessionUse struct {
	running      int
	began, ended time.Duration
}

// longestRequest bounds the time of a request: that of maxCallTimeout by default, in which a server's question may wait for an agent that has
// gone, with some tolerance.
const longestRequest = 11 * time.Minute

// beginUse notes that a request is being served, and returns what notes its end.
func (s *observedService) beginUse(r *serve.Request) (end func()) {
	if r.Modern() || r.Header == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[r.Session]
	if u == nil {
		if s.uses == nil {
			s.uses = map[*serve.Session]*sessionUse{}
		}
		u = &sessionUse{}
		s.uses[r.Session] = u
	}
	if u.running++; u.running == 1 {
		u.began = s.now()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.running--
		u.ended = s.now()
	}
}

// beginMaking notes that a request of a principal is being served, which may become a task. The function that it returns notes that it is not, or that
// the task is known.
func (s *observedService) beginMaking(principal string) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making[principal]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.making[principal]--
	}
}

func (s *observedService) countMaking(principal string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.making[principal]
}

// Closed implements serve.Service.
func (s *observedService) Closed(session *serve.Session) {
	s.mu.Lock()
	delete(s.uses, session)
	s.mu.Unlock()
	s.Service.Closed(session)
}

// countUsed counts the sessions of the legacy era over HTTP that have a request, or had one less than idle ago.
func (s *observedService) countUsed(idle time.Duration) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uses {
		if u.running > 0 && s.now() < u.began+longestRequest || u.running == 0 && s.now() < u.ended+idle {
			n++
		}
	}
	return n
}

// underWay returns how many requests are being served, and how many calls came back to their agents for input since a time.
func (s *observedService) underWay(since time.Duration) (handled, parked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.parked {
		if at >= since {
			parked++
		}
	}
	return s.handled, parked
}

// served is what the service answered.
type served struct {
	result []byte
	err    *serve.Error
}

// Handle implements serve.Service.
func (s *observedService) Handle(ctx context.Context, r *serve.Request) ([]byte, *serve.Error) {
	call := ""
	if r.Method == "tools/call" {
		call, _ = rawjson.Text(rawjson.Member(rawjson.Member(r.Params, "arguments"), "call"))
		call = string([]byte(call)) // the bytes of the request are valid until Handle returns
	}
	s.mu.Lock()
	isForeign := call != "" && (s.callers[call] != r.Session.Principal.Name || rawjson.Member(rawjson.Member(r.Params, "_meta"), againKey) != nil)
	if !isForeign {
		s.begun[call] = true
	}
	s.handled++
	s.mu.Unlock()
	defer s.beginMaking(r.Session.Principal.Name)()
	endUse := s.beginUse(r)
	result, e := s.Service.Handle(ctx, r)
	endUse()
	if e != nil && strings.HasPrefix(e.Message, tooManyTasks) {
		s.noteRefused(r.Session.Principal.Name, s.countMaking(r.Session.Principal.Name))
	}
	s.mu.Lock()
	s.handled--
	if isInputRequired(result) {
		s.parked = append(s.parked, s.now())
	}
	s.mu.Unlock()
	if isForeign {
		return result, e
	}
	if call == "" {
		return result, e
	}
	if isInputRequired(result) {
		s.mu.Lock()
		a := s.orphans[call]
		delete(s.orphans, call)
		delete(s.begun, call)
		s.mu.Unlock()
		if a != nil {
			a.endUnseen(call) // the agent gives no input, and the call waits for it if it was taken back too late
		}
		return result, e
	}
	if isTask(result) {
		s.noteTask(call, r.Session.Principal.Name, result)
	}
	s.mu.Lock()
	delete(s.begun, call)
	a := s.orphans[call]
	delete(s.orphans, call)
	if a == nil {
		s.done[call] = served{result, e}
	}
	s.mu.Unlock()
	if a != nil && isTask(result) {
		a.adoptTask(call, result)
		return result, e
	}
	if a != nil {
		// The endpoint takes back what it cannot answer any more. A call that ended for another reason, such as its time, did so by itself.
		if ctx.Err() != nil && (e != nil || readCall(result).class == messages.ClassCanceled) {
			a.giveUp(call)
			if isStateGone(e) {
				a.endParked(call)
				return result, e
			}
		}
		a.endCall(call, answerOf(result, e))
	}
	return result, e
}

// tooManyTasks begins the text of the error with which the gateway does not let a call become a task.
const tooManyTasks = "too many tasks of this agent run"

// isStateGone reports whether a service knows the state no more with which a request came back. A call that is suspended ends with its agent,
// and one that had just come back finds nothing then.
func isStateGone(e *serve.Error) bool {
	return e != nil && strings.HasPrefix(e.Message, "requestState is not")
}

// disownCall says that the agent of a call has gone: its end is recorded here, now or when it comes.
func (s *observedService) disownCall(call string, a *agent) {
	s.mu.Lock()
	d, ok := s.done[call]
	delete(s.done, call)
	if !ok {
		s.orphans[call] = a
	}
	s.mu.Unlock()
	switch {
	case ok && isTask(d.result):
		a.adoptTask(call, d.result)
	case ok:
		a.endCall(call, answerOf(d.result, d.err))
	}
}

// endUnserved ends a call whose agent has gone, unless it is being served: what the agent has not sent to its end came to nobody.
func (s *observedService) endUnserved(call string, a *agent) {
	s.mu.Lock()
	lost := s.orphans[call] != nil && !s.begun[call]
	if lost {
		delete(s.orphans, call)
	}
	s.mu.Unlock()
	if lost {
		a.endUnsent(call)
	}
}

// noteCaller says whose a call is, before it is made.
func (s *observedService) noteCaller(call, principal string) {
	s.mu.Lock()
	s.callers[call] = principal
	s.mu.Unlock()
}

// forgetCall says that the agent of a call has its answer.
func (s *observedService) forgetCall(call string) {
	s.mu.Lock()
	delete(s.done, call)
	delete(s.orphans, call)
	s.mu.Unlock()
}

func isInputRequired(result []byte) bool {
	return string(rawjson.Member(result, "resultType")) == `"input_required"`
}

// answerOf is what a service answered, as an agent reads it.
func answerOf(result []byte, e *serve.Error) answer {
	if e == nil {
		return answer{result: result}
	}
	if e.Raw != nil {
		return answer{problem: e.Raw}
	}
	b := rawjson.AppendText([]byte(`{"code":`+itoa(e.Code)+`,"message":`), e.Message)
	return answer{problem: append(b, '}')}
}

// takeOrphans returns the calls whose agents have gone, and which never reached the service.
func (s *observedService) takeOrphans() map[string]*agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.orphans
	s.orphans = map[string]*agent{}
	return all
}
