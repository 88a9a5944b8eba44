package fault

import "time"

// deathEffects are what rules do to end the server's side, and to keep it from ending or starting.
func deathEffects() map[string]effect {
	return map[string]effect{
		// The plain case of a restart. With a message the end comes before the message arrives, so the call was not
		// executed; with midcall=yes the first call after the instant has arrived.
		"crash": {
			out: func(a *effectContext) string { a.disposition.End = a.rule.serverEnd(); return "the server ends" },
			clock: &clockEffect{begin: func(m *clockContext) {
				if m.r.values.Bool("midcall") {
					m.f.endOnCall = m.r
					return
				}
				m.emitEvent(Event{Do: Ending, End: m.r.serverEnd()}, "the server ends")
			}},
		},
		// A supervisor must space its restarts and give up at some point. The period begins with the window, and the
		// flow of Wrap with the connection: so each connection lives for "after".
		crashLoop: {clock: &clockEffect{
			period:   func(v Values) time.Duration { return max(v.Duration("after"), time.Millisecond) },
			onPeriod: func(m *clockContext) { m.emitEvent(Event{Do: Ending, End: m.r.serverEnd()}, "the server ends") },
		}},
		// A server that is done after it has listed its tools: a client keeps tools whose calls all fail. Only
		// the last page ends it, so the list is complete.
		"exit-after-list": {in: func(a *effectContext) string {
			if memberValue(readObject(memberValue(readObject(a.m.body), "result")), "nextCursor") != nil {
				return "" // not the last page
			}
			a.disposition.End, a.disposition.Last = a.rule.serverEnd(), true
			return "the server ends after it"
		}},
		// Some servers of the legacy era end when they get a method that they do not know; a client must then try
		// initialize on a new connection.
		"die-on-discover": {out: func(a *effectContext) string { a.disposition.End = a.rule.serverEnd(); return "the server ends" }},
		// The hardest case for a client: the call was executed, and its outcome is unknown.
		"die-mid-call": {in: func(a *effectContext) string {
			a.disposition.Drop, a.disposition.End = true, a.rule.serverEnd()
			return "it was executed, and the server ends"
		}},
		// Servers that serve one call per process. The end follows the answer, so the outcome of the call is known,
		// and the next call meets a dead server.
		"answer-and-die": {in: func(a *effectContext) string {
			a.disposition.End, a.disposition.Last = a.rule.serverEnd(), true
			return "the server ends after it"
		}},
		// By default the request is reset; with direction=client the answer is, after the call was executed.
		"reset": {
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
		// A stopped process keeps its pipes open and answers nothing, so only a timeout or a ping shows it. The end
		// of the window, or the removal of the rule, lets it go on.
		"stop": {clock: &clockEffect{
			begin: func(m *clockContext) { m.emitEvent(Event{Do: Stop}, "the process is stopped") },
			end:   func(m *clockContext) { m.emitEvent(Event{Do: Continue}, "the process goes on") },
		}},
		// The proxy asks for these two when it ends its server.
		"ignore-eof":  {byProxy: true},
		"ignore-term": {byProxy: true},
		// The faults of a start act on "dial" and fail it with an error of a class of its own. Body tells
		// applyDialFaults which.
		"missing-binary": {out: func(a *effectContext) string {
			a.disposition.Refuse = &Refusal{Body: a.rule.values.Text("what")}
			return "there is no program"
		}},
		"exhausted": {out: func(a *effectContext) string {
			a.disposition.Refuse = &Refusal{Body: "exhausted"}
			return "nothing can be started"
		}},
	}
}

// serverEnd returns the end that a rule's parameters code and signal describe.
func (r *rule) serverEnd() *End {
	return &End{Code: r.values.Int("code"), Signal: r.values.Text("signal")}
}
