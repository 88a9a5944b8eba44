package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// belonging says which request of ours a request of the server belongs to. A question of the server is answered with the
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
type belonging struct {
	// values is the context whose values the answer is asked with; nil if no caller is known.
	values context.Context
	// flight is the request whose end takes the question back, 0 for none; task is the same for a task.
	flight int64
	task   *following
	// patience stands still while the question is open; nil for none.
	patience *Patience
}

// errCallEnded takes a question back whose call has ended.
var errCallEnded = errors.New("the call that the question belongs to has ended")

const (
	// lingering is how long a request counts as unanswered that was given up: the longest time of a call by default.
	lingering = 10 * time.Minute
	// maxLingering bounds how many are remembered one by one.
	maxLingering = 64
)

// leftover is a request that its caller gave up and the server has not answered.
type leftover struct {
	id     int64
	caller *messages.Answerer
	until  moment
}

// asking reports whether a server may ask questions while it works on such a request of ours.
func asking(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "completion/complete", "tasks/result":
		return true
	}
	return false
}

// belongs finds the request that a request of the server belongs to. on is the id of the request on whose stream it
// came, 0 if that is not known. The caller holds mu.
func (s *Session) belongs(on int64, params []byte) belonging {
	if f := s.pending[on]; f != nil && f.ctx != nil {
		return belonging{values: f.ctx, flight: on, patience: f.patience}
	}
	if id, _ := rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(params, "_meta"), relatedTask), "taskId")); id != "" {
		for f := range s.follows {
			if f.id == id && f.ctx != nil {
				return belonging{values: f.ctx, task: f, patience: f.patience}
			}
		}
	}
	return s.onlyCaller()
}

// onlyCaller is the request that a question belongs to if every unanswered one is the same caller's. The clocks of
// several requests are begun anew once for a question of which nobody knows whose it is: each call then lasts at most
// one call timeout longer. The caller holds mu.
func (s *Session) onlyCaller() (b belonging) {
	var one *messages.Answerer
	n, mixed := 0, false
	count := func(ctx context.Context, found belonging) {
		if n == 1 && found.patience != nil && found.patience == b.patience {
			return // the request by which a task's result is waited for
		}
		caller := messages.AnswererOf(ctx)
		mixed = mixed || n > 0 && caller != one
		one, b = caller, found
		n++
	}
	for id, f := range s.pending {
		if f.ctx != nil {
			count(f.ctx, belonging{values: f.ctx, flight: id, patience: f.patience})
		}
	}
	for f := range s.follows {
		if f.ctx != nil && f.id != "" {
			count(f.ctx, belonging{values: f.ctx, task: f, patience: f.patience})
		}
	}
	if n == 0 {
		return belonging{}
	}
	now := now()
	for _, l := range s.leftovers {
		mixed = mixed || l.until > now && l.caller != one
	}
	if n == 1 && !mixed {
		return b
	}
	for _, f := range s.pending {
		if f.ctx != nil {
			f.patience.extend()
		}
	}
	for f := range s.follows {
		f.patience.extend()
	}
	if mixed {
		return belonging{}
	}
	return belonging{values: messages.WithAnswerer(context.Background(), one)}
}

// leaves remembers a request that was given up. It is forgotten when its answer comes after all.
func (s *Session) leaves(ctx context.Context, id int64) {
	caller, now := messages.AnswererOf(ctx), now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return
	}
	kept := s.leftovers[:0]
	for _, l := range s.leftovers {
		if l.until > now {
			kept = append(kept, l)
		}
	}
	s.leftovers = append(kept, leftover{id, caller, now + moment(lingering)})
	if n := len(s.leftovers); n > maxLingering { // the oldest two become one, which no caller's question outlives
		s.leftovers[1].id = 0
		if s.leftovers[0].caller != s.leftovers[1].caller {
			s.leftovers[1].caller = new(messages.Answerer)
		}
		s.leftovers = append(s.leftovers[:0], s.leftovers[1:]...)
	}
}

// answeredLate forgets a request that was given up. The caller holds mu.
func (s *Session) answeredLate(id int64) {
	for i, l := range s.leftovers {
		if l.id == id && id != 0 {
			s.leftovers = append(s.leftovers[:i], s.leftovers[i+1:]...)
			return
		}
	}
}

// serves is a request of the server that is being answered.
type serves struct {
	belonging
	cancel context.CancelCauseFunc
}

// takeBack ends the questions that belong to a request, or to a task, that has ended. The caller holds mu, and calls the
// result without it.
func (s *Session) takeBack(flight int64, task *following) (end func()) {
	var cancels []context.CancelCauseFunc
	for _, q := range s.asks {
		if flight != 0 && q.flight == flight || task != nil && q.task == task {
			cancels = append(cancels, q.cancel)
		}
	}
	return func() {
		for _, cancel := range cancels {
			cancel(errCallEnded)
		}
	}
}

// still stops the clock of one request until the result is called, or ctx ends.
func (s *Session) still(ctx context.Context, p *Patience) (goOn func()) {
	if p == nil {
		return func() {}
	}
	p.pause()
	once := sync.OnceFunc(func() { s.goesOn(p) })
	forget := context.AfterFunc(ctx, once)
	return func() {
		forget()
		once()
	}
}

// carrying is a context with the values of another one.
type carrying struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (c carrying) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
