package fault

import (
	"fmt"
	"time"
)

// timeKinds are late, or do not come at all.
func timeKinds() []Kind {
	return []Kind{
		{
			Name: "latency", Does: "messages take longer", Where: everywhere,
			Params: []Param{durationParam("by", "200ms", "how much longer"), jitterParam},
			effect: effect{out: delayOut, in: delayIn, serverMessages: true},
		},
		{
			Name: "slow-start", Does: "the handshake is answered late", On: handshakeMethods, Where: everywhere,
			Params: []Param{durationParam("by", "10s", "how late"), jitterParam},
			effect: effect{in: delayIn},
		},
		{
			Name: "hang-start", Does: "the handshake is never answered", On: handshakeMethods, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		{
			Name: "silent-discover", Does: "server/discover is never answered", On: []string{"server/discover"}, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		{
			Name: "hang-call", Does: "the call reaches the server, and its answer never comes", On: callMethods, Where: everywhere,
			effect: effect{in: dropEffect("the answer is held back for ever")},
		},
		{
			Name: "late-response", Does: "the answer comes after the client has cancelled the request", On: callMethods, Where: everywhere,
			Params: []Param{durationParam("by", "50ms", "how long after")},
			effect: effect{in: func(a *effectContext) string {
				if a.m.call == nil {
					return ""
				}
				if a.m.call.cancelled { // before it was answered
					a.disposition.After += a.rule.values.duration("by")
					return "it comes after the cancellation"
				}
				a.disposition.Drop = true
				if len(a.f.lateAnswers) < maxLate {
					a.f.lateAnswers[a.m.id] = &heldAnswer{a.m.body, a.rule.values.duration("by")}
				}
				return "the answer waits until the request is cancelled"
			}},
		},
		{
			Name: "ignore-cancel", Does: "the server never hears that a request was cancelled", On: []string{"notifications/cancelled"},
			Where: everywhere, effect: effect{out: dropEffect("the cancellation does not arrive")},
		},
		{
			Name: "endless-progress", Does: "a call reports progress for ever, and is never answered", On: callMethods, Where: everywhere,
			Params: []Param{durationParam("every", "1s", "the time between two reports")},
			effect: effect{out: beginProgress, in: dropEffect("the answer is held back for ever")},
		},
		{
			Name: "black-hole", Does: "nothing arrives and nothing is said", Where: everywhere,
			effect: effect{out: dropEffect("it does not arrive"), in: dropEffect("it does not arrive"), serverMessages: true, everyMessage: true},
		},
		{
			Name: "partition", Does: "nothing gets from one to the other; what waited arrives at the end", Where: everywhere,
			effect: effect{out: blockByRule, in: blockByRule, serverMessages: true, everyMessage: true},
		},
		{
			Name: "deaf", Does: "the server stops reading, so that what is written to it backs up", Where: everywhere,
			effect: effect{out: func(a *effectContext) string { a.disposition.Block = a.rule.Name; return "nobody reads" }},
		},
		{
			Name: "half-open", Does: "connections that stand go silent and stay it; new ones work", Where: Program | HTTP, Instant: true,
			Why:    "a pipe has no state of that kind; black-hole is as silent",
			effect: effect{clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: HalfOpen}, "what is open goes silent") }}},
		},
		{
			Name: "slow", Does: "few bytes a second come through", Where: Stdio | HTTP,
			Why:    "inside of a program messages have no bytes that take time",
			Params: []Param{sizeParam("rate", "16k", "bytes a second")},
			effect: effect{serverMessages: true, in: func(a *effectContext) string {
				a.disposition.Chunk, a.disposition.Every = max(a.rule.values.size("rate")/20, 1), 50*time.Millisecond
				return fmt.Sprintf("%d bytes a second", a.disposition.Chunk*20)
			}},
		},
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

// maxLate bounds the answers that wait for a cancellation.
const maxLate = 1024

func blockByRule(a *effectContext) string {
	a.disposition.Block = a.rule.Name
	return "it waits for the end of the partition"
}

func delayOut(a *effectContext) string {
	if a.rule.Direction != ToServer {
		return ""
	}
	return delayIn(a)
}

func delayIn(a *effectContext) string {
	delay := a.drawDelay()
	a.disposition.After += delay
	return fmt.Sprintf("delayed by %v", delay)
}

func beginProgress(a *effectContext) string {
	if a.m.call == nil || len(a.m.token) == 0 {
		return "" // who gave no token may be told of no progress
	}
	interval := max(a.rule.values.duration("every"), time.Millisecond)
	a.f.series = append(a.f.series, &progressSeries{rule: a.rule, call: a.m.call, every: interval, next: time.Now().Add(interval), untilCancelled: true})
	return "progress without an end begins"
}
