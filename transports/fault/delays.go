package fault

import (
	"fmt"
	"time"
)

// delayEffects are what rules do to delay messages, or to keep them from arriving.
func delayEffects() map[string]effect {
	return map[string]effect{
		// By default the answers are delayed; with direction=server the requests are. Delays of up to the timeout of
		// a call must cost time only; longer ones must end the call with an unknown outcome.
		"latency": {out: delayOut, in: delayIn, serverMessages: true},
		// The handshake takes as long as that of a server that installs its dependencies first.
		"slow-start": {in: delayIn},
		// A client must bound its handshake.
		"hang-start": {in: dropEffect("the answer is held back for ever")},
		// A server of the legacy era that ignores unknown methods: a client must ask initialize after a while.
		"silent-discover": {in: dropEffect("the answer is held back for ever")},
		// The call was executed, so after the client's timeout its outcome is unknown: a client must not call again
		// by itself.
		"hang-call": {in: dropEffect("the answer is held back for ever")},
		// The client has given up the call: its answer must not be taken for that of another request, nor count as an
		// error.
		"late-response": {in: func(a *effectContext) string {
			if a.m.call == nil {
				return ""
			}
			if a.m.call.cancelled { // the server answered after the cancellation had passed
				a.disposition.After += a.rule.values.Duration("by")
				return "it comes after the cancellation"
			}
			a.disposition.Drop = true
			if len(a.f.lateAnswers) < maxLate {
				a.f.lateAnswers[a.m.id] = &heldAnswer{a.m.body, a.rule.values.Duration("by")}
			}
			return "the answer waits until the request is cancelled"
		}},
		"ignore-cancel": {out: dropEffect("the cancellation does not arrive")},
		// Progress restarts the idle timeout of a call, so a client must have a longest time as well. The series goes
		// on after the answer was dropped, until the client cancels.
		"endless-progress": {out: beginProgress, in: dropEffect("the answer is held back for ever")},
		// Every message of both sides is lost for as long as the rule lasts, as on a network without a route. What
		// was lost does not come back.
		"black-hole": {out: dropEffect("it does not arrive"), in: dropEffect("it does not arrive"), serverMessages: true, everyMessage: true},
		// Like black-hole, but the messages wait and arrive when the rule ends, as with a network that retransmits.
		"partition": {out: blockByRule, in: blockByRule, serverMessages: true, everyMessage: true},
		// Only the client's messages wait: its writes block as on a full pipe.
		"deaf": {out: func(a *effectContext) string { a.disposition.Block = a.rule.Name; return "nobody reads" }},
		// A connection through a gateway that has lost its state: no end is signalled, so a client notices only by a
		// ping or a timeout, and then must open a new connection.
		"half-open": {clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: HalfOpen}, "what is open goes silent") }}},
		// A large answer takes minutes, during which the connection is busy but alive: a client must not take it for
		// dead. The rate is kept in 20 steps a second.
		"slow": {serverMessages: true, in: func(a *effectContext) string {
			a.disposition.Chunk, a.disposition.Every = max(a.rule.values.Int("rate")/20, 1), 50*time.Millisecond
			return fmt.Sprintf("%d bytes a second", a.disposition.Chunk*20)
		}},
		// Many small writes: a client must not take one read for one message.
		"slow-drip": {serverMessages: true, in: func(a *effectContext) string {
			a.disposition.Chunk, a.disposition.Every = max(a.rule.values.Int("chunk"), 1), a.rule.values.Duration("every")
			return fmt.Sprintf("%d bytes every %v", a.disposition.Chunk, a.disposition.Every)
		}},
	}
}

// maxLate bounds the answers that wait for a cancellation; further ones are only dropped.
const maxLate = 1024

// blockByRule makes a message wait until its rule is no longer in force.
func blockByRule(a *effectContext) string {
	a.disposition.Block = a.rule.Name
	return "it waits for the end of the partition"
}

// delayOut delays a request if the rule is limited to requests; otherwise delayIn delays the answer, and not both.
func delayOut(a *effectContext) string {
	if a.rule.Direction != ToServer {
		return ""
	}
	return delayIn(a)
}

// delayIn delays a message by a drawn time. Several rules add up.
func delayIn(a *effectContext) string {
	delay := a.drawDelay()
	if delay <= 0 {
		return ""
	}
	a.disposition.After += delay
	return fmt.Sprintf("delayed by %v", delay)
}

// beginProgress begins a series of progress notifications for a call whose client asked for progress.
func beginProgress(a *effectContext) string {
	if a.m.call == nil || len(a.m.token) == 0 {
		return "" // without a token of the client there can be no notification
	}
	interval := max(a.rule.values.Duration("every"), time.Millisecond)
	a.f.series = append(a.f.series, &progressSeries{rule: a.rule, call: a.m.call, every: interval, next: time.Now().Add(interval), untilCancelled: true})
	return "progress without an end begins"
}
