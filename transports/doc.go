// Package transports moves JSON-RPC messages between this process and one server: bytes in, bytes out. One file per
// kind, behind one small interface:
//
//	Transport.Dial opens a Conn;  Conn.Send writes;  a Sink receives;  Conn.Close releases
//
// It knows the frames of each kind (lines, server-sent events, HTTP status and headers) and nothing of what the messages
// say. Restarting and retrying are decided by the packages above (actors, supervisor/restart), protocol versions by
// transports/session: a Conn that ends stays ended.
//
// Guarantees, for every kind (package transporttest checks each of them):
//
//   - Send reports whether the message was not written, maybe written, or written, and never blocks past its context.
//   - Sink.Down is called exactly once, after the last message that the peer delivered before its end.
//   - One incoming message never occupies more than the configured limit; a longer one costs itself, not the connection.
//   - After Close, or the peer's end, everything the connection held is released within a bound: Released is closed.
//   - No header value, environment value or token appears in an error or in Info, except Info.SessionID.
//
// Not promised: that a message which was Written was read, that two messages sent concurrently arrive in any order.
package transports
