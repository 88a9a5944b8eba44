// Package gateway offers all servers of one manager to agents as one server of the protocol: it is the service of package
// transports/serve.
//
//	cfg := supervisor.Config{Servers: specs}
//	gateway.PassQuestions(&cfg)                              // servers may ask the agents
//	m, err := supervisor.Start(ctx, cfg)
//	g := gateway.New(gateway.Config{Manager: m})
//	defer g.Close()
//	h := serve.NewHandler(serve.Options{Service: g})
//
// Guarantees:
//
//   - Definitions, arguments, results and errors pass byte for byte. Of a definition only the name changes, where names carry
//     that of their server; ids, progress tokens and cursors are those of one hop.
//   - Every request has one answer, and nothing that may have run is sent again. A call that was not sent, or whose outcome is
//     unknown, is a result with isError, whose text says whether calling again is safe and whose _meta has mcpvisor/outcome.
//   - A view (all servers, or one) is rendered once for each generation of the catalog, and shared by all sessions: a list is
//     a copy of bytes. Agents are notified of a change only if the bytes of their view have changed.
//   - A question of a server reaches the agent whose request it belongs to, where the protocol says who that is, or where
//     all requests that the server has not answered are that agent's; else it is refused.
//   - A resource that several agents watch is watched once at its server.
//
// Not promised: that a server of the legacy era can ask an agent of the modern era; its question is refused with the reason. Tasks
// are followed here: an agent gets the result of a call that became one, and cannot take it over. Log messages that belong to no
// request of an agent reach nobody.
//
// # How it fits
//
//	transports/serve ──requests──▶ gateway ──▶ view (names) ──▶ supervisor.Manager
//	                 ◀──notices──  watch.go ◀── events of the manager
//
//	gateway.go    the service: which method goes where
//	view.go       what an agent sees, rendered; names.go the names in it
//	call.go       tools; offers.go resources, prompts and completion; subscribe.go what agents watch
//	forward.go    what a request takes along: _meta, progress, capabilities, questions
//	outcome.go    errors as answers; state.go the state that a server hands to an agent
//	watch.go      the one goroutine that turns events into notices
//
// Public for the command: what it exports may change without notice.
package gateway
