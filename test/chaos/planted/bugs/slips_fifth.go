package bugs

import "slices"

// fifthSlipBugs were written as slipBugs were, and no day found them then: no event was compared with what had changed, the templates of a server
// never changed, its streams brought nothing but messages, no spec that disables was given to a server with instances, nothing compared the credentials of a
// cancellation with those of its request, and nothing looked at what an endpoint counts.
var fifthSlipBugs = slices.Concat(
	inPackage("actors",
		Bug{
			Name: "one-of-several-named", In: "Registry.publishEvent", Old: `e.Server = ""`, New: "e.Server = c.Server",
			Finds: []string{"I19"}, Why: "a watcher of one server is not told that its tools have changed when those of another one change at once",
		},
	),
	inPackage("transports/session",
		Bug{
			Name: "templates-of-before", In: "listCaches.invalidateLists", Old: "o.templates.MarkChanged()",
			Finds: []string{"I20"}, Why: "the templates of a server stay as they were read first, whatever it announces",
		},
		Bug{
			Name: "cancelled-as-the-connection", In: "Session.cancelRequest", Old: "messages.CallerOf(ctx)", New: `""`,
			Finds: []string{"I23"}, Why: "a server that knows its callers by their credentials is told by another one to cancel a call",
		},
	),
	inPackage("transports/serve",
		Bug{
			Name: "read-for-ever", In: "Handler.beginRequest", Old: "x.load.inFlight[readingKind]--",
			Finds: []string{"I28"}, Why: "each request counts as one that is being read for as long as the endpoint lives, until all are refused as too many",
		},
	),
	inPackage("transports/internal/eventstream",
		Bug{
			Name: "name-of-the-event-before", In: "Reader.dispatchEvent", Old: `r.name, r.oversized, r.hasData = "", nil, false`, New: "r.oversized, r.hasData = nil, false",
			Finds: []string{"I2"}, Why: "behind an event that is no message the next message is taken for none either",
		},
	),
	inPackage("supervisor/internal/core",
		Bug{
			Name: "instances-of-a-disabled-spec", In: "supervisor.applyToInstances", Old: "!keep || !r.wanted || r.blocked != nil", New: "!keep || r.blocked != nil",
			Finds: []string{"I16"}, Why: "the instances of a server that its spec disables can be called on",
		},
	),
)
