// Package web connects to remote servers over HTTP: streamable HTTP in both eras of the protocol ([NewHTTP]), the older HTTP+SSE
// ([NewSSE]), and a proxy that stands before the connectors of an account ([NewClaudeAI]).
//
//	t := web.NewHTTP(web.Config{URL: "https://example.com/mcp", Auth: authorizer})
//	conn, err := t.Dial(ctx, sink)
//
// # How it fits
//
// A connection is made of exchanges: each message is a POST, whose answer comes as one JSON document or as a stream of events, on
// its own response or on another one of the connection. [HTTP] opens nothing before the first message; what falls back to [SSE]
// goes on with the same sink.
//
//	Send ──> exchange ──> internal/origin: headers, credentials, redirects ──> server
//	                          │ response
//	Sink <── message <── internal/eventstream, or one JSON document
//
// # Guarantees
//
// Those of package transports, and further: no request and no credentials go to another origin than that of the URL. An answer is
// waited for as long as the Send that asks for it; a Send returns once its answer has reached the sink, on whichever stream.
//
// Not promised: that notifications which a legacy server says while its stream is broken arrive later.
package web
