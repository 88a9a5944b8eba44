package fault

import "time"

// deathKinds are the faults that end the server's side, and those that keep it from ending.
func deathKinds() []Kind {
	// The slices share their parameters; exit[:2:2] below makes append copy them.
	exit := []Param{numberParam("code", "1", "the exit code of a process"), textParam("signal", "", "the signal that it dies of instead: KILL, SEGV …")}
	quiet := []Param{numberParam("code", "0", "the exit code of a process"), exit[1]}
	return []Kind{
		// The plain case of a restart. With a message the end comes before the message arrives, so the call was not
		// executed; with midcall=yes the first call after the instant has arrived.
		{
			Name: "crash", Does: "the server ends; on a message if the rule names one, before it arrives", Instant: true, Where: everywhere,
			Params: append(exit[:2:2], boolParam("midcall", "no", "end while the first call is under way")),
			effect: effect{
				out: func(a *effectContext) string { a.disposition.End = a.rule.serverEnd(); return "the server ends" },
				clock: &clockEffect{begin: func(m *clockContext) {
					if m.r.values.isTrue("midcall") {
						m.f.endOnCall = m.r
						return
					}
					m.emitEvent(Event{Do: Ending, End: m.r.serverEnd()}, "the server ends")
				}},
			},
		},
		// A supervisor must space its restarts and give up at some point. The period begins with the window, and the
		// flow of Wrap with the connection: so each connection lives for "after".
		{
			Name: crashLoop, Does: "the server ends some time after each start", Where: everywhere,
			Params: append(exit[:2:2], durationParam("after", "1s", "how long it lives")),
			effect: effect{clock: &clockEffect{
				period:   func(v values) time.Duration { return max(v.duration("after"), time.Millisecond) },
				onPeriod: func(m *clockContext) { m.emitEvent(Event{Do: Ending, End: m.r.serverEnd()}, "the server ends") },
			}},
		},
		{
			// A server that is done after it has listed its tools: a client keeps tools whose calls all fail. Only
			// the last page ends it, so the list is complete.
			Name: "exit-after-list", Does: "the server ends when it has listed its tools", On: toolListMethods, Where: everywhere, Params: quiet,
			effect: effect{in: func(a *effectContext) string {
				if memberValue(readObject(memberValue(readObject(a.m.body), "result")), "nextCursor") != nil {
					return "" // not the last page
				}
				a.disposition.End, a.disposition.Last = a.rule.serverEnd(), true
				return "the server ends after it"
			}},
		},
		// Some servers of the legacy era end when they get a method that they do not know; a client must then try
		// initialize on a new connection.
		{
			Name: "die-on-discover", Does: "the server ends when it is asked for its era", On: []string{"server/discover"}, Where: everywhere,
			Params: exit, effect: effect{out: func(a *effectContext) string { a.disposition.End = a.rule.serverEnd(); return "the server ends" }},
		},
		// The hardest case for a client: the call was executed, and its outcome is unknown.
		{
			Name: "die-mid-call", Does: "the call is executed, and the server ends without an answer", On: callMethods, Where: everywhere,
			Params: exit, effect: effect{in: func(a *effectContext) string {
				a.disposition.Drop, a.disposition.End = true, a.rule.serverEnd()
				return "it was executed, and the server ends"
			}},
		},
		// Servers that serve one call per process. The end follows the answer, so the outcome of the call is known,
		// and the next call meets a dead server.
		{
			Name: "answer-and-die", Does: "the server answers and ends", On: callMethods, Where: everywhere, Params: quiet,
			effect: effect{in: func(a *effectContext) string {
				a.disposition.End, a.disposition.Last = a.rule.serverEnd(), true
				return "the server ends after it"
			}},
		},
		// By default the request is reset; with direction=client the answer is, after the call was executed.
		{
			Name: "reset", Does: "the connection is reset; on a message if the rule names one", Instant: true, Where: Program | HTTP,
			Why: "a pipe cannot be reset; crash ends it",
			effect: effect{
				out: func(a *effectContext) string {
					if a.rule.Direction == ToClient {
						return ""
					}
					a.disposition.End = &End{Reset: true}
					return "the connection is reset"
				},
				in: func(a *effectContext) string {
					if a.rule.Direction != ToClient {
						return ""
					}
					a.disposition.Drop, a.disposition.End = true, &End{Reset: true}
					return "the connection is reset in the place of the answer"
				},
				clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: Ending, End: &End{Reset: true}}, "connections are reset") }},
			},
		},
		// A stopped process keeps its pipes open and answers nothing, so only a timeout or a ping shows it. The end
		// of the window, or the removal of the rule, lets it go on.
		{
			Name: "stop", Does: "the server's process is stopped (SIGSTOP) while the rule lasts", Where: Stdio,
			Why: "only the process of a server can be stopped, and here there is none of ours; black-hole is as silent",
			effect: effect{clock: &clockEffect{
				begin: func(m *clockContext) { m.emitEvent(Event{Do: Stop}, "the process is stopped") },
				end:   func(m *clockContext) { m.emitEvent(Event{Do: Continue}, "the process goes on") },
			}},
		},
		// ignore-eof and ignore-term have no effect here: the proxy asks Flow.FaultActive when it ends its server.
		{
			Name: "ignore-eof", Does: "the server does not end when its input does", Where: Stdio, Why: "only a process has an input that ends",
		},
		{
			Name: "ignore-term", Does: "the server does not end on SIGTERM", Where: Stdio, Why: "only a process is sent signals",
		},
		// The faults of a start act on "dial" and fail it with an error of a class of its own. Body tells
		// applyDialFaults which.
		{
			Name: "missing-binary", Does: "the server's program is not there", Where: Program, On: []string{"dial"},
			Why: "the server has been started when a rule counts; give a command that does not exist",
			effect: effect{out: func(a *effectContext) string {
				a.disposition.Refuse = &Refusal{Body: "missing"}
				return "there is no program"
			}},
		},
		{
			Name: "exhausted", Does: "starts fail as if the machine had no descriptors left", Where: Program, On: []string{"dial"},
			Why: "the server has been started when a rule counts",
			effect: effect{out: func(a *effectContext) string {
				a.disposition.Refuse = &Refusal{Body: "exhausted"}
				return "nothing can be started"
			}},
		},
	}
}

// serverEnd returns the end that a rule's parameters code and signal describe.
func (r *rule) serverEnd() *End {
	return &End{Code: int(r.values.number("code")), Signal: r.values.text("signal")}
}
