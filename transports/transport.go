package transports

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Transport is a way to reach one server. Dial may be called again after the connection before has been closed; every
// call opens a new connection with fresh state. A Transport is safe for concurrent use.
type Transport interface {
	// Kind names the transport.
	Kind() messages.TransportKind
	// Dial opens one connection. It returns as soon as messages can be sent: for a process, once it is started.
	// Incoming traffic goes to sink, from before Dial returns until sink.Down has been called. If ctx ends first, or
	// the opening fails, everything that was started has been released when Dial returns an error, which is an *Error;
	// there was no connection then, and sink.Down is not called.
	// After Dial has returned, ctx has no influence on the connection.
	Dial(ctx context.Context, sink Sink) (Conn, error)
}

// Conn is one live opening of a transport. All methods are safe for concurrent use.
type Conn interface {
	// Send hands one JSON-RPC message to the peer. For a request over HTTP it blocks until the answer has been given to
	// the sink; for everything else until the message is written. It returns promptly when ctx ends or the connection
	// dies, and says then, as for every error, how far the message got. A nil error means Written.
	//
	// Send takes no ownership of m.Body after it has returned.
	Send(ctx context.Context, m Message) (Delivery, error)
	// Negotiated tells the connection which protocol version the handshake agreed on. It is called once, before any
	// message that follows the handshake's answer.
	Negotiated(protocolVersion string)
	// Close ends the connection and releases what it holds: processes, descriptors, goroutines. It returns when that is
	// done, or when ctx has ended; the release goes on then, with its own bounds. It is idempotent, and a second caller
	// waits for the first. sink.Down has been called when it returns nil.
	Close(ctx context.Context) error
	// Released is closed when everything the connection held is gone. It follows Close, or the peer's end, within
	// the transport's own bounds, always.
	Released() <-chan struct{}
	// Info returns what is known of the connection now. It never blocks, also after the end.
	Info() Info
}

// AsyncSender is a Conn whose Send need not be waited for: who waits for the answer to a request learns by it that the request
// was written, and is not woken twice.
type AsyncSender interface {
	Conn
	// Post begins what Send does. It does not block. posting is nil if that is done, with what Send returns then.
	Post(m Message) (posting PendingPost, d Delivery, err error)
}

// ProcessConn is a Conn whose other side are processes of this machine.
type ProcessConn interface {
	Conn
	// Work returns the processor time that they have used since they began. It reads a few files for each of them, and fails if they
	// are gone, or if this system does not tell.
	Work() (procinfo.Usage, error)
}

// PendingPost is a message that Post has taken and that is not written yet.
type PendingPost interface {
	// Failed lets one receive pass when the message will not be written any more.
	Failed() <-chan struct{}
	// Leave says how far the message got, and why not further; without an error if nothing but the sender's leaving is the
	// reason. What was not begun is not sent then. It is called once, and the sender's body is its own again afterwards.
	Leave() (Delivery, error)
}

// Sink receives what comes in on one connection. Message calls of one connection may come from several goroutines at
// once (HTTP); each call must return quickly, because it holds up reading. Nothing is called after Down.
type Sink interface {
	// Message is one incoming JSON-RPC message (or batch). The sink owns body.
	Message(body []byte)
	// Oversized is a message longer than the limit. It was read to its end and dropped; head and tail are its first and
	// last bytes (at most 4 KiB each), size the bytes seen.
	Oversized(head, tail []byte, size int64)
	// Noise is a line on a process's standard output that cannot be JSON-RPC: at most its first 256 bytes.
	Noise(line []byte)
	// Down is called exactly once, after the last Message: nothing will be sent or received any more. err is an
	// *Error; its class is ClassCanceled if Close caused it.
	Down(err error)
}

// StreamReopenSink is a Sink that wants to know when notifications may have been lost. A connection looks once whether its sink
// is one; a sink that wraps another one passes it on.
type StreamReopenSink interface {
	// StreamReopened is called when what the server sends unasked is heard again after a time in which it was not, if
	// what it sent meanwhile will not come any more: over HTTP in the legacy era, when the stream for it was opened again
	// and the server does not number its events, or does not know the last one any more, and when it could not be opened
	// right after the handshake. A session that keeps what the server offers reads it again then. It is called like Message, and
	// must return quickly.
	StreamReopened()
}

// RequestStreamSink is a Sink that wants to know on which request's own stream a message came. A connection that has such streams
// (HTTP, legacy era) gives it what came there by MessageOn in place of Message. A sink that wraps another one may leave it
// out: Message says the same and less.
type RequestStreamSink interface {
	// MessageOn is Message; id is that of the request on whose stream the message came.
	MessageOn(id int64, body []byte)
}

// Message is one outgoing JSON-RPC message.
type Message struct {
	// ID is the id of a request that expects an answer, 0 for a notification or a response. Ids are positive.
	ID int64
	// Method is empty for a response. Name is the tool, prompt or URI that the request is about, if any.
	Method, Name string
	// Body is the message, without a newline in it.
	Body []byte
	// Version is the protocol version in the message's _meta, set for every message of the modern era (2026-07-28 on),
	// else empty. Over HTTP it decides the headers: MCP-Protocol-Version, Mcp-Method, Mcp-Name (from Name), and that there
	// is no session, GET or DELETE.
	//
	// The session posts notifications/cancelled in both eras, and each transport knows what it means: over HTTP in the
	// modern era it is not sent (Send returns Written and nil), because there the end of the ctx of the request's Send
	// closes its response stream, which is the cancellation.
	Version string
	// Header are further headers for this message over HTTP (Mcp-Param-…), already encoded; other transports ignore it.
	Header map[string]string
}

// Delivery says how far an outgoing message got.
type Delivery int

const (
	// NotWritten: no byte of it left this process. The peer cannot have seen it.
	NotWritten Delivery = iota
	// MaybeWritten: some or all of it may have reached the peer.
	MaybeWritten
	// Written: all of it was handed to the operating system or to the peer.
	Written
)

// String is for logs.
func (d Delivery) String() string {
	switch d {
	case NotWritten:
		return "not written"
	case MaybeWritten:
		return "maybe written"
	case Written:
		return "written"
	}
	return fmt.Sprintf("Delivery(%d)", int(d))
}

// Info describes a connection.
type Info struct {
	// PID is the child's process id, 0 if there is no child.
	PID int
	// StderrTail is the last part of the child's standard error, as it was written: neutralise it before showing it. Until
	// the child's first message, what it printed to standard output stands before it.
	StderrTail string
	// Noise counts the lines that were given to Sink.Noise.
	Noise int64
	// Isolation says what the child is kept from, nil if nothing was asked for.
	Isolation *messages.Enforced
	// Exit says how the child ended ("exit status 1", "signal: killed"), empty while it runs.
	Exit string
	// SessionID is the HTTP session's id. It is a credential: never log it.
	SessionID string
}

// Error is the one error type of this boundary: every foreign error (os, exec, net, http) is translated into it once.
type Error struct {
	// Class says what it means for the next step.
	Class messages.Class
	// Text is one sentence without a final full stop, for a person; Fix says what to do, or is empty. Neither holds a secret.
	Text, Fix string
	// Status is the HTTP status with which the server refused this very message or this opening, 0 if there is none: an
	// exchange that was cut off because the connection ended for another reason has none. Body is the start of the
	// response's body (at most 4 KiB, and 64 KiB if it holds a JSON-RPC error), because such an error says more than the
	// status.
	Status int
	Body   []byte
	// RetryAfter is the time that the server asked us to wait, 0 if it did not.
	RetryAfter time.Duration
	// Challenge is parsed from WWW-Authenticate.
	Challenge *messages.Challenge
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Fix != "" {
		return e.Text + "; " + e.Fix
	}
	return e.Text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
