package reach

import "strings"

// Packages are those that random days are to reach.
var Packages = []string{
	"actors", "actors/catalog", "actors/lifecycle", "actors/opening", "actors/queue", "transports/session", "supervisor",
	"supervisor/restart",
}

// reason says why the days do not run what stands in some files.
type reason struct{ begins, why string }

// outside are the files that no day can run, because what calls them is not there in virtual time: a person at a browser, another
// process, another machine. Their own packages and test/e2e test them.
var outside = []reason{
	{"supervisor/login.go", "a person signs in with a browser"},
	{"supervisor/signins.go", "as supervisor/login.go"},
	{"supervisor/authstatus.go", "what is said of sign-ins, which there are none of"},
	{"supervisor/authkinds.go", "credentials that commands and files provide: the simulated network shows a token of its own"},
	{"supervisor/credentials.go", "as supervisor/authkinds.go"},
	{"supervisor/identity.go", "as supervisor/authkinds.go"},
	{"supervisor/account.go", "as supervisor/authkinds.go"},
	{"supervisor/files.go", "configuration read from files: supervisor/config and supervisor/reload"},
	{"supervisor/open.go", "makes the real transports, in the place of which a day has those in memory"},
	{"supervisor/clients.go", "as supervisor/open.go"},
	{"supervisor/entry", "messages of other actors, translated into what a day asks of the facade: supervisor/entry_test.go"},
	{"supervisor/bridge", "serves the manager to other clients: supervisor/bridge_test.go"},
	{"supervisor/cache.go", "the lists of lazy servers on disk: a day's manager keeps nothing between runs"},
	{"supervisor/remembered.go", "as supervisor/cache.go"},
	{"supervisor/restart/stats.go", "reads the load of the machine, whose clock is not that of a day"},
	{"supervisor/restart/installing.go", "processes that fetch what they run: nothing of a day is a process"},
	{"actors/pace.go", "as supervisor/restart/installing.go"},
	{"actors/catalog/check.go", "checks the data structure, for tests"},
	{"actors/queue/check.go", "checks the data structure, for tests"},
}

// Outside is why no day can run a file, empty if one could.
func Outside(file string) string {
	for _, r := range outside {
		if strings.HasPrefix(file, r.begins) {
			return r.why
		}
	}
	return ""
}

// missed is why the days leave much of a file alone, which one could run.
var missed = []reason{
	{"supervisor/pinned.go", "a day has no store of approved definitions (Config.Pins)"},
	{"supervisor/permissions.go", "the only rule of a day asks about every call, and it does not change (SetPermissions)"},
	{"supervisor/asked.go", "who is asked allows every call"},
	{"supervisor/desk.go", "as supervisor/asked.go"},
	{"supervisor/allowance.go", "as supervisor/asked.go"},
	{"supervisor/asker.go", "the servers of a day ask one plain question each, which is answered well: no URL, no refusal, no second caller"},
	{"supervisor/form.go", "as supervisor/asker.go"},
	{"supervisor/chance.go", "as supervisor/asker.go"},
	{"transports/session/elicit.go", "as supervisor/asker.go"},
	{"transports/session/serve.go", "as supervisor/asker.go"},
	{"transports/session/handlers.go", "as supervisor/asker.go"},
	{"transports/session/inquiry.go", "as supervisor/asker.go"},
	{"transports/session/belonging.go", "as supervisor/asker.go"},
	{"transports/session/attend.go", "as supervisor/asker.go"},
	{"transports/session/rounds.go", "as supervisor/asker.go, in the modern era"},
	{"transports/session/visit.go", "as supervisor/asker.go, by a URL"},
	{"transports/session/posted.go", "as supervisor/asker.go"},
	{"supervisor/resources.go", "the resources and prompts of a day are one each, on one page, and do not change"},
	{"supervisor/prompts.go", "as supervisor/resources.go"},
	{"supervisor/parts.go", "as supervisor/resources.go"},
	{"supervisor/gather.go", "as supervisor/resources.go"},
	{"supervisor/follow.go", "as supervisor/resources.go: subscriptions to them"},
	{"actors/ask.go", "as supervisor/resources.go: reads"},
	{"transports/session/offers.go", "as supervisor/resources.go"},
	{"transports/session/mirror.go", "as supervisor/resources.go"},
	{"transports/session/read.go", "as supervisor/resources.go"},
	{"transports/session/shelf.go", "as supervisor/resources.go"},
	{"transports/session/subscribe.go", "as supervisor/resources.go: subscriptions to them"},
	{"supervisor/index.go", "nobody of a day searches the catalog"},
	{"supervisor/tasks.go", "a caller of a day waits for its task itself, and seldom asks for one by its id"},
	{"transports/session/tasks.go", "as supervisor/tasks.go"},
	{"supervisor/configure.go", "a day's servers are those of the runtime, none is configured"},
	{"supervisor/meant.go", "nobody of a day misspells a name"},
	{"supervisor/call.go", "what a program makes of an answer: its parts and texts"},
}

// Missed is why the days leave a file alone that one could run, empty if nobody has said.
func Missed(file string) string {
	for _, r := range missed {
		if strings.HasPrefix(file, r.begins) {
			return r.why
		}
	}
	return ""
}
