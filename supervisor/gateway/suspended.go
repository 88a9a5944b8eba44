package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// answerTime is the time in which an agent may answer the questions of a suspended call. Then the call is cancelled at its server.
	answerTime = 5 * time.Minute
	// gatherTime is how long the first question of a round waits for others: a server may ask several at once, and the agent gets them
	// in one result.
	gatherTime = 25 * time.Millisecond
	// maxSuspendedOf and maxSuspended bound the calls that have asked, of one principal and of all. The question of one more is
	// refused, and its server decides what that means.
	maxSuspendedOf, maxSuspended = 64, 1024
	// maxRemembered bounds the suspended calls of which it is remembered how they ended.
	maxRemembered = 4096
)

var (
	errNotAnswered = errors.New("the agent did not answer the questions of the server in time")
	errAgentLeft   = errors.New("the agent has closed its request, or has left")
	errForbidden   = errors.New("the agent may not call this any more")
	errInputEnded  = notAsked("the agent has ended its input, and cannot answer any more")
)

// suspendedCalls are the calls of a gateway that have asked their agents. mu guards everything; it is taken before that of a call.
type suspendedCalls struct {
	mu   sync.Mutex
	byID map[string]*modernCall
	// count has the calls of each principal.
	count map[string]int
	// ended says how calls have ended, by their ids, the oldest first in order.
	ended map[string]string
	order []string
}

// reserve gives a call a place among the suspended ones, once; false if there is none.
func (t *suspendedCalls) reserve(c *modernCall) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.id != "":
		return true
	case c.stage == over || len(t.byID) >= maxSuspended || t.count[c.agents.principal] >= maxSuspendedOf || !c.keepArguments():
		return false
	}
	if t.byID == nil {
		t.byID, t.count, t.ended = map[string]*modernCall{}, map[string]int{}, map[string]string{}
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	c.id = string(id)
	t.byID[c.id] = c
	t.count[c.agents.principal]++
	return true
}

// release frees the place of a call that is over, and remembers how it ended.
func (t *suspendedCalls) release(c *modernCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.mu.Lock()
	how := c.how
	c.mu.Unlock()
	if t.byID[c.id] != c {
		return
	}
	delete(t.byID, c.id)
	if t.count[c.agents.principal]--; t.count[c.agents.principal] == 0 {
		delete(t.count, c.agents.principal)
	}
	if len(t.order) >= maxRemembered {
		delete(t.ended, t.order[0])
		t.order = t.order[1:]
	}
	t.ended[c.id], t.order = how, append(t.order, c.id)
}

// find returns a suspended call, or how it has ended.
func (t *suspendedCalls) find(id string) (c *modernCall, how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c = t.byID[id]; c != nil {
		return c, ""
	}
	if how = t.ended[id]; how == "" {
		how = "the call has ended, and how is not remembered any more: look at what it would have changed before calling again"
	}
	return nil, how
}

// How a suspended call ends, for a request that comes too late.
const (
	endedAnswered = "the call has ended, and its result was given"
	endedTask     = "the call has become a task, whose id was given: ask tasks/get for it"
	endedLeft     = "the call was cancelled, because the request that waited for it was closed. " +
		"It may have run: look at what it would have changed before calling again"
	endedAlone = "the call was cancelled, because the token of its agent was taken away. " +
		"It may have run: look at what it would have changed before calling again"
	endedForbidden = "the call was cancelled, because it may not be called any more. " +
		"It may have run: look at what it would have changed"
)

var endedExpired = fmt.Sprintf("the call was cancelled, because its questions were not answered in %v. "+
	"It may have run: look at what it would have changed before calling again", answerTime)

// suspend answers the request that waits for a call with the questions about it; nil if there are none. An agent that has ended its input
// cannot answer any more: its server is told so at once, for otherwise the call would keep it busy for the whole answerTime.
func (g *Gateway) suspend(r *serve.Request, c *modernCall) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hasClosed(r) {
		c.refuseQuestions(errInputEnded)
		return nil
	}
	questions := c.askAgent()
	if questions == nil {
		return nil
	}
	c.request = nil
	round := c.round
	c.expiry = time.AfterFunc(answerTime, func() { g.expireCall(c, round, endedExpired, errNotAnswered) })
	c.unbind = r.Session.Principal.AfterEnd(func() { g.expireCall(c, round, endedAlone, errAgentLeft) })
	b := appendQuestions([]byte(`{"resultType":"input_required","inputRequests":`), questions)
	b = append(b, `,"requestState":`...)
	b = rawjson.AppendText(b, g.sealHandle(r, c, round))
	return append(b, '}')
}

// appendQuestions appends the object that an agent gets of questions.
func appendQuestions(b []byte, questions []question) []byte {
	b = append(b, '{')
	for i, q := range questions {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendText(append(rawjson.AppendText(b, q.id), `:{"method":`...), q.method)
		b = append(append(append(b, `,"params":`...), q.params...), '}')
	}
	return append(b, '}')
}

// readResponses reads the answers of an agent. They are copies: the server gets them after the request may have ended.
func readResponses(responses []byte) (map[string][]byte, *serve.Error) {
	answers := map[string][]byte{}
	for o := rawjson.ObjectAt(responses, 0, 0); o.Next(); {
		value := o.Skip()
		if !rawjson.IsObject(value) {
			return nil, serve.InvalidParams("the answer to " + messages.Line(string(o.Name), 60) + " must be an object")
		}
		answers[string(o.Name)] = bytes.Clone(value)
	}
	return answers, nil
}

// hasClosed reports whether the endpoint of a request takes nothing more.
func hasClosed(r *serve.Request) bool {
	select {
	case <-r.Closing():
		return true
	default:
		return false
	}
}

// refuseQuestions gives all open questions an error. The caller holds mu.
func (c *modernCall) refuseQuestions(err error) {
	for id, answer := range c.answers {
		answer <- agentAnswer{err: err}
		delete(c.answers, id)
	}
	c.open = nil
}

// expireCall ends a call whose questions of a round were not answered, or cannot be any more. It reports false if they have been answered, or
// the call is over.
func (g *Gateway) expireCall(c *modernCall, round uint64, how string, cause error) (expired bool) {
	c.mu.Lock()
	expired = c.expire(round)
	if expired {
		c.expiry.Stop()
		c.closeCall(how)
	}
	c.mu.Unlock()
	if expired {
		c.cancel(cause)
		g.suspended.release(c)
		g.tasks.dropTask(c.task)
	}
	return expired
}

// forbidCall ends the suspended call to which a request comes back that is refused: its server has got it already, so that it may have run. It
// returns the error of the request; nil if it comes back to no such call.
func (g *Gateway) forbidCall(q *outgoing) *serve.Error {
	if q.state == nil {
		return nil
	}
	id, round, ok := g.openHandle(q)
	if !ok {
		return nil
	}
	c, how := g.suspended.find(id)
	switch {
	case c == nil:
		return goneCall(how)
	case g.expireCall(c, round, endedForbidden, errForbidden):
		return goneCall(endedForbidden)
	}
	return usedState()
}

// resumeCall hands the answers of an agent to the call that waits for them, and waits for the call itself.
//
// 2026-07-28, Multi Round-Trip Requests: the state comes from the client, so it is "attacker-controlled input"; one that is not good is
// an error, and starts no call.
func (g *Gateway) resumeCall(ctx context.Context, r *serve.Request, id string, round uint64, responses []byte) ([]byte, *serve.Error) {
	if responses != nil && !rawjson.IsObject(responses) {
		return nil, serve.InvalidParams("inputResponses must be an object")
	}
	var answers map[string][]byte
	if responses != nil {
		var e *serve.Error
		if answers, e = readResponses(responses); e != nil {
			return nil, e
		}
	}
	c, how := g.suspended.find(id)
	if c == nil {
		return nil, goneCall(how)
	}
	c.mu.Lock()
	answered, verdict := c.takeAnswers(round, func(id string) bool { return answers[id] != nil })
	how = c.how
	if verdict == resumed {
		c.expiry.Stop()
		c.unbind()
		c.setRequest(r)
		c.capabilities = bytes.Clone(r.Capabilities)
		for _, q := range answered {
			c.answers[q.id] <- agentAnswer{result: answers[q.id]}
			delete(c.answers, q.id)
		}
		c.wakeUp()
	}
	c.mu.Unlock()
	switch verdict {
	case used:
		return nil, usedState()
	case gone:
		return nil, goneCall(how)
	default:
	}
	return g.awaitCall(ctx, r, c)
}

// usedState is the error of a request with a state that was used before.
func usedState() *serve.Error {
	return serve.InvalidParams("requestState was used already: each is good for one answer")
}

// goneCall is the error of a request for a call that is over. Its data says what is known of the outcome.
func goneCall(how string) *serve.Error {
	e := serve.InvalidParams(how)
	if how != endedAnswered && how != endedTask {
		e.Data = unknownOutcome()
	}
	return e
}

// unknownOutcome is the data of an error about a call that may have run.
func unknownOutcome() []byte {
	return append(rawjson.AppendText([]byte(`{"mcpvisor/outcome":`), string(messages.OutcomeUnknown)), '}')
}

// awaitCall waits until a call has ended, or asks.
func (g *Gateway) awaitCall(ctx context.Context, r *serve.Request, c *modernCall) ([]byte, *serve.Error) {
	for {
		select {
		case <-c.done:
		case <-c.tasked:
			return g.handOver(r, c), nil
		case <-c.wake:
			select {
			case <-time.After(gatherTime):
			case <-c.done:
			case <-ctx.Done():
			}
			if ctx.Err() == nil {
				if b := g.suspend(r, c); b != nil {
					return b, nil
				}
			}
			continue
		case <-ctx.Done():
			// 2026-07-28: "closing the SSE response stream is itself the cancellation signal".
			c.mu.Lock()
			left := c.leave()
			if left {
				c.closeCall(endedLeft)
			}
			c.mu.Unlock()
			if left {
				c.cancel(errAgentLeft)
				g.suspended.release(c)
			}
			<-c.done
			g.tasks.dropTask(c.task)
			return c.result, c.problem
		}
		if c.task != nil {
			return g.handOver(r, c), nil
		}
		c.mu.Lock()
		c.takeResult()
		c.closeCall(endedAnswered)
		c.mu.Unlock()
		g.suspended.release(c)
		return c.result, c.problem
	}
}

// closeSuspended stops the clocks of all suspended calls; the calls end with the lifetime of the gateway.
func (t *suspendedCalls) closeSuspended() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.byID {
		c.mu.Lock()
		if c.expiry != nil {
			c.expiry.Stop()
			c.unbind()
		}
		c.mu.Unlock()
	}
}
