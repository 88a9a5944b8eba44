// Package supervisor keeps many MCP servers connected, and is what an embedding program imports.
//
//	m, err := supervisor.Start(ctx, supervisor.Config{Servers: map[string]supervisor.Spec{
//		"files": {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "."}},
//	}})
//	defer m.Close(ctx)
//	err = m.Settled(ctx)                                          // or m.Watch, or nothing
//	for tool := range m.Tools().All() { … }                       // one snapshot, no lock
//	out, err := m.CallTool(ctx, "mcp__files__list_directory", map[string]any{"path": "."})
//
// Guarantees:
//
//   - One owner. Only a server's own actor writes its state, only the registry writes the catalog, only the supervisor
//     decides when a start may happen.
//   - One outcome per call: result, tool error, rejected by the server, not sent, or outcome unknown. It comes at the
//     earliest moment the truth is known (the child died), never later than the call's deadline. Nothing that may already
//     have run is sent again, except read-only and idempotent tools of servers that the user marked trusted.
//   - What only reads (resources, prompts, lists, completion) is asked once more when its connection was lost, within its
//     deadline, and not after somebody has answered a question of the server about it.
//   - What a server asks (Config.Elicit, Sample, Roots) reaches one function, or the one actor that sent HandleRequests,
//     with the name of who asks; or it is refused, and was never announced. A form's answer fits its schema or is not sent.
//   - A resource that was subscribed to stays so over reconnects, until it is unsubscribed or the server removed.
//   - Reading (Tools, Status, Server) and calling take no lock that a slow server could hold, and ask no actor.
//   - At most one connection per server, whatever is asked of it at the same time.
//   - A server that cannot be reached is tried again for ever, at the times of package restart, and never in between.
//     One that needs credentials, or whose specification cannot work, is not tried again by itself.
//   - When Toggle(false), Disconnect or Remove has returned, no new call reaches the server and the catalog does not show
//     its tools.
//   - After Close has returned nil, no process, descriptor or goroutine of the manager is left.
//
// Less formally: start it, ask it for tools, call them; it does the rest, and says what it does.
//
// Not promised: that a server's state says anything about this program's readiness; that a tool's result can be trusted;
// that a call which ended as outcome unknown did or did not run. A child that starts a session of its own leaves its
// process group and is not ours to end. Without Config.Guard the children of a manager that is killed with SIGKILL may
// leave descendants behind.
package supervisor
