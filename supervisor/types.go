package supervisor

import (
	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// The types that a program meets, under one import. They are aliases, so values pass between the packages without conversion.
type (
	// Spec describes a server. Command, Args, Env and Cwd start one as a process; URL, Headers and Auth reach one over the network;
	// Name finds one of this program. Type says which, where that leaves it open. Then come the bounds (ConnectTimeout, CallTimeout,
	// MaxInFlight, MaxMessage), the tools (AllowedTools, DeniedTools, Trusted, Pin) when it runs (Disabled, Connect, IdleTimeout),
	// and whose it is (Share, MaxInstances, InstanceIdle: see [SharePrincipal]).
	// The zero value of each field is its default, which [messages.Spec] tells. Package supervisor/config reads one from a file.
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
	// Status is the published state of a server at one moment: Name, Status (a [messages.Phase]: pending, connected, failed,
	// needs-auth, disabled) with Reason and Error for persons and Step, Class and Retry for programs, NextAttempt, Tools,
	// InFlight, StderrTail and more. Manager.Status returns it, and events carry it. See [messages.Status].
	Status = messages.Status
	// Tool is one tool of one server: Server and Name, the Description and InputSchema for a model, the server's Annotations, and the
	// whole definition as it was listed in Raw. An [Entry] of a Snapshot has one. See [messages.Tool].
	Tool = messages.Tool
	// Event is one message to a watcher: Seq and Time, the Kind, and what it is about: the Server with its Status, a call with its
	// Outcome, the Generation of the catalog, a URI, a log line. [messages.EventKind] says which fields each kind sets.
	Event = messages.Event
	// Error is the one error type of this package: what happened (Text) and what to do (Fix), to which Server and Tool, how the call
	// ended (Outcome: not sent, rejected, unknown) and what it means (Class). Its method MayRetry says whether the same call may be
	// made again, and when. errors.As finds it in every error of a method, errors.Is compares it with the Err… values. See
	// [messages.Error], [messages.Outcome] and [messages.Class].
	//
	//	Error() string
	//	Is(target error) bool
	//	MayRetry() (at time.Time, ok bool)
	//	Unwrap() error
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
	// Snapshot is the set of tools at one moment, immutable and without a lock: All, Len, Lookup by qualified name, Server for those of
	// one server, and Generation, which rises with each change. Manager.Tools returns the newest. Some of its methods; the others are with
	// [catalog.Snapshot]:
	//
	//	All() iter.Seq[*Entry]
	//	Len() int
	//	Lookup(qualified string) (*Entry, bool)
	//	LookupTool(server, tool string) (*Entry, bool)
	//	Server(server string) []*Entry
	//	Servers() []string
	//	Generation() uint64
	Snapshot = catalog.Snapshot
	// Entry is one tool of a Snapshot: its qualified Name, which a model sees and CallTool takes, the Tool itself, and its State: live,
	// cached (its server rests), or lost (its server is on the way back). See [catalog.Entry].
	Entry = catalog.Entry
	// Watcher receives events in order: Next waits for one, Events ranges over them, Close ends both. A slow one is told by
	// [messages.EventGap] how many it lost. Manager.Watch makes it; one goroutine reads it. See [actors.Watcher].
	//
	//	Next(ctx context.Context) (Event, error)
	//	Events(ctx context.Context) iter.Seq[Event]
	//	WithoutCalls() *Watcher
	//	Close()
	Watcher = actors.Watcher
	// HistoryEntry is one sentence about a server's past: see [actors.Entry].
	HistoryEntry = actors.Entry
)

// The errors that a program compares with errors.Is; an *Error of this package matches those that its outcome and class mean.
var (
	ErrNotSent         = messages.ErrNotSent
	ErrCallerRefused   = messages.ErrCallerRefused
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

	ErrTooManyInstances = messages.ErrTooManyInstances
)
