package supervisor

import (
	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// The vocabulary, so that an embedding program imports one package.
type (
	// Spec describes a server.
	Spec = messages.Spec
	// Auth says how requests to a remote server are authorised.
	Auth = messages.Auth
	// TLS says how connections to a remote server are made safe.
	TLS = messages.TLS
	// Isolation is what the process of a server is kept from, Enforced what became of that.
	Isolation = messages.Isolation
	Enforced  = messages.Enforced
	// Duration is a time.Duration that is text in JSON.
	Duration = messages.Duration
	// Status is what is published about a server.
	Status = messages.Status
	// Tool is one tool of one server.
	Tool = messages.Tool
	// Event is what a watcher sees.
	Event = messages.Event
	// Error is the one error type of this package.
	Error = messages.Error
	// Resource, ResourceTemplate and Prompt are what servers offer beside tools; CompleteRequest and Completion are about
	// the values of their arguments.
	Resource         = messages.Resource
	ResourceTemplate = messages.ResourceTemplate
	Prompt           = messages.Prompt
	CompleteRequest  = messages.CompleteRequest
	Completion       = messages.Completion
	// SetServersResult tells what SetServers changed.
	SetServersResult = messages.SetServersResult
	// Snapshot is one immutable generation of the catalog; Entry is a tool in it.
	Snapshot = catalog.Snapshot
	Entry    = catalog.Entry
	// Watcher receives events in order.
	Watcher = actors.Watcher
	// HistoryEntry is one sentence about a server's past.
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
