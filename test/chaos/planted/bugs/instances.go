package bugs

import "slices"

// instanceBugs are in the way of a caller to its credentials, and to the instance that a server has for it. No day of the harness has
// servers with instances, so that the unit tests find them; Finds names what they break.
var instanceBugs = slices.Concat(
	inPackage("actors",
		Bug{Name: "anothers-instance", In: "Calls.enterNamed", Old: `principal != spec.Principal && r.Method != "ping"`,
			New:   `principal != spec.Principal && r.Method == "ping"`,
			Finds: []string{"I3"}, Why: "a caller that knows the name of another's instance acts with that one's sign-in"},
		Bug{Name: "session-of-nobody", In: "newAttempt", Old: "messages.WithCaller(context.Background(), spec.Principal)", New: "context.Background()",
			Finds: []string{"I3"}, Why: "the session of a principal begins with the credentials of another"},
		Bug{Name: "unknown-by-instance", In: "Server.filterTools", Old: "serverOf(s.cfg.Name, s.spec)", New: "s.cfg.Name",
			Finds: []string{"I1"}, Why: "the rules about a server do not hold for its instances"},
	),
	inPackage("supervisor/internal/core",
		Bug{Name: "one-instance-too-many", In: "supervisor.handleStartInstance", Old: "len(r.instances) >= most", New: "len(r.instances) > most",
			Finds: []string{"I6"}, Why: "a server has an instance more than it may"},
		Bug{Name: "instances-outlive-their-server", In: "supervisor.endServer", Old: "s.endInstances(ctx, r, drain)", New: "_ = drain",
			Finds: []string{"I6"}, Why: "the processes of callers go on when their server was removed"},
		Bug{Name: "principal-left-behind", In: "supervisor.finishRemoval", Old: "r.owner.cell.Instances.Drop(r.cell)", New: "{}",
			Finds: []string{"I12"}, Why: "each caller that ever had an instance is remembered for ever"},
	),
	inPackage("actors/catalog",
		Bug{Name: "instance-in-every-list", In: "edit.putServer", Old: `old != nil && old.owner != "" || now != nil && now.owner != ""`, New: "false",
			Finds: []string{"I14"}, Why: "the tools of one caller's instance stand in the list of all, and take the calls of all"},
	),
	inPackage("transports/web",
		Bug{Name: "request-without-its-caller", In: "newExchange", Old: "requestContext{l.RequestCtx, ctx}", New: "l.RequestCtx",
			Finds: []string{"I3"}, Why: "every request carries the credentials of the connection, whoever makes it"},
	),
	inPackage("transports/session",
		Bug{Name: "callers-are-one", In: "callerOfRequest", Old: "messages.CallerOf(ctx)", New: `""`,
			Finds: []string{"I3"}, Why: "a question that may be another caller's is put to the one whose request is under way"},
	),
)
