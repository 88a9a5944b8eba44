package supervisor

import (
	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// The vocabulary, so that an embedding program imports one package.
type (
	// Spec describes a server: how it is reached, what it may do, its timeouts and bounds. All of its fields are in [messages.Spec],
	// and package supervisor/config reads one from a file.
	Spec = messages.Spec
	// Auth says how requests to a remote server are authorised: see [messages.Auth].
	Auth = messages.Auth
	// TLS says how connections to a remote server are made safe: see [messages.TLS].
	TLS = messages.TLS
	// Isolation is what the process of a server is kept from, Enforced what became of that: see [messages.Isolation] and
	// [messages.Enforced].
	Isolation = messages.Isolation
	Enforced  = messages.Enforced
	// Duration is a time.Duration that is text in JSON.
	Duration = messages.Duration
	// Status is what is published about a server: its phase with the reason, its tools, the next attempt. See [messages.Status],
	// and [messages.Phase] for the words.
	Status = messages.Status
	// Tool is one tool of one server: its own name and definition. See [messages.Tool].
	Tool = messages.Tool
	// Event is what a watcher sees: [messages.Event] has the fields, [messages.EventKind] which of them each kind sets.
	Event = messages.Event
	// Error is the one error type of this package: what happened, to which server, how the call ended (Outcome), what it means
	// (Class) and what to do. See [messages.Error], [messages.Outcome] and [messages.Class].
	Error = messages.Error
	// Resource, ResourceTemplate and Prompt are what servers offer beside tools; CompleteRequest and Completion are about
	// the values of their arguments.
	Resource         = messages.Resource
	ResourceTemplate = messages.ResourceTemplate
	Prompt           = messages.Prompt
	CompleteRequest  = messages.CompleteRequest
	Completion       = messages.Completion
	// SetServersResult tells what SetServers changed: see [messages.SetServersResult].
	SetServersResult = messages.SetServersResult
	// Snapshot is one immutable generation of the catalog, with its methods in [catalog.Snapshot]; Entry is a tool in it, live,
	// cached or lost: see [catalog.Entry].
	Snapshot = catalog.Snapshot
	Entry    = catalog.Entry
	// Watcher receives events in order, by Next or Events: see [actors.Watcher].
	Watcher = actors.Watcher
	// HistoryEntry is one sentence about a server's past: see [actors.Entry].
	HistoryEntry = actors.Entry
)

// Errors to be used with errors.Is.
var (
	ErrNotSent         = messages.ErrNotSent
	ErrOutcomeUnknown  = messages.ErrOutcomeUnknown
	ErrRejected        = messages.ErrRejected
	ErrNeedsAuth       = messages.ErrNeedsAuth
	ErrDenied          = messages.ErrDenied
	ErrInvalid         = messages.ErrInvalid
	ErrUnknownServer   = messages.ErrUnknownServer
	ErrUnknownTool     = messages.ErrUnknownTool
	ErrUnknownResource = messages.ErrUnknownResource
	ErrUnknownPrompt   = messages.ErrUnknownPrompt
	ErrDisabled        = messages.ErrDisabled
	ErrMemory          = messages.ErrMemory
	ErrQueueFull       = messages.ErrQueueFull
	ErrClosed          = messages.ErrClosed
)
