// Package check says how resilient a person's own MCP servers are: it starts or dials each of them several times, does to
// it what bad days do, and puts what was seen into plain words with what to do about it.
//
//	report, err := check.Run(ctx, check.Options{Servers: map[string]messages.Spec{"files": spec}})
//	for _, server := range report.Servers {
//		for _, f := range server.Findings { fmt.Println(f.Verdict, f.Title, f.Text, f.Fix) }
//	}
//
// Guarantees:
//
//   - A tool is called only if the caller listed it for its server (Options.Calls), or if the spec is trusted, the server
//     says that the tool is read-only (readOnlyHint) and its schema demands no argument. What was left out for that reason
//     stands in the report as not tried.
//   - Everything else that is sent is a request that changes nothing (lists, ping, unknown methods, broken lines), and the
//     end of a session that the check itself opened.
//   - Servers are tried one after the other, each with a bounded number of starts and requests, and each answer is waited
//     for within a bound.
//   - Every process that was started, and what it has started, is gone when Run returns, also what a server tried to leave
//     behind.
//   - No value of env, headers or URLs, and no token, stands in a report.
//
// Not promised: that a server which passes is right. Only what can be seen from outside in seconds is looked at. Children
// of a server are counted on Linux only. Times are those of this machine and this moment.
package check
