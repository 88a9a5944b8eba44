package messages

import "time"

// EventKind says what happened, and so which fields of an Event are set.
type EventKind string

const (
	// EventPhase: a server's published status changed in phase, step or schedule. Status is set.
	EventPhase EventKind = "phase"
	// EventTools: the catalog changed. Generation is set, and Server if one server caused it.
	EventTools EventKind = "tools"
	// EventCallStarted and EventCallEnded frame one call. CallID, Tool and, at the end, Outcome and Took are set.
	EventCallStarted EventKind = "call-started"
	EventCallEnded   EventKind = "call-ended"
	// EventRemoved: a server is not configured any more and its connection is closed.
	EventRemoved EventKind = "removed"
	// EventAuthRequired: a server moved to needs-auth. Status holds the challenge.
	EventAuthRequired EventKind = "auth-required"
	// EventAuth: a person signed in to a server or out of it, or a program provided a token. Server is set.
	EventAuth EventKind = "auth"
	// EventPins: the definitions of a server's tools differ from those that were approved, or do so no more. Server is
	// set, and Changed to all that wait for an approval now. There is one event for each change, not for each list.
	EventPins EventKind = "pins"
	// EventResources and EventPrompts: a server's list of resources or prompts changed. Server is set.
	EventResources EventKind = "resources"
	EventPrompts   EventKind = "prompts"
	// EventResourceUpdated: a resource that was subscribed to changed. Server and URI are set.
	EventResourceUpdated EventKind = "resource-updated"
	// EventLog: a server sent a log message. Server and Log are set.
	EventLog EventKind = "log"
	// EventUnheard: a server asked the person or the model more often than it may, and was refused without being heard. Server is
	// set, and Missed is how often that happened since the event before; there is one a minute at most for each server and kind.
	EventUnheard EventKind = "unheard"
	// EventGap: this watcher was too slow; Missed events were dropped between the one before and the one after.
	EventGap EventKind = "gap"
)

// Event is one thing that happened. Events of one watcher arrive in the order in which they happened; Seq rises by one
// for each event of a manager, so that a gap can be seen. EventKind says which of the other fields are set: of EventPhase it is
// Status, whose own field Status is the phase.
type Event struct {
	Seq        uint64    `json:"seq"`
	Time       time.Time `json:"time"`
	Kind       EventKind `json:"kind"`
	Server     string    `json:"server,omitempty"`
	Status     *Status   `json:"status,omitempty"`
	Generation uint64    `json:"generation,omitempty"`
	CallID     uint64    `json:"callId,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Took       Duration  `json:"took,omitempty"`
	URI        string    `json:"uri,omitempty"`
	Log        *LogEntry `json:"log,omitempty"`
	Missed     uint64    `json:"missed,omitempty"`
	// Changed are the tools of EventPins.
	Changed []ChangedTool `json:"changed,omitempty"`
}
