package fault

// messageKinds are the faults of a single message, which only a rule does: by the words that people look for first.
func messageKinds() []Kind {
	const behave = "a server that behaves so has hang-call, half-line, truncate or crash"
	return []Kind{
		{
			Name: "drop", Reports: []string{"H11"}, Where: rules, Why: behave,
			Does: "an answer is lost, or with direction=server a request, and whoever sent it believes that it has arrived",
		},
		{
			Name: "cut", Reports: []string{"H11", "P8"}, Where: rules, On: callMethods, Why: behave,
			Does: "half of an answer arrives, and what carries it ends behind it",
		},
		{
			Name: "close", Reports: []string{"P12"}, Where: rules, Instant: rules, Why: behave,
			Does: "the server's side is closed: before a message if the rule names one, with direction=client in the place of an answer",
		},
	}
}

// messageEffects are what rules do to a single message.
func messageEffects() map[string]effect {
	return map[string]effect{
		// The sender has no way to know of the loss, so that the outcome of a call is unknown when its time is over.
		"drop": {
			out: func(a *effectContext) string {
				if a.rule.Direction != ToServer {
					return ""
				}
				a.disposition.Drop, a.disposition.Lost = true, true
				return "it is lost on its way"
			},
			in: dropEffect("it is lost on its way back"), serverMessages: true,
		},
		// The call was executed, and no client can use what it has of the answer.
		"cut": {in: func(a *effectContext) string {
			a.disposition.Torn, a.disposition.Cut, a.disposition.End, a.disposition.Last = true, len(a.m.body)/2, &End{Reset: true}, true
			return "half of it arrives, and the connection ends"
		}},
		"close": {
			out: func(a *effectContext) string {
				if a.rule.Direction == ToClient {
					return ""
				}
				a.disposition.End = &End{}
				return "the connection is closed"
			},
			in: func(a *effectContext) string {
				if a.rule.Direction != ToClient {
					return ""
				}
				a.disposition.Drop, a.disposition.End = true, &End{}
				return "the connection is closed in the place of the answer"
			},
			clock: &clockEffect{begin: func(m *clockContext) { m.emitEvent(Event{Do: Ending, End: &End{}}, "the connection is closed") }},
		},
	}
}
