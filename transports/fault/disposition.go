package fault

import "time"

// Disposition is what becomes of one message. What is not said stays as it is.
type Disposition struct {
	// Body is the message, changed or not. Changed says which; the very bytes pass if not.
	Body    []byte
	Changed bool
	// After delays it. Messages with equal delays keep their order.
	After time.Duration
	// Drop: it does not arrive. Of an answer, the request was delivered and stays open.
	Drop bool
	// Block names a rule: what carries it stands still while that is in force (see Flow.Active); then it arrives.
	Block string
	// Copies is how often it arrives beyond the first time.
	Copies int
	// Cut is how many bytes of it arrive, if Torn; the rest never does.
	Cut  int
	Torn bool
	// Stall names a rule: nothing follows what is torn while that is in force.
	Stall string
	// Chunk bytes are written every Every, if Chunk is not 0.
	Chunk int
	Every time.Duration
	// Before are messages that the server did not send, and that arrive first.
	Before [][]byte
	// Late are answers that were held back, and that arrive now, after After.
	Late [][]byte
	// Big is a size beyond every limit that the message has grown to (inside of a program, where it is not made).
	Big int64
	// Refuse is the HTTP status that the server answers with instead.
	Refuse *Refusal
	// ContentType is what the answer claims to be, over HTTP.
	ContentType string
	// End is the end of the server's side, before the message arrives, or after it if Last.
	End  *End
	Last bool
	// Cutting ends the stream that it comes on, after it.
	Cutting bool
	// Hits are the faults that were done.
	Hits []Hit
}

// Refusal is an answer of HTTP that is no MCP.
type Refusal struct {
	Status     int
	RetryAfter time.Duration
	Header     map[string]string
	Body       string
}

// End is how the server's side ends.
type End struct {
	// Code is the exit code of a process, Signal the signal that it dies of instead.
	Code   int
	Signal string
	// Reset ends a socket with a reset.
	Reset bool
	// Session: the server lives, and does not know its session any more.
	Session bool
}

// isUnchanged reports that nothing is to be done.
func (f *Disposition) isUnchanged() bool {
	return !f.Changed && f.After == 0 && !f.Drop && f.Block == "" && f.Copies == 0 && !f.Torn && f.Chunk == 0 && len(f.Before) == 0 &&
		len(f.Late) == 0 && f.Big == 0 && f.Refuse == nil && f.ContentType == "" && f.End == nil && !f.Cutting
}

// Event is something that happens by the clock, not by a message.
type Event struct {
	Do EventKind
	// Body is the message, the line or the bytes; Call the id (as JSON) of the request that it belongs to, if any.
	Body []byte
	Call string
	End  *End
	Hit  Hit
}

// EventKind says what an Event is.
type EventKind string

const (
	// Deliver sends a message to the client, as if the server had.
	Deliver EventKind = "deliver"
	// Noise writes a line that is no message, Raw bytes without an end of line, Stderr to standard error.
	Noise  EventKind = "noise"
	Raw    EventKind = "raw"
	Stderr EventKind = "stderr"
	// Ending ends the server's side.
	Ending EventKind = "end"
	// Stop stops the server's process, Continue lets it go on.
	Stop     EventKind = "stop"
	Continue EventKind = "continue"
	// HalfOpen silences the connections that are open.
	HalfOpen EventKind = "half-open"
	// Cut cuts the open streams.
	Cut EventKind = "cut"
	// ForgetSession and ForgetToken let the server forget every session, or credential, that it knows now.
	ForgetSession EventKind = "forget-session"
	ForgetToken   EventKind = "forget-token"
)
