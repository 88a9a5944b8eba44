// Package check finds out how resilient a person's own MCP servers are: it starts or dials each of them several times, does to
// it what goes wrong in practice, and reports in plain words what it saw and what to do about it.
//
//	report, err := check.Run(ctx, check.Options{Servers: map[string]messages.Spec{"files": spec}})
//	for _, server := range report.Servers {
//		for _, f := range server.Findings { fmt.Println(f.Verdict, f.Title, f.Text, f.Fix) }
//	}
//
// # How it fits
//
// The command "mcpvisor chaos check" calls [Run] and prints the report. Run opens servers with the real transports (stdio,
// web, websocket), and measures starts with package transports/session, so that a server meets what a manager would do. Messages
// that no proper client sends go through rawClient, and the way in which a process ends by itself shows in an unmanagedProcess,
// because a transport would end it. The restart after a kill is that of a real supervisor.Manager.
//
// # Guarantees
//
//   - Run calls a tool only if the caller listed it for its server (Options.Calls), or if the spec is trusted, the server marks
//     the tool as read-only (readOnlyHint) and its schema requires no argument. The report lists what was left out for that
//     reason as not tried.
//   - Everything else that Run sends is a request that changes nothing (lists, ping, unknown methods, broken lines), and the
//     end of a session that Run itself opened.
//   - Run checks one server after the other, each with a bounded number of starts and requests, and waits for each answer for a
//     bounded time.
//   - When Run returns, it has ended every process that it started and everything that these started, also what a server tried
//     to leave behind.
//   - A report holds no value of env, headers or URLs, and no token.
//
// # Not promised
//
// A server that passes may still be wrong: Run sees only what shows from outside within seconds. It counts the children of a
// server on Linux only. Times are those of this machine at this moment.
package check
