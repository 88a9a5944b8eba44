package actors

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The methods of requests that links treat differently. The others only need a name of their own.
const (
	CallTool     = "tools/call"
	ReadResource = "resources/read"
	GetPrompt    = "prompts/get"
	TaskResult   = "tasks/result"
)

// Request is one request of a caller to a server: a tool call, or a request of another kind, which has a Send. All of them pass the
// same links, by the same rule for what is sent a second time. It is passed by its address on all of its way, because a goroutine's
// stack must hold every frame: with those of net/http below, a call that waits fits into 8 KiB so, and would need 16 if each
// frame held a copy of the arguments and of the result.
type Request struct {
	// Method is that of the protocol. Server and Name are as the caller gave them, a Name without a Server is a qualified one, until
	// the link that finds sets the server's id and the name there. A resource's Name is its URI.
	Method, Server, Name string
	// Args and Options are those of a tool call, PromptArgs those of a prompt; Options may be nil.
	Args       json.RawMessage
	PromptArgs map[string]string
	Options    *session.Options
	// Problem is why the request cannot be sent, known before any link: the arguments cannot be written.
	Problem error
	// Repeatable lets a request that is no tool call be sent a second time when the first one was lost with its connection: it
	// changes nothing at the server. A tool says so itself. Neither is sent again after the program has answered a question of the
	// server about it (NoteAnswer), because the same person would be asked twice.
	Repeatable bool
	// SkipsQueue is for requests about other requests, or about the connection itself: they take no slot and wait for none, where
	// the server has a bound. SkipsRules is for those among them that read nothing of what the server offers.
	SkipsQueue, SkipsRules bool
	// AwakeOnly is for a request that no caller has made: it connects no server that rests, waits for none, and is no use of one that would
	// rest.
	AwakeOnly bool
	// Recall, if not nil, answers the request in the place of the server, which rests: all that judges a request has let it through by then.
	Recall func() error
	// Send sends a request that is no tool call, and keeps its result object, if it has one, in Answer. It gets the request that is
	// sent, which may be a copy of the one that it was made for; ctx is bounded as the server's spec says. It may be called twice.
	Send func(ctx context.Context, s *session.Session, r *Request) error

	// Instance names the instance of the server that gets the request, empty for the server itself.
	Instance string
	// Entry is the tool that was found, nil for other requests.
	Entry *catalog.Entry
	// Answer is the server's own, Result the object that the caller gets: the same, unless a link replaced it.
	Answer session.Result
	Result json.RawMessage
	Trace  Trace
	// Began is the time at which the audit log's record of the request begins, if it has one.
	Began time.Time

	// wait is how long the request may wait for its server, and mayWake says that it may connect a server that rests. Calls.Find sets
	// both for a tool, Calls.Repeat for other requests.
	wait    time.Duration
	mayWake bool
	// link is the connection of the current attempt, hasSlot says that it holds a slot there.
	link    *Link
	hasSlot bool
	// use counts the request in at its instance, nil without one.
	use *Use
	// callID and published belong to the events of watchers: 0 if no watcher was there at the beginning.
	callID    uint64
	published time.Time
}

// requests keeps tool calls that have ended for the next ones: a Request is passed to functions that only the chain knows, so
// that it would be an allocation of 400 bytes per call.
var requests = sync.Pool{New: func() any { return new(Request) }}

// NewToolCall returns the request to call a tool. Its caller gives it back with Release when it has taken the result.
func NewToolCall(server, tool string) *Request {
	r := requests.Get().(*Request)
	r.Method, r.Server, r.Name = CallTool, server, tool
	return r
}

// Release gives a request back that has ended and that nothing refers to any more.
func (r *Request) Release() {
	*r = Request{}
	requests.Put(r)
}

// toolName returns the tool's own name; empty for a request that is no tool call.
func (r *Request) toolName() string {
	if r.Entry == nil {
		return ""
	}
	return r.Entry.Tool.Name
}

// isRepeatable reports whether the request may run twice. The annotations of a tool are the server's claims: they count only for
// servers that the user trusts.
func (r *Request) isRepeatable(spec *messages.Spec) bool {
	if r.Entry == nil {
		return r.Repeatable
	}
	a := r.Entry.Tool.Annotations
	return spec.Trusted && a != nil && (a.ReadOnly != nil && *a.ReadOnly || a.Idempotent != nil && *a.Idempotent)
}

// Operation is the Op of the request's errors.
func (r *Request) Operation() string { return OperationOf(r.Method) }

// OperationOf is the Op of the errors of a method.
func OperationOf(method string) string {
	if method == CallTool {
		return "call"
	}
	return "read"
}
