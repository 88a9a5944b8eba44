package supervisor

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// What is remembered of calls by message that have ended, so that a repeated id does not run again: of at most rememberedCalls
// of them, for rememberedTime each, and their answers in at most rememberedBytes together.
const (
	rememberedCalls = 4096
	rememberedBytes = 16 << 20
	rememberedTime  = 10 * time.Minute
	// rememberedCost is what one of them takes beside its id and its answer, about.
	rememberedCost = 256
)

// replyCache are the replies of calls that have ended, by their ids. What is too much goes as follows: first the answers, the
// oldest first, so that an id that is repeated is told that its call has ended and how, and does not run again; then, for
// their number, their age, or the room that the ids alone take, the oldest ids. Time is passed in.
type replyCache struct {
	byID       map[string]*endedCall
	order      []*endedCall // oldest first
	answerless int          // so many of the oldest have lost their answers
	bytes      int
}

type endedCall struct {
	reply *messages.CallToolReply
	at    time.Time
	bytes int
}

// findReply is how a call ended; nil if nothing is remembered of it.
func (r *replyCache) findReply(id string, now time.Time) *messages.CallToolReply {
	r.expireOld(now)
	if c := r.byID[id]; c != nil {
		return c.reply
	}
	return nil
}

// addReply remembers a reply whose id is not remembered yet.
func (r *replyCache) addReply(reply *messages.CallToolReply, now time.Time) {
	if r.byID == nil {
		r.byID = map[string]*endedCall{}
	}
	c := &endedCall{reply: reply, at: now, bytes: costOf(reply)}
	r.byID[reply.GetCallId()], r.order, r.bytes = c, append(r.order, c), r.bytes+c.bytes
	for ; r.bytes > rememberedBytes && r.answerless < len(r.order); r.answerless++ {
		c := r.order[r.answerless]
		c.reply = withoutAnswer(c.reply)
		r.bytes -= c.bytes
		c.bytes = costOf(c.reply)
		r.bytes += c.bytes
	}
	for len(r.order) > rememberedCalls || r.bytes > rememberedBytes {
		r.dropOldest()
	}
	r.expireOld(now)
}

// expireOld forgets what is old.
func (r *replyCache) expireOld(now time.Time) {
	for len(r.order) > 0 && now.Sub(r.order[0].at) >= rememberedTime {
		r.dropOldest()
	}
}

// nextExpiry is when the oldest is to be forgotten; zero if nothing is remembered.
func (r *replyCache) nextExpiry() time.Time {
	if len(r.order) == 0 {
		return time.Time{}
	}
	return r.order[0].at.Add(rememberedTime)
}

func (r *replyCache) dropOldest() {
	oldest := r.order[0]
	delete(r.byID, oldest.reply.GetCallId())
	r.bytes -= oldest.bytes
	r.order[0] = nil
	r.order, r.answerless = r.order[1:], max(r.answerless-1, 0)
}

func costOf(reply *messages.CallToolReply) int {
	return rememberedCost + len(reply.GetCallId()) + len(reply.GetResult()) + len(reply.GetFailure().GetText()) +
		len(reply.GetFailure().GetData())
}

// withoutAnswer says how a call ended whose answer is not kept any more. A reply without an answer says it as it is.
func withoutAnswer(reply *messages.CallToolReply) *messages.CallToolReply {
	if len(reply.GetResult()) == 0 {
		return reply
	}
	return callReply(reply.GetCallId(), nil, &Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted,
		Text: "a call with this id has run and ended with " + reply.GetOutcome() + ", and its answer is not kept any more",
		Fix:  "do not take it for one that has not run; to run it again, call with another id"})
}
