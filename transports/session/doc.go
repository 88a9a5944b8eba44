// Package session holds one MCP conversation over one connection of package transports: the handshake, what the server
// offers (tools, resources, prompts, completion), tool calls, and what the server asks and tells in between. It speaks both
// eras of the protocol: the legacy one, versions 2024-11-05 to 2025-11-25, and the modern one, 2026-07-28.
//
//	s, err := session.Dial(ctx, transport, session.Config{ClientName: "mcpvisor", ClientVersion: version})
//	info, err := s.Handshake(ctx)
//	list, err := s.ListTools(ctx)
//	gate := s.OpenGate()
//	result, err := gate.Call(ctx, "search", json.RawMessage(`{"q":"x"}`))
//	resources, err := s.Resources(ctx)
//	contents, err := s.ReadResource(ctx, resources.Items[0].URI, nil)
//	err = s.Close(ctx)
//
// # Guarantees
//
//   - Every Call ends exactly once, with a result (IsError says whether the tool failed) or an error that carries one
//     outcome: not-sent, rejected or unknown. It ends as soon as the truth is known: with the answer, the end of its
//     context, or the end of the connection, whichever is first; an answer that was delivered beats the other two.
//   - Not-sent means that no byte left this process, or that the server said that it does not know the session any more
//     (HTTP 404 with a session id), which it says instead of running anything. Rejected means a JSON-RPC error, or an
//     HTTP refusal (4xx other than 408). Everything else that is not a result is unknown.
//   - A call is never sent twice by this package, unless the server did not run it: it refused it for its headers
//     (2026-07-28, HeaderMismatch), or until a person has been somewhere (2025-11-25, URLElicitationRequired), or ended it
//     with a question (input_required).
//   - A broken, unexpected, duplicate or late message costs at most the call whose id it carries, and is counted.
//   - A list of resources, templates or prompts is never older than the newest change that the server had told of when it
//     was asked for, nor than the server allows. One fetch of it is under way at a time.
//   - A change that the server tells of is told on; several become one, and the last is never lost. After a time in which
//     the server could not be heard everything counts as changed.
//   - Results, schemas and tool definitions are the server's own bytes, and valid JSON.
//   - A gate that is closed, by Close or by the end of the session, admits nothing any more.
//   - After Released is closed, no goroutine of the session is left and none of its callbacks runs. Every goroutine
//     belongs to the session, begins only when there is something to do, ends by itself when that is done or the
//     session is over, and turns a panic into the end of the session with ClassPanic.
//   - What a server can make the session hold or do is bounded: pages, tools, bytes of a list, queued answers and logs,
//     nesting depth, and lines of noise per second.
//
// # An answer that cannot be used
//
// A server may answer a call with a result that is no object, with a result and an error at once, with text that is no
// JSON, or with more bytes than the transport accepts. The server has worked on the request then, but what came of it
// is not known: the outcome is unknown with ClassProtocol, and the text says what was wrong with the answer. It is not
// rejected, because that word promises that nothing ran.
//
// # Not promised
//
// That a tool stopped because its call was cancelled: the notification is sent, servers may ignore it. That a call is
// answered within any time: the caller's context is the only clock of a call. That a server which reuses the id of one
// of our calls that is still waiting is detected.
package session
