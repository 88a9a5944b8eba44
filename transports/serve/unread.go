package serve

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// This file bounds the answers that wait for an agent to read them. They are in memory already when they come here: one that is too much is
// dropped, and an error takes its place, so that each request has its answer.

// fewUnread are so few bytes that an agent which has no more to read is one that reads.
const fewUnread = 1 << 20

// exceedsUnread reports whether an answer of n bytes is too much for an agent that has not read unread bytes, of which it may leave most. While
// less than half of that waits no answer is too large.
func exceedsUnread(unread, n, most int64) bool { return unread >= most/2 && unread+n > most }

// unreadError is the answer in the place of one that was dropped.
func unreadError(size int, unread int64) *Error {
	return &Error{Code: CodeBusy, Message: fmt.Sprintf("the answer of %d bytes was dropped: %d bytes of answers wait already, and the agent does not "+
		"read them. What was asked may have been done: read the answers, and look at what it would have changed before asking again", size, unread),
		Data: []byte(`{"mcpvisor/outcome":"unknown"}`)}
}

// An Agent is one program that is known to make requests: a connection on lines, or a session over HTTP.
type Agent struct {
	name  string
	once  sync.Once
	state any
}

// agentNames counts the agents of the process.
var agentNames atomic.Int64

func newAgent() *Agent {
	return &Agent{name: "mcpvisor agent " + strconv.FormatInt(agentNames.Add(1), 10)}
}

// Name returns a name that no other agent of the process has.
func (a *Agent) Name() string { return a.name }

// State returns what the service keeps of the agent, which begin makes once.
func (a *Agent) State(begin func() any) any {
	a.once.Do(func() { a.state = begin() })
	return a.state
}

// Agent is the same for all requests that are known to come from one agent. It is nil over HTTP in the modern era, where nothing tells the
// agents of a principal apart.
func (s *Session) Agent() *Agent { return s.agent }

// Holding is what the service holds of a request until its answer is read.
type Holding interface{ Release() }

// AfterAnswer has h released when nothing of the answer is held any more: it is written, or was given up. Only Handle may call it, once.
func (r *Request) AfterAnswer(h Holding) { r.holding = h }

// endHolding releases what AfterAnswer was given.
func (r *Request) endHolding() {
	if r.holding != nil {
		r.holding.Release()
	}
}
