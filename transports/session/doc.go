// Package session holds one MCP conversation over one connection of package transports: the handshake, the server's lists
// (tools, resources, prompts, completion), tool calls, and the requests and notifications that the server sends in between.
// It speaks both eras of the protocol: the legacy one, versions 2024-11-05 to 2025-11-25, and the modern one, 2026-07-28.
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
// # How it fits
//
// Package actors dials one [Session] for each connection of a server, shakes hands, lists the tools and opens a [Gate];
// callers of a server call through that gate. The session calls package transports to send, package budget to account for the
// memory that the server makes it hold, and the functions of [Config] when the server announces something. It owns the
// identifiers of its requests, the requests that wait for an answer, the lists that it has read, and its goroutines. It owns
// no process and no socket: those belong to the [transports.Conn]. It never reconnects and never restarts a server: the actor
// decides about that.
//
//	caller ── Gate.Call ──► pendingRequest ── Conn.Send ──► server
//	caller ◄── answer ───── handleAnswer ◄─── sink.Message ◄── server
//	Config.OnToolsChanged … ◄── callbacks ◄── handleNotification ◄┘
//	Config.Handlers ◄────────── handleRequest ◄─────────────────┘
//
// This package is the core: the handshake, the requests and their ends, the gates, and what becomes of an incoming message. Its
// parts stand in packages below internal, and none of them knows the session:
//
//	jsonrpc                messages are taken apart and written
//	era                    which era and version a server speaks
//	definitions, headers   what a server declares; which arguments of a tool go into HTTP headers
//	lists                  lists are read page by page and cached
//	subscriptions          standing requests of the modern era, and the resources that are watched
//	tasks                  the status of a task, and the poller that follows one
//	questions              what a server asks is checked and answered by a handler
//	outcome                which error and outcome the end of a request has
//	calltimeout, monotime  the deadlines of a call, on the monotonic clock
//	serial, memory         queues and turns; the account of the memory that a session holds
//
// Lists, subscriptions and tasks name in an interface what they need of the session; the type conversation fulfils it.
//
// # Guarantees
//
//   - Every Call ends exactly once, with a result (IsError says whether the tool failed) or an error that carries one
//     outcome: not-sent, rejected or unknown. It ends as soon as the truth is known: with the answer, the end of its
//     context, or the end of the connection, whichever is first; an answer that was delivered beats the other two.
//   - Not-sent means that no byte left this process, or that the server said that it does not know the session any more
//     (HTTP 404 with a session id), which it says instead of running anything. Rejected means a JSON-RPC error, or an HTTP
//     refusal (4xx other than 408). Everything else that is not a result is unknown.
//   - A call is never sent twice by this package, unless the server did not run it: it refused it for its headers
//     (2026-07-28, HeaderMismatch), or until a person has visited a URL (2025-11-25, URLElicitationRequired), or ended it
//     with a question (input_required).
//   - A broken, unexpected, duplicate or late message costs at most the call whose id it carries, and is counted.
//   - A list of resources, templates or prompts is never older than the newest change that the server had announced when
//     the caller asked for the list, nor than the server allows. One fetch of it is under way at a time.
//   - The session calls the function of [Config] for every change that the server announces; several changes become one
//     call, and the last is never lost. After a time in which the server could not be heard everything counts as changed.
//   - Results, schemas and tool definitions are the server's own bytes, and valid JSON.
//   - A gate that is closed, by Close or by the end of the session, admits nothing any more.
//   - After Released is closed, no goroutine of the session is left and none of its callbacks runs. Every goroutine belongs
//     to the session, begins only when there is something to do, ends by itself when that is done or the session is over,
//     and turns a panic into the end of the session with ClassPanic.
//   - The memory and the work that a server can cause in the session are bounded: pages, tools, bytes of a list, queued
//     answers and logs, nesting depth, and lines of noise per second.
//
// # An answer that cannot be used
//
// A server may answer a call with a result that is no object, with a result and an error at once, with text that is no JSON,
// or with more bytes than the transport accepts. The server has worked on the request then, but the effect of that work is
// not known: the outcome is unknown with ClassProtocol, and the text names the fault of the answer. The outcome is not
// rejected, because that word promises that nothing ran.
//
// # Not promised
//
// That a tool stopped because its call was cancelled: the notification is sent, servers may ignore it. That a call is
// answered within any time: the caller's context is the only clock of a call. That a server which reuses the id of one of our
// calls that is still waiting is detected.
//
// Public for the actors and the harness: what it exports may change without notice.
package session
