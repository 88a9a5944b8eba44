package supervisor

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The bounds of what is remembered of calls by message that have ended, so that a repeated id does not run again: so many calls,
// for so long each, and so many bytes of answers together.
const (
	rememberedCalls = 4096
	rememberedBytes = 16 << 20
	rememberedTime  = 10 * time.Minute
	// rememberedCost estimates the bytes of one call beside its id and its answer.
	rememberedCost = 256
)

// replyCache remembers the replies of ended calls by their ids. When it is full, the oldest answers go first: a repeated id still
// learns that its call has ended and how, and does not run again. Then, above the bound of number, age, or the bytes of the ids
// alone, the oldest ids go, and such an id would run again. The caller passes the time in; the entry actor owns the cache.
type replyCache struct {
	byID       map[string]*endedCall
	order      []*endedCall // oldest first
	answerless int          // so many of the oldest calls have lost their answers
	bytes      int          // of all calls, by costOf
}

// endedCall is one remembered call.
type endedCall struct {
	reply *messages.CallToolReply // when the reply was added
	at    time.Time               // what the call counts in replyCache.bytes
	bytes int
}

// findReply returns the reply of a call that has ended; nil if the id is not remembered.
func (r *replyCache) findReply(id string, now time.Time) *messages.CallToolReply {
	r.expireOld(now)
	if c := r.byID[id]; c != nil {
		return c.reply
	}
	return nil
}

// addReply remembers a reply whose id is not remembered yet, and makes room for it.
func (r *replyCache) addReply(reply *messages.CallToolReply, now time.Time) {
	if r.byID == nil {
		r.byID = map[string]*endedCall{}
	}
	c := &endedCall{reply: reply, at: now, bytes: costOf(reply)}
	r.byID[reply.GetCallId()], r.order, r.bytes = c, append(r.order, c), r.bytes+c.bytes
	// Answers go from the oldest on; answerless marks how far, so that each answer is taken out once.
	// First the answers go, because the ids alone prevent a second run.
	for ; r.bytes > rememberedBytes && r.answerless < len(r.order); r.answerless++ {
		c := r.order[r.answerless]
		c.reply = withoutAnswer(c.reply)
		r.bytes -= c.bytes
		c.bytes = costOf(c.reply)
		r.bytes += c.bytes
	}
	// Then the oldest ids go, until both bounds hold.
	for len(r.order) > rememberedCalls || r.bytes > rememberedBytes {
		r.dropOldest()
	}
	r.expireOld(now)
}

// expireOld forgets the calls that ended longer than rememberedTime ago.
func (r *replyCache) expireOld(now time.Time) {
	for len(r.order) > 0 && now.Sub(r.order[0].at) >= rememberedTime {
		r.dropOldest()
	}
}

// nextExpiry returns when the oldest call is to be forgotten; zero if none is remembered.
func (r *replyCache) nextExpiry() time.Time {
	if len(r.order) == 0 {
		return time.Time{}
	}
	return r.order[0].at.Add(rememberedTime)
}

// dropOldest forgets the oldest call. The slot is set to nil because the slice's array still refers to it.
func (r *replyCache) dropOldest() {
	oldest := r.order[0]
	delete(r.byID, oldest.reply.GetCallId())
	r.bytes -= oldest.bytes
	r.order[0] = nil
	r.order, r.answerless = r.order[1:], max(r.answerless-1, 0)
}

// costOf returns the bytes that a reply counts for.
func costOf(reply *messages.CallToolReply) int {
	return rememberedCost + len(reply.GetCallId()) + len(reply.GetResult()) + len(reply.GetFailure().GetText()) +
		len(reply.GetFailure().GetData())
}

// withoutAnswer returns the reply that stands for an answer which is not kept any more: it says how the call ended. A reply that
// has no answer (a failure) is small and stays as it is.
func withoutAnswer(reply *messages.CallToolReply) *messages.CallToolReply {
	if len(reply.GetResult()) == 0 {
		return reply
	}
	return callReply(reply.GetCallId(), "", nil, &messages.Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassExhausted,
		Text: "a call with this id has run and ended with " + reply.GetOutcome() + ", and its answer is not kept any more",
		Fix:  "do not take it for one that has not run; to run it again, call with another id"})
}
