package bugs

import "slices"

// fifthSlipBugs were written as slipBugs were, and no day found them then: no event was compared with what had changed, the templates of a server
// never changed, its streams brought nothing but messages, no spec that disables was given to a server with instances, nothing compared the credentials of a
// cancellation with those of its request, nothing looked at what an endpoint counts, no server lacked a part of what it may have beside tools, nobody listened
// to a stream on which nothing happens, and a watcher that read nothing before its end did not know where it had begun.
var fifthSlipBugs = slices.Concat(
	inPackage("actors",
		Bug{
			Name: "one-of-several-named", In: "Registry.publishEvent", Old: `e.Server = ""`, New: "e.Server = c.Server",
			Finds: []string{"I19"}, Why: "a watcher of one server is not told that its tools have changed when those of another one change at once",
		},
		Bug{
			Name: "gap-lost-at-close", In: "Hub.dropWatcher", Old: "w.missed += w.skipLost()", New: "w.skipLost()",
			Finds: []string{"I19"}, Why: "a watcher that is closed when it has lost events is told of no gap",
		},
		Bug{
			Name: "watched-as-before", In: "attempt.matchSubscriptions", Old: "slices.Concat(watched.URIs(), sess.WatchedURIs())", New: "watched.URIs()",
			Finds: []string{"I20"}, Why: "a server that was disabled and kept its connection goes on to watch what was given up meanwhile",
		},
		Bug{
			Name: "idle-since-the-begin", In: "Use.leave", Old: "u.last.Store(int64(time.Since(processStart)))",
			Finds: []string{"I12"}, Why: "an instance ends right after a call that took longer than it may be idle",
		},
		Bug{
			Name: "kept-with-both-only", In: "attempt.isWorthKeeping", Old: "!said.Capabilities.Resources && !said.Capabilities.Prompts",
			New: "(!said.Capabilities.Resources || !said.Capabilities.Prompts)", Finds: []string{"I8"}, Why: "a server that has prompts and no resources is not connected when it cannot list its tools",
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
			Name: "alive-once", In: "eventStream.stayAlive", Old: "s.timer.Reset(s.keepAlive)",
			Finds: []string{"I28"}, Why: "only one line keeps a silent stream open, and a proxy cuts it after the next minute",
		},
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
