// Package supervisor keeps many MCP servers connected. It is the package that an embedding program imports: [Start] makes a
// [Manager], and every other function here is a method of it or prepares its [Config].
//
//	m, err := supervisor.Start(ctx, supervisor.Config{Servers: map[string]supervisor.Spec{
//		"files": {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."}},
//	}})
//	defer m.Close(ctx)
//	err = m.Ready(ctx, "files")                                   // or m.Watch, or nothing
//	for tool := range m.Tools().All() { … }                       // one snapshot, no lock
//	out, err := m.CallTool(ctx, "mcp__files__list_directory", map[string]any{"path": "."})
//
// # What people do with it
//
//   - Start, wait and end: [Start], [Manager.Ready], [Manager.Close]; [Serve] in a run group, [Props] as the child of an actor.
//   - Call tools: [Manager.CallTool] by qualified name, [Manager.CallServerTool]; [Result.Text] for a model; [WithCaller] says for whom.
//   - Call again: [messages.Error.MayRetry] says whether, and when; Config.CallWait waits instead.
//   - See what there is: [Manager.Tools], one [Snapshot] without a lock; [Manager.AgentTools] as an agent's own; [Manager.ToolsFor]
//     what one caller may call.
//   - See how servers fare: [Manager.Status], [Manager.Watch], [Manager.History], [Manager.Logs].
//   - Change servers: [Manager.Connect], [Manager.SetServers], [Manager.Toggle], [Manager.Reconnect], [Manager.Remove]; [FromFiles] and
//     [Follow] for files.
//   - Read: [Manager.Resources], [Manager.ReadResource], [Manager.Prompts], [Manager.GetPrompt], [Manager.SubscribeResource].
//   - Answer servers and persons: Config.Elicit, Sample, Roots; Config.Ask and Access for permissions; [Manager.Login] for sign-ins.
//   - Stand in the way of calls: Config.Interceptors, Allow, Sanitize, Audit.
//   - Be commanded by other actors: [Manager.PID] and the messages of package messages; package supervisor/remote from other machines.
//
// Tests of an embedding program: package supervisor/supervisortest. A transport of one's own: Config.Transport, and package
// transports/stream for any stream of lines.
//
// Guarantees:
//
//   - One owner. Only a server's own actor writes its state, only the registry writes the catalog, only the supervisor
//     decides when a start may happen.
//   - One outcome per call: result, tool error, rejected by the server, not sent, or outcome unknown. It comes at the
//     earliest moment the truth is known (the child died), never later than the call's deadline. Nothing that may already
//     have run is sent again, except read-only and idempotent tools of servers that the user marked trusted.
//   - A request that only reads (resources, prompts, lists, completion) is sent once more when its connection was lost, within
//     its deadline, and not after the program has answered a question of the server about it.
//   - A server's request (Config.Elicit, Sample, Roots) reaches one function of the program, or the one actor that sent
//     HandleRequests, with the name of the server; or it is refused, and the ability was never announced to the server. The
//     answer to a form fits the form's schema or is not sent.
//   - A resource that was subscribed to stays so over reconnects, until it is unsubscribed or the server removed.
//   - Reading (Tools, Status, Server) and calling take no lock that a slow server could hold, and ask no actor.
//   - At most one connection per server, however many commands come at the same time. Of a server whose spec has share
//     "principal" there is one for each caller that uses it, its instance, at most Spec.MaxInstances and beside the server's own;
//     no request of one caller reaches another's, and a principal without an instance leaves nothing behind.
//   - A server that cannot be reached is tried again for ever, at the times of package restart, and never in between.
//     One that needs credentials, or whose specification cannot work, is not tried again by itself.
//   - When Toggle(false), Disconnect or Remove has returned, no new call reaches the server and the catalog does not show
//     its tools.
//   - After Close has returned nil, no process, descriptor or goroutine of the manager is left.
//
// Not promised: that a server's state says anything about this program's readiness; that a tool's result can be trusted;
// that a call which ended as outcome unknown did or did not run. A child that starts a session of its own leaves its
// process group, and the manager cannot end it. Without Config.Guard the children of a manager that is killed with SIGKILL may
// leave descendants behind.
//
// # How it fits
//
// The package owns one actor tree. The program's goroutines enter through Manager; commands become messages to the supervisor
// actor, calls and reads do not: they pass one chain of links, which chain.go lists with its reasons, and go to the connection's
// session directly.
//
//	program ── Manager ── commands ──▶ supervisor actor ──▶ one server actor each (package actors)
//	              │                        │ restart policy, start gate      │ transport, session
//	              │                        └─────────▶ registry actor ◀──────┘ tools
//	              └── calls, reads ──▶ one chain of links ──▶ session of the connection
//	other actors ── messages ──▶ entry actor ── Manager
//
// The supervisor actor (internal/core) owns the set of servers, their restart records (package supervisor/restart) and the start
// gate. Each server actor owns its own state and connection. The registry actor is the only writer of the catalog. Beside the
// actors stand the other parts, each with a lock of its own and made of a few options: credentials, opener (which specs may be
// tried, and their transports), toolcache, permissions with asker, requests (what servers ask), auditor, listindex, and reload,
// which follows files. Config is only what the program says; newManager (build.go) makes all parts of it, and Start starts them.
//
// # Two routes
//
// What happens from end to end, in the order of reading. What another file does for a function that is named here (the rules, the
// wait for a connection, the queue of a pipe) can be read when it is needed.
//
// A tool call, from the program to the server and back:
//
//	supervisor/call.go                CallTool, callByName, newResult: the arguments, and the result
//	supervisor/chain.go               links, compose, handlePairs: what a request passes, and in which order
//	actors/call.go                    FindTool, Repeat, Send: the tool, its connection, a second attempt
//	transports/session/call.go        CallWith, callTool, performRequest: one call of the protocol, with its questions and its task
//	transports/session/pending.go     sendRequest, registerRequest, sendAndWait, takePending: the id, and the wait for its answer
//	transports/stdio/conn.go          Post, readOutput, onMessage: lines of a process; each kind of transport has its own
//	transports/session/incoming.go    MessageOn, dispatchMessage, handleAnswer: the answer reaches who waits for it
//
// A server's notice that its tools have changed, to the catalog that every caller reads:
//
//	transports/session/incoming.go    handleNotification, notifyToolsChanged: once, however many notices come
//	actors/perform.go                 hookNotifications, scheduleRelist, updateTools, sendToRegistry: what the actor does
//	actors/server.go                  Receive, applyEvent, handleListDone: the turns of the actor
//	actors/lifecycle/step.go          handleToolsChanged, listTools, handleListed: what is decided
//	actors/attempt.go                 startListing: the goroutine that lists
//	transports/session/list_tools.go  ListTools: all pages of the list
//	actors/registry.go                Receive, publishPending: the next snapshot, and the event for watchers
package supervisor
