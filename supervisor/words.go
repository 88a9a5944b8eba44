package supervisor

import "github.com/mcpvisor/mcpvisor/messages"

// The words that a program compares with what it is given, under the same import as the rest. Package messages says what each means.
type (
	// Phase is the state of a server: Status.Status.
	Phase = messages.Phase
	// Outcome is how a call ended: Error.Outcome, Event.Outcome. A sentinel such as ErrNotSent stands for most of them.
	Outcome = messages.Outcome
	// Class is what an error means: Error.Class. Package messages has its values; most programs compare sentinels instead.
	Class = messages.Class
	// EventKind says what an Event is about.
	EventKind = messages.EventKind
	// TransportKind is how a server is reached: Spec.Type, Status.Transport.
	TransportKind = messages.TransportKind
	// Challenge is what a server demands that has refused credentials: Error.Challenge, and an argument of an Authorizer.
	Challenge = messages.Challenge
)

// The phases of a server.
const (
	Pending   = messages.Pending
	Connected = messages.Connected
	Failed    = messages.Failed
	NeedsAuth = messages.NeedsAuth
	Disabled  = messages.Disabled
)

// The outcomes of a call.
const (
	OutcomeResult    = messages.OutcomeResult
	OutcomeToolError = messages.OutcomeToolError
	OutcomeRejected  = messages.OutcomeRejected
	OutcomeNotSent   = messages.OutcomeNotSent
	OutcomeUnknown   = messages.OutcomeUnknown
)

// The kinds of events.
const (
	EventPhase           = messages.EventPhase
	EventTools           = messages.EventTools
	EventCallStarted     = messages.EventCallStarted
	EventCallEnded       = messages.EventCallEnded
	EventRemoved         = messages.EventRemoved
	EventAuthRequired    = messages.EventAuthRequired
	EventAuth            = messages.EventAuth
	EventPins            = messages.EventPins
	EventResources       = messages.EventResources
	EventPrompts         = messages.EventPrompts
	EventResourceUpdated = messages.EventResourceUpdated
	EventLog             = messages.EventLog
	EventUnheard         = messages.EventUnheard
	EventGap             = messages.EventGap
)

// The kinds of transports that a Spec names by its Type, the eras by its Era, Lazy by its Connect; and the answers to a question of a
// server.
const (
	Stdio     = messages.Stdio
	HTTP      = messages.HTTP
	SSE       = messages.SSE
	WebSocket = messages.WebSocket
	SDK       = messages.SDK

	EraLegacy = messages.EraLegacy
	EraModern = messages.EraModern

	Lazy = messages.Lazy

	ElicitAccept  = messages.ElicitAccept
	ElicitDecline = messages.ElicitDecline
	ElicitCancel  = messages.ElicitCancel
)

// OutcomeOf returns how the call ended that returned err; OutcomeResult for nil.
func OutcomeOf(err error) Outcome { return messages.OutcomeOf(err) }

// The values of Spec.Share. With SharePrincipal each caller with a name (WithCaller) has an instance of the server of its own: a process
// or a session. With ShareAll, the default, all callers share one. See [messages.SharePrincipal].
const (
	ShareAll       = messages.ShareAll
	SharePrincipal = messages.SharePrincipal
)
