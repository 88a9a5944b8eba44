package fault

import (
	"fmt"
	"time"
)

// timeKinds are the faults that delay messages or keep them from arriving.
func timeKinds() []Kind {
	return []Kind{
		// By default the answers are delayed; with direction=server the requests are. Delays of up to the timeout of
		// a call must cost time only; longer ones must end the call with an unknown outcome.
		{
			Name: "latency", Does: "messages take longer", Where: everywhere,
			Params: []Param{durationParam("by", "200ms", "how much longer"), jitterParam},
			effect: effect{out: delayOut, in: delayIn, serverMessages: true},
		},
		// The handshake takes as long as that of a server that installs its dependencies first.
		{
			Name: "slow-start", Does: "the handshake is answered late", On: handshakeMethods, Where: everywhere,
			Params: []Param{durationParam("by", "10s", "how late"), jitterParam},
			effect: effect{in: delayIn},
		},
		// A client must bound its handshake.
		{
			Name: "hang-start", Does: "the handshake is never answered", On: handshakeMethods, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		// A server of the legacy era that ignores unknown methods: a client must ask initialize after a while.
		{
			Name: "silent-discover", Does: "server/discover is never answered", On: []string{"server/discover"}, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		// The call was executed, so after the client's timeout its outcome is unknown: a client must not call again
		// by itself.
		{
			Name: "hang-call", Does: "the call reaches the server, and its answer never comes", On: callMethods, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		// The client has given up the call: its answer must not be taken for that of another request, nor count as an
		// error.
		{
			Name: "late-response", Does: "the answer comes after the client has cancelled the request", On: callMethods, Where: everywhere,
			Params: []Param{durationParam("by", "50ms", "how long after")},
			effect: effect{in: func(a *effectContext) string {
				if a.m.call == nil {
					return ""
				}
				if a.m.call.cancelled { // the server answered after the cancellation had passed
					a.disposition.After += a.rule.values.duration("by")
					return "it comes after the cancellation"
				}
				a.disposition.Drop = true
				if len(a.f.lateAnswers) < maxLate {
					a.f.lateAnswers[a.m.id] = &heldAnswer{a.m.body, a.rule.values.duration("by")}
				}
				return "the answer waits until the request is cancelled"
			}},
			// The cancellation itself looks sent to the client, and the server works on.
		},
		{
			Name: "ignore-cancel", Does: "the server never hears that a request was cancelled", On: []string{"notifications/cancelled"},
			Where: everywhere, effect: effect{out: dropEffect("the cancellation does not arrive")},
		},
		// Progress restarts the idle timeout of a call, so a client must have a longest time as well. The series goes
		// on after the answer was dropped, until the client cancels.
		{
			Name: "endless-progress", Does: "a call reports progress for ever, and is never answered", On: callMethods, Where: everywhere,
			Params: []Param{durationParam("every", "1s", "the time between two reports")},
			effect: effect{out: beginProgress, in: dropEffect("the answer is held back for ever")},
		},
		// Every message of both sides is lost for as long as the rule lasts, as on a network without a route. What
		// was lost does not come back.
		{
			Name: "black-hole", Does: "nothing arrives and nothing is said", Where: everywhere,
			effect: effect{out: dropEffect("it does not arrive"), in: dropEffect("it does not arrive"), serverMessages: true, everyMessage: true},
		},
		// Like black-hole, but the messages wait and arrive when the rule ends, as with a network that retransmits.
		{
			Name: "partition", Does: "nothing gets from one to the other; what waited arrives at the end", Where: everywhere,
			effect: effect{out: blockByRule, in: blockByRule, serverMessages: true, everyMessage: true},
		},
		// Only the client's messages wait: its writes block as on a full pipe.
		{
			Name: "deaf", Does: "the server stops reading, so that what is written to it backs up", Where: everywhere,
			effect: effect{out: func(a *effectContext) string { a.disposition.Block = a.rule.Name; return "nobody reads" }},
		},
		// A connection through a gateway that has lost its state: no end is signalled, so a client notices only by a
		// ping or a timeout, and then must open a new connection.
		{
			Name: "half-open", Does: "connections that stand go silent and stay it; new ones work", Where: Program | HTTP, Instant: true,
			Why:    "a pipe has no state of that kind; black-hole is as silent",
			effect: effect{clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: HalfOpen}, "what is open goes silent") }}},
		},
		// A large answer takes minutes, during which the connection is busy but alive: a client must not take it for
		// dead. The rate is kept in 20 steps a second.
		{
			Name: "slow", Does: "few bytes a second come through", Where: Stdio | HTTP,
			Why:    "inside of a program messages have no bytes that take time",
			Params: []Param{sizeParam("rate", "16k", "bytes a second")},
			effect: effect{serverMessages: true, in: func(a *effectContext) string {
				a.disposition.Chunk, a.disposition.Every = max(a.rule.values.size("rate")/20, 1), 50*time.Millisecond
				return fmt.Sprintf("%d bytes a second", a.disposition.Chunk*20)
			}},
		},
		// Many small writes: a client must not take one read for one message.
		{
			Name: "slow-drip", Does: "the answer comes in small pieces", Where: Stdio | HTTP,
			Why:    "inside of a program messages have no bytes that take time",
			Params: []Param{sizeParam("chunk", "16", "the bytes of a piece"), durationParam("every", "20ms", "the time between two pieces")},
			effect: effect{serverMessages: true, in: func(a *effectContext) string {
				a.disposition.Chunk, a.disposition.Every = max(a.rule.values.size("chunk"), 1), a.rule.values.duration("every")
				return fmt.Sprintf("%d bytes every %v", a.disposition.Chunk, a.disposition.Every)
			}},
		},
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
	a.disposition.After += delay
	return fmt.Sprintf("delayed by %v", delay)
}

// beginProgress begins a series of progress notifications for a call whose client asked for progress.
func beginProgress(a *effectContext) string {
	if a.m.call == nil || len(a.m.token) == 0 {
		return "" // without a token of the client there can be no notification
	}
	interval := max(a.rule.values.duration("every"), time.Millisecond)
	a.f.series = append(a.f.series, &progressSeries{rule: a.rule, call: a.m.call, every: interval, next: time.Now().Add(interval), untilCancelled: true})
	return "progress without an end begins"
}
