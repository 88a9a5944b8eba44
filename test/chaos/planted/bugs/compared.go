package bugs

import "slices"

// comparedBugs are slips that nobody sees who looks at one thing alone: two ways to know it differ.
var comparedBugs = slices.Concat(
	inPackage("transports/serve",
		Bug{Name: "question-withdrawn-unsaid", In: "Session.takeBack",
			Old:   "q.to.sendMessage(appendNotification(nil, \"notifications/cancelled\", []byte(`{\"requestId\":`+id+`}`)), false)",
			Finds: []string{"I24"}, Why: "an agent asks its person on after the question was taken back"},
	),
	inPackage("transports/session",
		Bug{Name: "withdrawn-question-answered", In: "Session.handleCancelled", Old: "if open { q.cancel(nil) }", New: "_, _ = q, open",
			Finds: []string{"I20", "I24"}, Why: "a person is asked what the server does not ask any more"},
	),
	inPackage("supervisor/gateway",
		Bug{Name: "level-of-the-gone", In: "view.removeSession", Old: "v.wanted[st.level.Load()]--",
			Finds: []string{"I28"}, Why: "servers log at the level of an agent that has left"},
		Bug{Name: "places-of-the-ended", In: "suspendedCalls.release",
			Old:   "if t.count[c.agents.principal]--; t.count[c.agents.principal] == 0 { delete(t.count, c.agents.principal) }",
			Finds: []string{"I28"}, Why: "after 64 questions an agent is never asked again"},
	),
	inPackage("supervisor/internal/core",
		Bug{Name: "instances-keep-their-spec", In: "supervisor.applySpec", Old: "s.applyToInstances(ctx, r, keep)", New: "_ = ctx",
			Finds: []string{"I16"}, Why: "instances go on with the specification before"},
		Bug{Name: "instance-of-the-disabled", In: "supervisor.handleStartInstance",
			Old:   "case !r.wanted:\nm.Reply(instanceError(m.Server, messages.ClassInvalid, \"it is disabled\", \"enable it first\", messages.ErrDisabled))\nreturn",
			Finds: []string{"I16"}, Why: "a call starts an instance of a server that is disabled"},
		Bug{Name: "reconnect-without-instances", In: "supervisor.commandInstances", Old: "if !i.removing { s.sendEvent(i, e) }", New: "_ = i",
			Finds: []string{"I16"}, Why: "a reconnect leaves the instances as they are"},
	),
	inPackage("supervisor/internal/auditor",
		Bug{Name: "enable-unrecorded", In: "CommandRecord", Old: "case lifecycle.Enable: r.Change = \"enable\"",
			Finds: []string{"I20"}, Why: "the audit log does not say who enabled a server"},
	),
)
