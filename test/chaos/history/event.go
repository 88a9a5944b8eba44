// Package history is the record of one run: what the manager published, what the servers saw, what the callers got.
//
// # How it fits
//
// The simulation (package sim) and the real tier (package live) write the events with a [Recorder]. The invariants are
// functions of a [History], the reports are drawn from it, and two runs of one seed in the simulation have the same, byte for
// byte. A History can be written to a file and read again (History.Write, [Read]); its values in files are stable, also where
// names in the code have changed.
//
//	sim, live --Recorder.Add--> History --Index--> invariant, report
//	                               |
//	                             Write <-> Read
//
// # Not promised
//
// Bodies of messages: a history says that a request came and how it ended. What is judged by its content is judged when it comes
// (package sent).
package history

import (
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Side says who saw an event.
type Side string

const (
	// Manager events are what the manager published: phases, snapshots, reports of calls.
	Manager Side = "manager"
	// World events are what the servers saw. They do not depend on the manager's own statements.
	World Side = "world"
	// Caller events are what the callers of tools did and got.
	Caller Side = "caller"
	// Owner events are the owner's commands to the manager, and its answers.
	Owner Side = "owner"
	// Harness events are what the harness did and measured.
	Harness Side = "harness"
	// Agent events are what agents sent to a gateway and got from it.
	Agent Side = "agent"
)

// Kind says what happened. The comments name the fields that are set beside T, Seq, Order and Server.
type Kind string

const (
	// Manager side.
	Phase        Kind = "phase"    // Phase, Step, Retry, Next, Class, Attempts, Epoch, Warm, Restarts, Since, Tools, Text (the error, as published)
	Snapshot     Kind = "snapshot" // Generation, Hash, Entries; Server is ""
	Removed      Kind = "removed"
	Auth         Kind = "auth"    // a sign-in or a provided credential
	CallReported Kind = "told"    // Method (call-started or call-ended), Tool, Outcome, Took: a watcher got the event of a call
	Updated      Kind = "updated" // a watcher got the event of a changed resource
	ListTold     Kind = "listing" // Method (resources or prompts): a watcher got the event of a changed list
	Log          Kind = "log"     // Text: one line of the manager's log, level first; recorded only if it holds a canary or a control character

	// World side. Conn numbers the openings of one server, from 1.
	Open     Kind = "open"     // Conn: a dial has arrived
	Opened   Kind = "opened"   // Conn: the dial succeeded; Text: a process id in the real tier
	Refused  Kind = "refused"  // Conn, Class, RetryAfter: the dial failed; nothing is left of it
	Received Kind = "received" // Conn, Method, ID (of a request), Call, Cursor, Task, About (the URI of a subscription, the ID of the request that is cancelled), Level (that a client asks for), Text (the whole message if the run is verbose)
	Answered Kind = "answered" // Conn, Method, ID, Call, Task, Deadline (the end of the time to live of the task that a call became); Code (a JSON-RPC error's code or an HTTP status, 0 for a result), RetryAfter
	Executed Kind = "executed" // Conn, Tool, Call, Value: the tool ran; Value counts the executions of the tool at this server, over all connections
	Listed   Kind = "listed"   // Conn, Rev: the last page of a tools/list of the true list Rev has been sent
	Changed  Kind = "changed"  // Rev, Hash, Names: the server's true list has changed (rev 1 is the first)
	Notified Kind = "notified" // Conn, Method: the server sent a notification; Level and Call of a log message; Task and Name (its state) of the status of a task
	Offered  Kind = "offered"  // Rev: the server's resources and prompts have changed (rev 1 is the first)
	Down     Kind = "down"     // Conn, Class, RetryAfter, Text: the server's side ended (crash, kill, reset, 404 …)
	Released Kind = "released" // Conn: nothing of the connection is left, neither process nor socket
	Inquiry  Kind = "inquiry"  // Conn, Method, ID, Call, Name (url: it sends the person to an address), Hash (of what is asked): a server of the legacy era asks its client about a call
	Inquired Kind = "inquired" // Conn, Method, ID, Call, Code (0 for a result), Hash: the answer to that has come
	Measured Kind = "measured" // Conn, Ran, Waited: somebody read how long the processes ran, and waited for a processor, since they began

	// Caller side.
	Call    Kind = "call" // Call, Tool, Size, Deadline, By
	GivenUp Kind = "left" // Call, Tool: its caller gives it up before its end
	End     Kind = "end"  // Call, Tool, Outcome, Class, Conn and Value (from the result), Text (the error), Took, Name

	Reading Kind = "read"     // Call, Method (what is read)
	ReadEnd Kind = "read-end" // Call, Method, Class, Rev (the state that was read), Took

	// Owner side.
	Command Kind = "command" // Command (its number in the plan), Method (what to do)
	Done    Kind = "done"    // Command, Method, Class, Text (the error); in the simulation Tools and Hash (what the catalog showed of the server then)

	// Agent side: Agent is the agent, By its principal; Epoch numbers its sessions, from 1.
	Joined     Kind = "joined"      // Name (legacy or modern, lines or http), Text (its path), Names (what it can be asked): a session has begun
	Parted     Kind = "parted"      // Text: a session has ended, and with it what was asked in it
	Asked      Kind = "asked"       // ID, Method, About (the call, the URI, the prompt), Name (what is wrong with the request on purpose), Level
	Replied    Kind = "replied"     // ID, Method, About, Code (of the error, or the status), Outcome (as the answer says), Entries (of a list of tools; without a Hash where a name is shortened), Rev (the state of a resource or prompt that was read), Name, Text
	Noticed    Kind = "noticed"     // Method, About (the URI, the call of a progress token, the id of the subscription, the call of a log message), Level: a notification
	Ended      Kind = "ended"       // ID, Method: the agent ends a request that stands
	Tasked     Kind = "tasked"      // About (the call), Deadline (the end of its time to live): an agent has taken a call over as a task
	Retimed    Kind = "retimed"     // About (the call), Deadline: the gateway says another end of the time to live of a task; no Agent
	StreamCut  Kind = "stream-cut"  // the connection breaks on which a session gets what belongs to no request; with ID, Method and About that of a request
	StreamBack Kind = "stream-back" // ID, Method, About: there is another one
	Consulted  Kind = "consulted"   // Method, About (the call that the question names), Hash (of what is asked): a question, in a request or in an answer that wants input
	Advised    Kind = "advised"     // Method, About, Code (0 for a result), Hash: the agent's answer to it
	Questioned Kind = "questioned"  // Method, About (the call that the question names), ID (the request in whose exchange it came, over HTTP): a server's question

	// Harness.
	FaultOn   Kind = "fault-on"  // Fault, Name; BrokenActor is no fault of the plan
	FaultOff  Kind = "fault-off" // Fault, Name
	Fired     Kind = "fired"     // Fault, Name, Conn: the fault had an effect
	Heal      Kind = "heal"      // every fault has ended
	Closing   Kind = "closing"   // Manager.Close begins
	Closed    Kind = "closed"    // Text: its error
	Resources Kind = "house"     // House: what the process holds; Text: "baseline", "before close", "after close"
	Violation Kind = "violation" // Name (an invariant), Text: a violation that only the harness could see while it happened
	Canary    Kind = "canary"    // Text: where a secret or a control character came out
	Status    Kind = "status"    // as Phase, with the occasion as Text: the status that a caller reads at that time, beside the Phase events
)

// BrokenActor is the Name of the FaultOn and FaultOff with which the simulation records that it broke an actor of the manager: that of
// Server, or the registry if that is empty.
const BrokenActor = "broken-actor"

// Foreign is the Rev of a ReadEnd whose text its server never gives: it belongs to another server, or to none.
const Foreign = -1

// The Names of a Replied that is no answer: the exchange of the request is over without one, or the agent has ended it itself.
const (
	NoAnswer  = "no-answer"
	TakenBack = "taken-back"
)

// Abandoned is the Name of a Parted of which the endpoint was not told: the session over HTTP stands until it was idle for long enough.
const Abandoned = "abandoned"

// Untaken is the Name of the End of a call that never came to the manager, because the session of its agent had ended: the harness ends it,
// some time later; or because the view of the agent hides its tool.
const Untaken = "untaken"

// Unseen is the Name of the End of a call that may go on without its agent: the agent has it as a task, and can ask about it no more, or took it back in the
// moment in which it was asked for input.
const Unseen = "unseen"

// Hung is the name of the Violation that ends the history of a run which did not end by itself.
const Hung = "hung"

// Event is one thing that happened. Fields that its Kind does not name are zero.
type Event struct {
	// T is the time since the start of the run: virtual in the simulation, monotonic in the real tier.
	T time.Duration `json:"t"`
	// Server is the server that the event is about; empty for the manager, the machine or the harness.
	Server string `json:"server,omitempty"`
	// Seq counts the events of one server in the written form, from 1.
	Seq int `json:"seq"`
	// Order is the place of the event in the record, over all servers; causes come before effects. The canonical form does not
	// hold it, because events of one instant stand in a fixed order there. In a History that was read it is the place in the
	// file.
	Order int  `json:"-"`
	Side  Side `json:"side"`
	Kind  Kind `json:"kind"`

	Phase    messages.Phase   `json:"phase,omitempty"`
	Step     messages.Step    `json:"step,omitempty"`
	Retry    messages.Retry   `json:"retry,omitempty"`
	Next     time.Duration    `json:"next,omitempty"` // when the next attempt is due, since the start of the run
	Class    messages.Class   `json:"class,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	Epoch    uint64           `json:"epoch,omitempty"`
	Warm     bool             `json:"warm,omitempty"`
	Restarts int              `json:"restarts,omitempty"`
	Since    time.Duration    `json:"since,omitempty"` // when the phase began, since the start of the run
	Tools    int              `json:"tools,omitempty"` // how many a status says
	Conn     int              `json:"conn,omitempty"`
	Method   string           `json:"method,omitempty"`
	ID       string           `json:"id,omitempty"`
	Code     int              `json:"code,omitempty"`
	Cursor   bool             `json:"cursor,omitempty"` // a request asks for a further page of a list of tools
	Task     string           `json:"task,omitempty"`   // what a call became by this answer, or a request is about; only in the simulation
	Call     string           `json:"call,omitempty"`
	Tool     string           `json:"tool,omitempty"`
	Size     int              `json:"size,omitempty"`
	Value    int              `json:"value,omitempty"`
	Outcome  messages.Outcome `json:"outcome,omitempty"`
	Deadline time.Duration    `json:"deadline,omitempty"` // since the start of the run, 0: none
	By       string           `json:"by,omitempty"`       // the caller named by supervisor.WithCaller; empty for none
	Agent    string           `json:"agent,omitempty"`    // the agent of a gateway that makes a call, or sees something
	About    string           `json:"about,omitempty"`    // what a message of an agent is about
	Level    string           `json:"level,omitempty"`    // of a log message, or the least severe that a request of an agent wants
	Took     time.Duration    `json:"took,omitempty"`
	// Ran and Waited are times on a processor, and without one.
	Ran    time.Duration `json:"ran,omitempty"`
	Waited time.Duration `json:"waited,omitempty"`
	// RetryAfter is the pause that the server demanded.
	RetryAfter time.Duration  `json:"retryAfter,omitempty"`
	Generation uint64         `json:"generation,omitempty"`
	Rev        int            `json:"rev,omitempty"`
	Hash       string         `json:"hash,omitempty"`
	Names      []string       `json:"names,omitempty"`
	Entries    []Entries      `json:"entries,omitempty"`
	Command    int            `json:"command,omitempty"`
	Fault      int            `json:"fault,omitempty"` // scenario.Planned.ID
	Name       string         `json:"name,omitempty"`
	House      *ResourceUsage `json:"house,omitempty"`
	Text       string         `json:"text,omitempty"`
}

// Entries are the tools of one server in a snapshot that share state and epoch. An event holds only servers whose entries
// differ from the snapshot before; a server that has no tools any more is there with Count 0.
type Entries struct {
	Server string `json:"server"`
	// State is live, cached or lost, as in the manager's catalog.
	State string `json:"state,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	Count int    `json:"count"`
	// Hash is the hash of the sorted names and definitions, made by [HashTools].
	Hash string `json:"hash,omitempty"`
	// Tools are the sorted names, separated by commas; set only where tools of the server may be hidden (scenario.Plan.Hides).
	Tools string `json:"tools,omitempty"`
	// Parts are those that agents see of it because of their views, as [PartsOf] writes them.
	Parts string `json:"parts,omitempty"`
}

// ResourceUsage describes what the process of a run holds.
type ResourceUsage struct {
	Processes   int   `json:"processes"`   // children, and what they started
	Descriptors int   `json:"descriptors"` // open files of this process; 0 where it cannot be counted
	Goroutines  int   `json:"goroutines"`
	Heap        int64 `json:"heap"` // bytes, after a collection; 0 in Sim, where it would differ between runs
	// Lag is the longest delay of a sleeping goroutine since the run began: the times of the record are no more exact than
	// that. 0 in the simulation.
	Lag time.Duration `json:"lag,omitempty"`
	// Left names what is left and should not be.
	Left []string `json:"left,omitempty"`
}

// History is the record of one run. It is used through a pointer, because it caches its index.
type History struct {
	Plan scenario.Plan
	// Events are in the order in which they were recorded, or in canonical order (see Canonical) if they were written, or simulated.
	Events []Event

	// index is made by the first call of Index.
	index atomic.Pointer[Index]
}

// Renewal is added to the number of a Command that no owner gives: the manager connects a server again because other credentials have appeared. Such
// a command has no caller who waits for an answer: the harness records its Done when it sees that the server has settled, which may be later.
const Renewal = 1 << 20
