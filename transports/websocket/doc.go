// Package websocket connects to remote servers over a WebSocket: one message per text frame, subprotocol "mcp".
//
//	t := websocket.New(websocket.Config{URL: "wss://example.com/mcp", Auth: authorizer})
//	conn, err := t.Dial(ctx, sink)
//
// # How it fits
//
// The handshake is a request like any other of a remote server (transports/internal/origin): the same headers, credentials and
// rules for redirects. After it, one goroutine reads frames for the sink, another one writes while something is queued, and a
// timer pings a server that is silent.
//
//	Send ──> writeQueue ──> frames ──> server
//	Sink <── reader <────── frames <──┘   keepalive: ping, or down after three silences
//
// # Guarantees
//
// Those of package transports, and further: a server that gives no sign of life for three times [Config].Ping is down, also if no
// packet says so.
//
// Not promised: that what the server would have said after the stream broke is said again; no stream is resumed.
package websocket
