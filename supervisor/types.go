package supervisor

import (
	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// The types that a program meets, under one import. They are aliases, so values pass between the packages without conversion.
type (
	// Spec describes a server: how it is reached, what it may do, its timeouts and bounds. All of its fields are in [messages.Spec],
	// and package supervisor/config reads one from a file.
	Spec = messages.Spec
	// Auth says how requests to a remote server are authorised: see [messages.Auth].
	Auth = messages.Auth
	// TLS says how connections to a remote server are made safe: see [messages.TLS].
	TLS = messages.TLS
	// Isolation says what the process of a server is kept from, Enforced what the operating system could enforce of that: see
	// [messages.Isolation] and [messages.Enforced].
	Isolation = messages.Isolation
	Enforced  = messages.Enforced
	// Duration is a time.Duration that is written as text in JSON.
	Duration = messages.Duration
	// Status is the published state of a server: its phase with the reason, its tools, the next attempt. See [messages.Status],
	// and [messages.Phase] for the words.
	Status = messages.Status
	// Tool is one tool of one server: its own name and definition. See [messages.Tool].
	Tool = messages.Tool
	// Event is one message to a watcher: [messages.Event] has the fields, [messages.EventKind] which of them each kind sets.
	Event = messages.Event
	// Error is the one error type of this package: what happened, to which server, how the call ended (Outcome), what it means
	// (Class) and what to do. See [messages.Error], [messages.Outcome] and [messages.Class].
	Error = messages.Error
	// Resource, ResourceTemplate and Prompt are offered by servers beside tools; CompleteRequest and Completion propose
	// values for their arguments.
	Resource         = messages.Resource
	ResourceTemplate = messages.ResourceTemplate
	Prompt           = messages.Prompt
	CompleteRequest  = messages.CompleteRequest
	Completion       = messages.Completion
	// SetServersResult lists what SetServers changed: see [messages.SetServersResult].
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

// The errors that a program compares with errors.Is; an *Error of this package matches those that its outcome and class mean.
var (
	ErrNotSent         = messages.ErrNotSent
	ErrOutcomeUnknown  = messages.ErrOutcomeUnknown
	ErrRejected        = messages.ErrRejected
	ErrNeedsAuth       = messages.ErrNeedsAuth
	ErrNotConnected    = messages.ErrNotConnected
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
