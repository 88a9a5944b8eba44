package bugs

import "slices"

// programBugs are in what the embedding program of a day uses beside calls and commands: interceptors, waits, the difference of two
// catalogs; and in the tasks that ask for input.
var programBugs = slices.Concat(
	inPackage("actors/catalog",
		Bug{Name: "diff-without-removals", In: "Diff",
			Old:   "for _, e := range a {\n\t\td.Removed = append(d.Removed, e.Name)\n\t}",
			Finds: []string{"I20"}, Why: "a program that follows the catalog by its differences keeps offering tools that are gone"},
	),
	inPackage("supervisor",
		Bug{Name: "settled-names-no-server", In: "Manager.Settled", Old: "Server: v.Name", New: `Server: ""`,
			Finds: []string{"I20"}, Why: "a program that waits for many servers does not learn which one kept it waiting"},
		Bug{Name: "interceptor-misled", In: "interception.send", Old: "Server: r.Server", New: "Server: r.Name",
			Finds: []string{"I20"}, Why: "counters and traces of interceptors stand at servers that do not exist"},
	),
	inPackage("supervisor",
		Bug{Name: "closed-lists-nothing", In: "gatherLists", Old: "m.closing.Load()", New: "false && m.closing.Load()",
			Finds: []string{"I20"}, Why: "a program that asks a closed manager for resources believes that there are none"},
		Bug{Name: "closed-connects-all", In: "Manager.ConnectAll", Old: "m.closing.Load()", New: "false && m.closing.Load()",
			Finds: []string{"I20"}, Why: "a program believes that all servers are connected, and the manager is closed"},
	),
	inPackage("supervisor/internal/permissions",
		Bug{Name: "held-at-first-sight", In: "Decider.filterChanged", Old: `reason != ""`, New: `reason != "" && len(fresh) > 0`,
			Finds: []string{"I20"}, Why: "a tool that nobody has approved is offered from the second list on"},
	),
	inPackage("supervisor/internal/auditor",
		Bug{Name: "failure-recorded-as-success", In: "Auditor.recordCall", Old: "if err == nil && r.Answer.IsError { rec.Outcome = messages.OutcomeToolError }", New: "{}",
			Finds: []string{"I20"}, Why: "the audit log says of each call whose tool failed that it worked"},
	),
	inPackage("transports/session/internal/tasks",
		Bug{Name: "hint-hastens-twice", In: "Poller.pollStatus", Old: "select {\n\tcase <-p.options.StatusHint:\n\tdefault:\n\t}",
			Finds: []string{"I23"}, Why: "a server that tells of its tasks is asked for them more often than it wishes"},
		Bug{Name: "input-given-again", In: "Poller.newInputRequests", Old: "p.answeredInputs[key] = struct{}{}",
			Finds: []string{"I23"}, Why: "a person is asked the same question at every poll until the server has taken the answer"},
		Bug{Name: "input-for-no-task", In: "WithRelatedTask", Old: "id, ok := RelatedTaskID(params)", New: `id, ok := "", params == nil`,
			Finds: []string{"I20"}, Why: "a server cannot tell for which of its tasks an answer is"},
	),
)
