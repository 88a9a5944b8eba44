package fault

import "time"

// Disposition is the decision about one message, which the caller of the flow performs. The zero value of a field
// leaves the message as it is. Several rules may fill one disposition: delays add up, and of other fields the last
// rule counts.
type Disposition struct {
	// Body is the message, changed or not. If Changed is false it is the very bytes that came.
	Body    []byte
	Changed bool
	// After delays the message. Messages with equal delays keep their order.
	After time.Duration
	// Drop keeps the message from arriving. If it is an answer, the request was delivered and stays open.
	Drop bool
	// Lost is set for a message of the client that is dropped where its sender cannot know it: the report of its delivery is then
	// that of a message that was written.
	Lost bool
	// Block names a rule: the connection that carries the message stands still while that rule is in force (see
	// [Flow.Active]); then the message arrives.
	Block string
	// Copies is the number of times that the message arrives beyond the first.
	Copies int
	// Cut is the number of its bytes that arrive, if Torn; the rest never does.
	Cut  int
	Torn bool
	// Stall names a rule: nothing follows a torn message while that rule is in force.
	Stall string
	// If Chunk is not 0, the message is written in pieces of Chunk bytes, one every Every.
	Chunk int
	Every time.Duration
	// Before are messages that the server did not send, and that arrive first.
	Before [][]byte
	// Late are answers that were held back, and that arrive now, after After.
	Late [][]byte
	// Big is a size beyond every limit, in bytes, to which the caller lets the message grow; inside of a program it
	// is only reported, not made.
	Big int64
	// Refuse is the HTTP answer that the client gets instead; nil for none.
	Refuse *Refusal
	// ContentType replaces the Content-Type of the answer, over HTTP.
	ContentType string
	// End is the end of the server's side, before the message arrives, or after it if Last; nil for none.
	End  *End
	Last bool
	// Cutting ends the stream that carries the message, after it.
	Cutting bool
	// Hits are the faults that were done to the message, in the order of the rules.
	Hits []Hit
}

// A Refusal is an HTTP answer that is no MCP. A Status of 0 is a dial that fails; Body then says why.
type Refusal struct {
	Status     int
	RetryAfter time.Duration
	Header     map[string]string
	Body       string
}

// End describes how the server's side ends. The zero value is a clean exit.
type End struct {
	// Code is the exit code of a process, Signal the signal that kills it instead.
	Code   int
	Signal string
	// Reset ends a socket with a reset instead of a close.
	Reset bool
	// Session is true if the server lives on and only forgets its session.
	Session bool
}

// isUnchanged reports whether the disposition lets the message pass as it is.
func (f *Disposition) isUnchanged() bool {
	return !f.Changed && f.After == 0 && !f.Drop && f.Block == "" && f.Copies == 0 && !f.Torn && f.Chunk == 0 && len(f.Before) == 0 &&
		len(f.Late) == 0 && f.Big == 0 && f.Refuse == nil && f.ContentType == "" && f.End == nil && !f.Cutting
}

// An Event is a fault that happens by the clock and not by a message.
type Event struct {
	Do EventKind
	// Body is the message, the line or the bytes; Call the id (as JSON) of the request that the message belongs to,
	// empty if there is none.
	Body []byte
	Call string
	End  *End
	Hit  Hit
}

// EventKind is the kind of an Event. The comment of each says what the performer of the event does.
type EventKind string

const (
	// Deliver sends Body to the client, as if the server had sent it.
	Deliver EventKind = "deliver"
	// Noise writes a line that is no message to standard output, Raw writes bytes without an end of line, Stderr
	// writes to standard error.
	Noise  EventKind = "noise"
	Raw    EventKind = "raw"
	Stderr EventKind = "stderr"
	// Ending ends the server's side, as Event.End describes.
	Ending EventKind = "end"
	// Stop stops the server's process (SIGSTOP), Continue lets it go on.
	Stop     EventKind = "stop"
	Continue EventKind = "continue"
	// HalfOpen silences the connections that are open now, for ever.
	HalfOpen EventKind = "half-open"
	// CutStreams ends the open streams.
	CutStreams EventKind = "cut"
	// ForgetSession and ForgetToken make the server refuse every session, or credential, that it knows now.
	ForgetSession EventKind = "forget-session"
	ForgetToken   EventKind = "forget-token"
)
