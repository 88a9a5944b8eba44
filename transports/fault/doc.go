// Package fault injects faults into a conversation. It wraps any transports.Transport of an embedding program, so
// that a team can rehearse failures in production, and it is the core of the proxy that stands between any agent and
// any server.
//
// In a test, where a rule that never did anything is a failure:
//
//	control := fault.Test(t, fault.Drop(fault.On("tools/call"), fault.Nth(3), fault.Times(1)))
//	cfg.Wrap = func(_ string, _ supervisor.Spec, t transports.Transport) transports.Transport { return fault.Wrap(t, control) }
//
// The words are [Drop], [Delay], [Cut], [Close], [Duplicate], [Hang], [Die] and [Fail], limited by [On], [Tool], [Nth], [Times],
// [Chance], [After] and [For]. All other faults of the catalogue are written as texts, and a word gives the same [Rule] as its
// text. Drop, Cut, Hang and Die make calls whose outcome is unknown.
//
// In production, and for rules of files:
//
//	control, err := fault.New(seed)
//	transport = fault.Wrap(transport, control.Named("github"))
//	…
//	rule, err := fault.Parse("latency by=2s jitter=500ms on=tools/call tool=search chance=0.3 for=10m")
//	name, err := control.Add(rule)
//	…
//	err = control.Remove(name)
//
// # How it fits
//
// A [Control] holds rules and may be changed while conversations run. A [Flow] is one conversation: it matches
// answers with their requests and decides for each message its [Disposition], and for each moment its [Event]s. It
// has no clock of its own but time.Now, no goroutine and no I/O. Two callers perform its decisions: [Wrap] on a
// transport inside of a program, and package test/chaos/proxy on pipes and on HTTP. The command mcpvisor reads rules
// with [Parse] and lists [Kinds]. This package owns the rules, the counts of each rule and the pending requests of
// each flow; it knows nothing of sessions, servers and processes.
//
//	Rule ── Control.Add ──► rule (compiled, with counts)
//	                          │ currentRules
//	message ── Flow.ToServer / ToClient ──► Disposition ──► Wrap or proxy performs it
//	time    ── Flow.Tick ────────────────► Event ───────► Wrap or proxy performs it
//	                          └── Hit ──► Control.Watch
//
// The catalogue ([Kinds]) is the only one: each row holds a fault's name, texts and parameters, and where it can be done, for
// rules and for the scenarios of test/chaos, whose servers behave so themselves. A new fault is a row in the file of its subject
// (calls.go, http.go, lists.go, output.go, process.go, protocol.go, single.go), and one behaviour for each place that the row claims: an effect of the same name in this package for rules, hooks
// in package test/chaos/peer for scenarios. Tests of both packages name a row without its behaviour.
//
// # Guarantees
//
//   - While no rule matches, a message passes as it is: the same bytes, in the same order, at the same time.
//   - With the same seed and the same rules, the same conversation breaks in the same way: the random draws of a
//     rule depend on the seed, the rule's name, the method and tool, and how often they were seen; not on the time,
//     and not on other messages.
//   - A wrapped transport keeps the contract of package transports, with every fault: Down is called exactly once
//     and last, Send never blocks past its context, and its report of the delivery is true. A message that was held
//     back is NotWritten; a request whose answer was held back was Written, and so was one that [Drop] has lost on its way.
//   - The report of a fault (Hit) holds no body and no header.
//
// # Not promised
//
// That a rule finds the method of an answer whose request was sent while there was no rule at all. An answer that a
// rule delays may be overtaken by others, as on a real network of many connections; two that are delayed by the same
// time keep their order. A message that is changed inside is encoded again: its other members keep their bytes, the
// space between them is lost. Inside of a program the part of a message that was cut is one line with the next message, or noise
// at the end, whatever the kind of the wrapped transport.
package fault
