package transports

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Transport is a way to reach one server. A caller may call Dial again after the connection before has been closed; every call
// opens a new connection with fresh state, because a server that was restarted knows nothing of the old one. A Transport is safe
// for concurrent use.
type Transport interface {
	// Kind names the transport.
	Kind() messages.TransportKind
	// Dial opens one connection. It returns as soon as messages can be sent: for a process, once it is started. Incoming traffic
	// goes to sink, from before Dial returns until sink.Down has been called. So the sink must be ready for messages before its
	// owner has the Conn.
	//
	// If ctx ends first, or the opening fails, Dial returns an [*Error] after it has released everything that it had started;
	// there was no connection then, and sink.Down is not called. After Dial has returned, ctx has no influence on the connection.
	Dial(ctx context.Context, sink Sink) (Conn, error)
}

// Conn is one live opening of a transport. All methods are safe for concurrent use.
type Conn interface {
	// Send hands one JSON-RPC message to the peer. For a request over HTTP it blocks until the sink has the answer; for
	// everything else until the message is written. It returns promptly when ctx ends or the connection dies, and says then, as
	// for every error, how far the message got: a caller may send again a message that is NotWritten, and must not repeat a
	// request with side effects that is MaybeWritten. A nil error means Written.
	//
	// The caller may use m.Body again as soon as Send has returned. Send runs in the goroutine of a tool's caller: nothing can free
	// that one from a Send that does not return, or ends the goroutine (runtime.Goexit). A panic is caught.
	Send(ctx context.Context, m Message) (Delivery, error)
	// Negotiated gives the connection the protocol version that the handshake agreed on. The session calls it once, before any
	// message that follows the handshake's answer, because over HTTP every later request must name the version in a header.
	Negotiated(protocolVersion string)
	// Close ends the connection and releases what it holds: processes, descriptors, goroutines. It returns when that is done, or
	// with an error when ctx has ended; the release goes on then, with its own bounds. It is idempotent, and a second caller
	// waits for the first. The transport has called sink.Down before Close returns nil.
	Close(ctx context.Context) error
	// Released is closed when everything that the connection held is gone. This always happens after Close, or after the peer's
	// end, within the transport's own bounds. A supervisor waits for it before it connects anew.
	Released() <-chan struct{}
	// Info describes the connection at this moment. It never blocks, also after the end.
	Info() Info
}

// AsyncSender is a Conn whose Send need not be waited for. A session that waits for the answer to a request uses it: the answer
// itself shows that the request was written, so that the session's goroutine wakes once and not twice per call.
type AsyncSender interface {
	Conn
	// Post begins what Send does, and does not block. If the message is written or refused at once, posting is nil and d and err
	// are what Send returns. Otherwise the caller keeps m.Body unchanged until it has called posting.Leave.
	Post(m Message) (posting PendingPost, d Delivery, err error)
}

// ProcessConn is a Conn whose peer is a process of this machine, together with the processes that this one has started.
type ProcessConn interface {
	Conn
	// Work returns the processor time that they have used since they began. It reads a few files for each of them, and returns an
	// error if they are gone, or if this system keeps no such record.
	Work() (procinfo.Usage, error)
}

// PendingPost is a message that Post has taken and that is not written yet. Its sender owns it until it calls Leave.
type PendingPost interface {
	// Failed returns a channel that lets one receive pass when the message will never be written. The sender selects on it beside
	// the answer that it waits for.
	Failed() <-chan struct{}
	// Leave ends the sender's interest. It says how far the message got, and why not further; the error is nil if only the
	// sender's leaving stopped the message. A message of which no byte was written is taken out of the queue. The sender calls
	// Leave once, and owns the body again afterwards.
	Leave() (Delivery, error)
}

// Sink receives the messages and events of one connection; sessions implement it. Over HTTP several goroutines may call it at
// once. Each call must return quickly, because the goroutine that reads from the peer makes it and reads nothing meanwhile. The
// connection calls nothing after Down.
type Sink interface {
	// Message gets one incoming JSON-RPC message, or a batch. The sink owns body.
	Message(body []byte)
	// Oversized gets the ends of a message that was longer than the limit. The connection has read it to its end and dropped it;
	// head and tail are its first and last bytes (at most 4 KiB each), from which a session can often still read the id of the
	// call that failed. size is the number of bytes seen.
	Oversized(head, tail []byte, size int64)
	// Noise gets a line on a process's standard output that cannot be JSON-RPC: at most its first 256 bytes, without secrets.
	Noise(line []byte)
	// Down is called exactly once, after the last Message: nothing will be sent or received any more. err is an [*Error] which
	// says why; its class is ClassCanceled if Close caused it.
	Down(err error)
}

// StreamReopenSink is a Sink that wants to know when notifications may have been lost. A connection checks once, when it begins,
// whether its sink implements it; a sink that wraps another one must pass the method on.
type StreamReopenSink interface {
	// StreamReopened is called when the server's unasked messages arrive again after a time in which they could not, and when the
	// server will not send again what it sent meanwhile. In the legacy era of HTTP that is so when the GET stream was opened
	// again and the server does not number its events, or no longer knows the last one; and when that stream could not be opened
	// right after the handshake. A session that keeps the server's lists then reads them again. The call is made like Message,
	// and must return quickly.
	StreamReopened()
}

// RequestStreamSink is a Sink that wants to know on which request's own stream a message came, because a message on such a stream
// belongs to that call. A connection that has such streams (HTTP, legacy era) calls MessageOn for these messages in place of
// Message. A sink that wraps another one may leave it out: it gets the same messages by Message then, without the id.
type RequestStreamSink interface {
	// MessageOn gets one message like Message; id is that of the request on whose stream the message came.
	MessageOn(id int64, body []byte)
}

// Message is one outgoing JSON-RPC message.
type Message struct {
	// ID is the id of a request that expects an answer, 0 for a notification or a response. Ids are positive.
	ID int64
	// Method is empty for a response. Name is the tool, prompt or URI that the request is about, if any. Both are also in Body;
	// they are given apart so that the transport need not parse it.
	Method, Name string
	// Body is the message, without a newline in it.
	Body []byte
	// Version is the protocol version in the message's _meta, set for every message of the modern era (2026-07-28 on), else
	// empty. Over HTTP it decides the headers (MCP-Protocol-Version, Mcp-Method, and Mcp-Name from Name), and that there is no
	// session, GET or DELETE.
	//
	// The session posts notifications/cancelled in both eras, and each transport does with it what its era asks for: over HTTP in
	// the modern era Send returns Written and nil without sending it, because the end of the context of the request's own Send
	// closes the response stream there, which is the cancellation.
	Version string
	// Header has further headers for this message over HTTP (Mcp-Param-…), already encoded; other transports ignore it.
	Header map[string]string
	// Caller names the caller on whose behalf the message is sent (messages.WithCaller); of what belongs to no call, the one that
	// Dial's context named. It never reaches the peer by itself: an in-process server gets it, and over HTTP the Authorizer finds it
	// in its context.
	Caller string
}

// Delivery says how far an outgoing message got, and with that whether it may be sent once more.
type Delivery int

const (
	// NotWritten means that no byte of it left this process. The peer cannot have seen it, so that a repetition is safe.
	NotWritten Delivery = iota
	// MaybeWritten means that some or all of it may have reached the peer, which may have acted on it.
	MaybeWritten
	// Written means that all of it was handed to the operating system or to the peer.
	Written
)

// String returns the name of d in lower case, for logs.
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

// Info describes a connection at one moment. What does not apply to its kind is zero.
type Info struct {
	// PID is the child's process id, 0 if there is no child or if it has been reaped.
	PID int
	// StderrTail is the last part of the child's standard error, as it was written except for hidden secrets. It may hold control
	// characters: escape it before you show it. Until the child's first message, what it printed to standard output stands before
	// it, because some programs say there why they end.
	StderrTail string
	// Noise counts the lines that were given to Sink.Noise.
	Noise int64
	// Isolation lists what the child is kept from, nil if its configuration asks for nothing.
	Isolation *messages.Enforced
	// Exit says how the child ended ("exit status 1", "signal: killed"), empty while it runs.
	Exit string
	// SessionID is the HTTP session's id. It is a credential: never log it.
	SessionID string
}

// Error is the one error type of this boundary: the transports translate every foreign error (os, exec, net, http) into it once,
// so that the packages above decide by Class alone.
type Error struct {
	// Class decides the next step of the actor: reconnect, sign in, give up, or wait.
	Class messages.Class
	// Text is one sentence without a final full stop, for a person; Fix says what to do, or is empty. Neither holds a secret.
	Text, Fix string
	// Status is the HTTP status with which the server refused this very message or this opening, 0 if there is none: an exchange
	// that was cut off because the connection ended for another reason has none. Body is the start of the response's body (at
	// most 4 KiB, or 64 KiB if it holds a JSON-RPC error). It is kept because a JSON-RPC error in it says more than the status.
	Status int
	Body   []byte
	// RetryAfter is the time that the server asked the client to wait, 0 if it did not.
	RetryAfter time.Duration
	// Challenge is parsed from the header WWW-Authenticate, nil if there was none. It says how to sign in.
	Challenge *messages.Challenge
	// Err is the cause, nil if the transport itself found the failure.
	Err error
}

// Error implements error. The text is for a person, and ends with the advice if there is one.
func (e *Error) Error() string {
	if e.Fix != "" {
		return e.Text + "; " + e.Fix
	}
	return e.Text
}

// Unwrap returns the cause, so that errors.Is finds context.DeadlineExceeded, syscall numbers and the like.
func (e *Error) Unwrap() error { return e.Err }

// DiscardSink is a Sink that wants to know which messages were discarded because the server's share of the memory was used up,
// and not because of the limit. A sink that wraps another one may leave it out: it gets Oversized in both cases then.
type DiscardSink interface {
	// Discarded gets the same as Oversized.
	Discarded(head, tail []byte, size int64)
}
