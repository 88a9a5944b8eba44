// Package gateway offers all servers of one manager to agents as one server of the protocol: it is the service of package
// transports/serve.
//
//	cfg := supervisor.Config{Servers: specs}
//	questions := gateway.PassQuestions(&cfg)                 // servers may ask the agents
//	m, err := supervisor.Start(ctx, cfg)
//	g := gateway.New(gateway.Config{Manager: m, Questions: []*gateway.Questions{questions}})
//	defer g.Close()
//	h := serve.NewHandler(serve.Options{Service: g})
//
// Guarantees:
//
//   - Definitions, arguments, results and errors pass byte for byte. Of a definition only the name changes, where names carry
//     that of their server; ids, progress tokens and cursors are those of one hop.
//   - Every request has one answer, or none if its agent takes it back, and nothing that may have run is sent again. A call that was not sent, or whose outcome is
//     unknown, is a result with isError, whose text says whether calling again is safe and whose _meta has mcpvisor/outcome.
//   - A list of a view (tools, prompts, resources, templates) is rendered once for what its servers have, and shared by all sessions, and
//     by all principals that see the same: an answer is a copy of bytes. Agents are notified of a change only if those have changed.
//   - The prompts, resources and templates of a lazy server stand in the lists while it rests, as it listed them last. It is asked for them
//     whenever it has connected, or has announced a change.
//   - A server that leaves a list unanswered keeps no agent from what the others list for longer than five seconds, and from what agents know
//     of the others not at all. It stays in the list with what it listed last; agents are notified when it has answered something else.
//   - A prompt or a resource that agents know stays with its server while that is away. What no server lists is asked of the only server
//     that can have it, else it is refused, with the servers that are not connected.
//   - A question of a server reaches the agent whose request it belongs to, where the protocol says who that is, or where
//     all requests that the server has not answered are that agent's; else it is refused.
//   - A resource that several agents watch is watched once at its server. A principal, or an agent on lines, gets no further one
//     while it watches as many resources of the server as are left free for all others.
//   - An agent that reads nothing holds up no other one: what it has at one server, with the results that it has not read, is bounded in bytes,
//     and its further requests wait before they are sent. Over HTTP in the modern era nothing tells the agents of a principal apart: there
//     these are bounded together, and one that reads nothing can hold up those of its own principal until its connections are given up.
//   - A server of the legacy era can ask an agent of the modern era in the middle of a call. The call is suspended: the agent gets the
//     questions as its result, and the call itself goes on when they are answered. It runs once, whatever comes back how often. What
//     names it is sealed, and good for one answer to the same request of the same principal on the same path. A call whose questions
//     are not answered within five minutes is cancelled at its server.
//   - A call that runs as a task at its server can be taken over by its agent, in either era: the gateway follows the task, and the agent asks
//     for it by an id of this hop. The task belongs to the principal, whatever session or era it asks in, until its time to live has passed or
//     the last token of the principal is gone. It runs once: if the connection is lost, the server is asked for the same task, and one that
//     does not know it leaves the outcome unknown.
//   - A call of a server that needs a sign-in ends at once: with the address of one for the principal that may sign in, where its agent
//     can show an address, else with the command to type. Nothing was sent; the agent calls again afterwards.
//
// Not promised: that a question finds its agent at a server which several share. Such a server does not say about which request it
// asks, unless it speaks HTTP: the question is refused as long as requests of two agents are there (share "principal" helps). The
// agents of the modern era of one principal cannot be told apart over HTTP: there the question is taken for that of the only request that does
// not wait for an answer. Of several it is that of the newest where one agent on lines has made all of them, or at the principal's own instance.
// 64 calls of a principal, and 1,024 in all, wait for answers; the question of one more is refused, and of one whose
// arguments are too large beside what is kept already: for all principals 256 MiB, with the arguments of tasks and the results of calls that
// have ended while their agent was asked. Such a result that is too large is dropped, and its agent is told that the call has run. Tasks end with
// the gateway, and with the longest time that a call may take. An agent of the legacy era gets no task from a server of the modern one,
// which makes them for agents that it need not ask: it gets the result. Log messages that belong to no request of an agent reach nobody.
//
// # How it fits
//
//	transports/serve ──requests──▶ gateway ──▶ view (names) ──▶ supervisor.Manager
//	                 ◀──notices──  watch.go ◀── events of the manager
//
//	gateway.go    the service: which method goes where
//	view.go       what an agent sees; lists.go its lists, ready to be sent; names.go the names in it
//	call.go       tools; offers.go resources, prompts and completion; owner.go whose they are; subscribe.go what agents watch
//	forward.go    what a request takes along: _meta, progress, capabilities
//	window.go     how much one agent may have under way at one server, and unread
//	questions.go  who answers in the legacy era; modern.go in the modern one
//	suspension.go a call that waits for answers, as a pure machine; suspended.go all of them, and their clocks
//	task_state.go what an agent is told of a task, as a pure machine; tasks.go all of them, their bounds and their time to live
//	task_call.go  calls that become tasks; task_requests.go what agents ask about them
//	signin.go     the address of a sign-in, and what comes back afterwards
//	outcome.go    errors as answers; state.go the state that a server hands to an agent
//	watch.go      the one goroutine that turns events into notices
//
// Public for the command: what it exports may change without notice.
package gateway
