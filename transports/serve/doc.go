// Package serve is the server's side of the protocol: it lets agents of both eras ask one [Service], over streamable HTTP and over
// lines (stdio). It moves bytes: what a service answers goes to the agent as it is, and what an agent asks reaches the service
// as the agent wrote it.
//
//	h := serve.NewHandler(serve.Options{Service: service, Authenticate: tokens.Authenticate})
//	go h.Server().Serve(listener)                            // /mcp, /mcp/s/NAME, /healthz, /readyz
//	err := serve.Stdio(ctx, serve.Options{Service: service}, serve.Principal{}, serve.Path{}, os.Stdin, os.Stdout)
//
// Guarantees:
//
//   - One endpoint serves both eras at once: an agent that begins with initialize has a session of the legacy era, and a
//     request whose _meta names a version is one of the modern era.
//   - Each request has exactly one answer, and none if its agent takes it back by a notification first: over HTTP its stream then ends,
//     without an event if there was none. A second request with the id of one that runs is refused, and changes nothing.
//   - Ids are those of one hop: the service never sees the id of another agent, and an agent never that of a server.
//   - A session belongs to the principal and to the path that opened it; for everybody else it does not exist.
//   - What an agent may make the process hold is bounded: bodies, sessions, requests, open questions, and what waits for an
//     agent that does not read. Notices that no longer fit are dropped; of an answer that no longer fits only an error comes, which says so.
//     An agent that has read nearly everything gets each answer.
//   - An agent of the legacy era whose connection is lost while a request has a stream fetches the rest and the answer, by GET and
//     Last-Event-ID, in its session only; and so the notices of its session that were written to a lost connection, from the first one on
//     in 2025-11-25.
//   - A request over HTTP is refused whose Host or Origin is not expected, before its body is read.
//
// Not promised: that a notice reaches an agent that has no stream open. A list that changed meanwhile is told once when the
// stream comes; log messages are lost. Batches of JSON-RPC are refused, as all versions since 2025-06-18 demand. What a session
// keeps for an agent that reconnects is 128 events and 256 KB, all sessions 64 MB; an answer that was no stream, because it came within
// the first fifteen seconds and nothing came before it, is not kept.
//
// # How it fits
//
// Package supervisor/gateway is the service of the command. This package knows of no manager and no catalog: the service says what
// there is.
//
//	http.go       the endpoint: paths, checks of the request, the two eras
//	legacy.go     requests of the legacy era, and the stream of a session
//	modern.go     what a request of the modern era must say of itself
//	session.go    one conversation: its requests, its questions, its notices
//	sessions.go   all sessions: bounds, and the end of idle ones
//	stream.go     the answer to one POST: JSON, or a stream of events as soon as there is more than the answer
//	replay.go     what the streams of a session have sent, for an agent that reconnects
//	stdio.go      one agent on lines; line_stream.go what is written to it
//	load.go       what the requests of one principal hold
//	unread.go     how much may wait for an agent that does not read
//	message.go    one message, taken apart and written
//	origin.go     Host and Origin; tokens.go bearer tokens; connections.go how many connections there are
//
// Public for the gateway and the command: what it exports may change without notice.
package serve
