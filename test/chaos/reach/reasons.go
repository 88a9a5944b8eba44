package reach

import "strings"

// Packages are those that random days are to reach, as patterns of the go command.
var Packages = []string{
	"actors", "actors/catalog", "actors/lifecycle", "actors/opening", "actors/internal/queue", "transports/session/...", "supervisor",
	"supervisor/internal/...", "supervisor/restart", "supervisor/gateway", "transports/serve",
	"transports/web", "transports/internal/origin", "transports/internal/eventstream", "transports/internal/lifetime",
}

// fileReason says why the days do not run what stands in some files.
type fileReason struct{ prefix, why string }

// unreachableFiles are the files that no day can run, because what calls them is not there in virtual time: a person at a
// browser, another process, another machine. Their own packages and test/e2e test them.
var unreachableFiles = []fileReason{
	{"supervisor/login.go", "a person signs in with a browser"},
	{"supervisor/internal/credentials/store.go", "as supervisor/login.go"},
	{"supervisor/authstatus.go", "what is said of sign-ins, which there are none of"},
	{"supervisor/internal/credentials/kinds.go", "credentials that commands and files provide: the simulated network shows a token of its own"},
	{"supervisor/internal/credentials/credentials.go", "as supervisor/internal/credentials/kinds.go"},
	{"supervisor/internal/credentials/identity.go", "as supervisor/internal/credentials/kinds.go"},
	{"supervisor/internal/credentials/given_secrets.go", "as supervisor/internal/credentials/kinds.go"},
	{"supervisor/internal/credentials/account.go", "as supervisor/internal/credentials/kinds.go"},
	{"supervisor/files.go", "configuration read from files: supervisor/config and supervisor/internal/reload"},
	{"supervisor/internal/opener/opener.go", "makes the real transports, in the place of which a day has those in memory"},
	{"supervisor/internal/opener/clients.go", "as supervisor/internal/opener/opener.go"},
	{"supervisor/bridge", "serves the manager to other clients: supervisor/bridge_resources_test.go"},
	{"supervisor/internal/toolcache/cache.go", "the lists of lazy servers in files (CacheDir), of which a day has none: supervisor/cache_test.go"},
	{"supervisor/internal/lists", "as supervisor/internal/toolcache/cache.go"},
	{"supervisor/internal/reload", "configuration files: its own tests, in virtual time"},
	{"supervisor/follow.go", "follows configuration files and what the system tells of them: supervisor/follow_test.go"},
	{"supervisor/internal/credentials/lazy_sign_in.go", "the sign-in of a server whose spec asks for none, by the real transports: as supervisor/login.go"},
	{"supervisor/restart/stats.go", "reads the load of the machine, whose clock is not that of a day"},
	{"supervisor/restart/installing.go", "processes that fetch what they run: nothing of a day is a process"},
	{"transports/web/sse.go", "servers of the older HTTP+SSE have a transport in memory: transports/web/sse_test.go"},
	{"transports/web/fallback.go", "as transports/web/sse.go"},
	{"transports/web/claudeai.go", "no server of a day stands behind the proxy of an account"},
	{"actors/coalesce.go", "as supervisor/restart/installing.go"},
	{"actors/lifecycle/check.go", "checks a state, for tests"},
	{"actors/catalog/check.go", "checks the data structure, for tests"},
	{"actors/internal/queue/check.go", "checks the data structure, for tests"},
}

// UnreachableReason is why no day can run a file, empty if one could.
func UnreachableReason(file string) string {
	for _, r := range unreachableFiles {
		if strings.HasPrefix(file, r.prefix) {
			return r.why
		}
	}
	return ""
}

// missedFiles is why the days leave much of a file alone, which one could run.
var missedFiles = []fileReason{
	{"supervisor/internal/permissions/pins.go", "the memory of definitions of a day is in no file, and holds nothing back (pin: hold)"},
	{"supervisor/internal/permissions/permissions.go", "the rules of a day ask about every call or deny tools by their names, and judge no arguments"},
	{"supervisor/server_requests.go", "who is asked allows every call"},
	{"supervisor/internal/requests/handler.go", "as supervisor/server_requests.go"},
	{"supervisor/internal/requests/rate_limit.go", "as supervisor/server_requests.go"},
	{"supervisor/internal/asker/asker.go", "who is asked about calls allows every one, and is the same for all callers"},
	{"supervisor/internal/core/session_rand.go", "a day draws from a source of its own"},
	{"transports/session/internal/questions", "who is asked accepts: no refusal, and no form that cannot be shown"},
	{"transports/session/server_requests.go", "as transports/session/internal/questions"},
	{"transports/session/handlers.go", "as transports/session/internal/questions"},
	{"transports/session/request_origin.go", "as transports/session/internal/questions"},
	{"transports/session/rounds.go", "the servers ask for one input in one round, in a form that is right"},
	{"transports/session/url_elicitation.go", "the servers send the person to one place, in a form that is right"},
	{"transports/session/internal/headers/params.go", "what no day asks for in a header: a value over the limit, a number with an exponent, a schema too deep"},
	{"transports/session/internal/tasks/poller.go", "the tasks of a day live for an hour, are known as long as their server lives, and end in a form that is right"},
	{"supervisor/resources.go", "one resource is read, which its own server lists"},
	{"supervisor/prompts.go", "one prompt is read, whose name is plain"},
	{"supervisor/parts.go", "the contents of a day are texts and a blob, in a form that is right"},
	{"transports/session/internal/definitions", "the definitions of a day have the types that the specification gives them, but for one without an address"},
	{"transports/session/subscribe.go", "one resource is subscribed to, which every server agrees to"},
	{"supervisor/internal/listindex/index.go", "nobody of a day searches the catalog"},
	{"supervisor/tasks.go", "a caller of a day waits for its task itself, and asks by its id only for one that has ended"},
	{"transports/session/tasks.go", "as supervisor/tasks.go"},
	{"supervisor/internal/core/configure.go", "a day's servers are those of the runtime, none is configured"},
	{"supervisor/resolve_name.go", "a misspelt name of a day is of no server; long names of servers that list nothing are rare"},
	{"supervisor/call.go", "what a program makes of an answer: its parts and texts"},
	{"supervisor/manager.go", "a Config that cannot work, programs of a system of their own, a context that ends between two messages: no day has them"},
	{"supervisor/props.go", "a parent that stops, restarts or asks too early: supervisor/props_test.go"},
	{"supervisor/internal/core/successors.go", "an actor of the manager dies by a defect: supervisor/panic_test.go"},
	{"supervisor/internal/core/registry.go", "as supervisor/internal/core/successors.go"},
	{"supervisor/internal/core/supervisor.go", "as supervisor/internal/core/successors.go"},
	{"supervisor/internal/core/serverset.go", "servers with two sources, a file and the program; a day has the program's only"},
	{"supervisor/internal/opener/spec_problem.go", "specs that cannot work: the plan of a day has none"},
	{"supervisor/entry_actor", "messages of another process, of actors that die or send more at once than the manager takes: supervisor/entry_actor_test.go"},
	{"supervisor/entry_progress.go", "as supervisor/entry_actor.go"},
	{"supervisor/reply_cache.go", "as supervisor/entry_actor.go"},
	{"supervisor/rules.go", "rules that cannot be read, or that a file gives"},
	{"supervisor/slog.go", "groups and levels that the manager does not log"},
	{"supervisor/version.go", "reads how the program was built"},
	{"supervisor/internal/refusal/refusal.go", "errors of the program's own types: supervisor/refusal_test.go"},
	{"supervisor/internal/joined", "the gateway of a day has one manager: cmd/mcpvisor/daemon_shared_linux_test.go has several"},
	{"supervisor/internal/actorsystem/system.go", "what the actor library logs of messages that reach nobody"},
	{"supervisor/internal/auditor/auditor.go", "a disk that is full or slow: make audited"},
	{"supervisor/restart/limits.go", "limits that are negative or missing: the plan refuses them"},
	{"supervisor/restart/class.go", "words of the type for people"},
	{"actors/lifecycle/step.go", "orders that the actors around it rule out, which its own tests give it: every phase against every event"},
	{"actors/catalog/apply.go", "names that collide by their hash; words of the type for people"},
	{"actors/logs.go", "more than 1,000 log messages of one server, or 1 MiB"},
	{"actors/opening", "an attempt in which nothing is said for longer than any server of a day is silent, yet goes on"},
	{"actors/attempt_bound.go", "as actors/opening"},
	{"transports/session/read.go", "refusals of resources and prompts that are not there, and answers to completion in a wrong form: transports/session/read_test.go"},
	{"transports/session/posted.go", "a request that an HTTP connection holds back: the simulated one sends at once"},
	{"transports/session/pending.go", "as transports/session/posted.go; an error with the id null during the handshake"},
	{"transports/session/incoming.go", "batches of the oldest version, and JSON that breaks off in them: fuzzed in transports/session"},
	{"transports/session/probe.go", "a spec that pins its era"},
	{"transports/session/session.go", "a close that is cut short, callbacks that panic"},
	{"transports/session/internal/jsonrpc", "bytes that are no JSON-RPC, which the package's fuzz tests write"},
	{"transports/session/internal/calltimeout", "orders within one instant of a timer and a context, which the package's own tests make"},
	{"transports/session/internal/subscriptions", "streams that end while they are opened: transports/session/stream_test.go"},
}

// MissedReason returns the reason for which the days do not run a file that they could run; empty without an entry.
func MissedReason(file string) string {
	for _, r := range missedFiles {
		if strings.HasPrefix(file, r.prefix) {
			return r.why
		}
	}
	return ""
}
