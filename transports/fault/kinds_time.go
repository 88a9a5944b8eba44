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
			Params: []Param{duration("by", "200ms", "how much longer"), jitter},
			effect: effect{out: delayOut, in: delayIn, own: true},
		},
		{
			Name: "slow-start", Does: "the handshake is answered late", On: handshakes, Where: everywhere,
			Params: []Param{duration("by", "10s", "how late"), jitter},
			effect: effect{in: delayIn},
		},
		{
			Name: "hang-start", Does: "the handshake is never answered", On: handshakes, Where: everywhere,
			effect: effect{in: dropped("the answer is held back for ever")},
		},
		{
			Name: "silent-discover", Does: "server/discover is never answered", On: []string{"server/discover"}, Where: everywhere,
			effect: effect{in: dropped("the answer is held back for ever")},
		},
		{
			Name: "hang-call", Does: "the call reaches the server, and its answer never comes", On: calls, Where: everywhere,
			effect: effect{in: dropped("the answer is held back for ever")},
		},
		{
			Name: "late-response", Does: "the answer comes after the client has cancelled the request", On: calls, Where: everywhere,
			Params: []Param{duration("by", "50ms", "how long after")},
			effect: effect{in: func(a *act) string {
				if a.m.call == nil {
					return ""
				}
				if a.m.call.cancelled { // before it was answered
					a.fate.After += a.rule.values.duration("by")
					return "it comes after the cancellation"
				}
				a.fate.Drop = true
				if len(a.f.late) < maxLate {
					a.f.late[a.m.id] = &held{a.m.body, a.rule.values.duration("by")}
				}
				return "the answer waits until the request is cancelled"
			}},
		},
		{
			Name: "ignore-cancel", Does: "the server never hears that a request was cancelled", On: []string{"notifications/cancelled"},
			Where: everywhere, effect: effect{out: dropped("the cancellation does not arrive")},
		},
		{
			Name: "endless-progress", Does: "a call reports progress for ever, and is never answered", On: calls, Where: everywhere,
			Params: []Param{duration("every", "1s", "the time between two reports")},
			effect: effect{out: beginProgress, in: dropped("the answer is held back for ever")},
		},
		{
			Name: "black-hole", Does: "nothing arrives and nothing is said", Where: everywhere,
			effect: effect{out: dropped("it does not arrive"), in: dropped("it does not arrive"), own: true, passing: true},
		},
		{
			Name: "partition", Does: "nothing gets from one to the other; what waited arrives at the end", Where: everywhere,
			effect: effect{out: waits, in: waits, own: true, passing: true},
		},
		{
			Name: "deaf", Does: "the server stops reading, so that what is written to it backs up", Where: everywhere,
			effect: effect{out: func(a *act) string { a.fate.Block = a.rule.Name; return "nobody reads" }},
		},
		{
			Name: "half-open", Does: "connections that stand go silent and stay it; new ones work", Where: Program | HTTP, Instant: true,
			Why:    "a pipe has no state of that kind; black-hole is as silent",
			effect: effect{clock: &clock{begin: func(m *moment) { m.happen(Event{Do: HalfOpen}, "what is open goes silent") }}},
		},
		{
			Name: "slow", Does: "few bytes a second come through", Where: Stdio | HTTP,
			Why:    "inside of a program messages have no bytes that take time",
			Params: []Param{size("rate", "16k", "bytes a second")},
			effect: effect{own: true, in: func(a *act) string {
				a.fate.Chunk, a.fate.Every = max(a.rule.values.size("rate")/20, 1), 50*time.Millisecond
				return fmt.Sprintf("%d bytes a second", a.fate.Chunk*20)
			}},
		},
		{
			Name: "slow-drip", Does: "the answer comes in small pieces", Where: Stdio | HTTP,
			Why:    "inside of a program messages have no bytes that take time",
			Params: []Param{size("chunk", "16", "the bytes of a piece"), duration("every", "20ms", "the time between two pieces")},
			effect: effect{own: true, in: func(a *act) string {
				a.fate.Chunk, a.fate.Every = max(a.rule.values.size("chunk"), 1), a.rule.values.duration("every")
				return fmt.Sprintf("%d bytes every %v", a.fate.Chunk, a.fate.Every)
			}},
		},
	}
}

// maxLate bounds the answers that wait for a cancellation.
const maxLate = 1024

func waits(a *act) string { a.fate.Block = a.rule.Name; return "it waits for the end of the partition" }

func delayOut(a *act) string {
	if a.rule.Direction != ToServer {
		return ""
	}
	return delayIn(a)
}

func delayIn(a *act) string {
	by := a.jitter()
	a.fate.After += by
	return fmt.Sprintf("delayed by %v", by)
}

func beginProgress(a *act) string {
	if a.m.call == nil || len(a.m.token) == 0 {
		return "" // who gave no token may be told of no progress
	}
	each := max(a.rule.values.duration("every"), time.Millisecond)
	a.f.series = append(a.f.series, &series{rule: a.rule, call: a.m.call, every: each, next: time.Now().Add(each), withheld: true})
	return "progress without an end begins"
}
