// Package transports says what a connection to one server is: bytes in, bytes out. It has no connection of its own, so that a
// program which brings one needs nothing else:
//
//	Transport.Dial opens a Conn;  Conn.Send writes;  a Sink receives;  Conn.Close releases
//
// The kinds that mcpvisor has are in the packages below: stdio (a child process), web (streamable HTTP, SSE and a proxy of
// connectors), websocket, inprocess (a server of the same program), and stream: lines over whatever the program dials (SSH, a socket, a
// serial line), made of one function. Package fault breaks any of them in a test, and transporttest holds a new one to the contract.
//
// A transport knows the frames of its kind (lines, server-sent events, HTTP status and headers) and nothing of what the messages
// say. The packages above (actors, supervisor/restart) decide about restarts and retries, and transports/session about protocol
// versions: a Conn that ends stays ended.
//
// # How it fits
//
// For every attempt to connect, the server's actor gets a [Transport] from package supervisor/internal/opener and calls
// session.Dial, which calls [Transport.Dial] and is the [Sink] of the connection. The transport owns what the connection consists
// of (a child process, pipes, sockets, goroutines) from Dial until [Conn.Released] is closed. It asks an [Authorizer], most often
// of package auth, for credentials, package budget for memory and for pauses, and package isolation for what a child may touch.
//
//	supervisor ── makes ──> Transport      stdio   web   websocket   inprocess
//	                            │ Dial       └──────┴────────┴───────────┴── transports/internal: what they share
//	actor ──> session ── Send ──┴──> Conn ──> pipe, HTTP or WebSocket ──> server
//	             ^                     │
//	             └── Sink: Message … Down ──────────── what the server says
//
// # Guarantees
//
// They hold for every kind, and package transporttest checks each of them:
//
//   - Send reports whether the message was not written, maybe written, or written, and never blocks past its context.
//   - Sink.Down is called exactly once, after the last message that the peer delivered before its end.
//   - One incoming message never occupies more than the configured limit; a longer one is lost, and the connection goes on.
//   - After Close, or the peer's end, everything the connection held is released within a bound: Released is closed.
//   - No header value, environment value or token appears in an error or in Info, except Info.SessionID.
//
// Not promised: that the server has read a message which was Written, or that two messages sent concurrently arrive in any order.
package transports
