package messages

// Phase says how far a server's connection is, as the manager observes it; what the owner wants is apart from it. The five words are
// those of Claude Code's status union and appear on the wire exactly so.
type Phase string

const (
	// Pending means not connected yet, or not connected any more but on the way back. Step says which part of the way.
	Pending Phase = "pending"
	// Connected means the handshake and the first tool list are done and calls are admitted.
	Connected Phase = "connected"
	// Failed means the last attempt failed. Retry says whether another one follows.
	Failed Phase = "failed"
	// NeedsAuth means the server asks for credentials. Nothing runs and nothing is retried until a person, a token or a
	// changed configuration acts.
	NeedsAuth Phase = "needs-auth"
	// Disabled means the owner has switched the server off. It may be warm: its connection kept, its tools withdrawn.
	Disabled Phase = "disabled"
)

// Phases lists every phase, in the order in which documents name them.
var Phases = []Phase{Pending, Connected, Failed, NeedsAuth, Disabled}

// Step says where on its way a pending server is. It is empty in every other phase.
type Step string

const (
	// Queued waits for the supervisor's start gate.
	Queued Step = "queued"
	// Dialing starts the process or opens the connection.
	Dialing Step = "dialing"
	// Handshaking waits for the answer to the first protocol message.
	Handshaking Step = "handshaking"
	// Installing is Handshaking with a command that fetches what it runs (npx, uvx, docker run), while that is at work and its
	// server has not said anything: it is most likely installing.
	Installing Step = "installing"
	// Listing waits for the first tool list.
	Listing Step = "listing"
	// Restarting lost its connection and waits for the time that the restart policy chose.
	Restarting Step = "restarting"
	// Closing waits until the connection before this one has released its process or socket.
	Closing Step = "closing"
	// Idle is a lazy server that no call has used yet, or that was let go after its idle timeout.
	Idle Step = "idle"
)

// Retry says what follows a failure.
type Retry string

const (
	// RetryAt means that the next attempt begins at NextAttempt.
	RetryAt Retry = "retry"
	// RetryParked means that the policy gave up the fast retries: NextAttempt is a probe, and probes go on for ever.
	RetryParked Retry = "parked"
	// RetryNever means that no timer runs: the owner must change the configuration or ask for a reconnect.
	RetryNever Retry = "none"
)

// Class says what an error means for the next step. The restart policy reads nothing else of an error.
type Class string

const (
	// ClassNone is the class of no error.
	ClassNone Class = ""
	// ClassConfig is a specification that cannot work: bad URL, unreadable directory, a file that is not executable.
	// Never retried.
	ClassConfig Class = "config"
	// ClassMissing is a command that was not found. Retried only if this specification has connected before: an upgrade
	// in progress looks the same.
	ClassMissing Class = "missing"
	// ClassUnauthorized is a 401, or credentials that are absent. Never retried by itself.
	ClassUnauthorized Class = "unauthorized"
	// ClassForbidden is a 403.
	ClassForbidden Class = "forbidden"
	// ClassUnsupported is a server that speaks no protocol version that we speak. Never retried.
	ClassUnsupported Class = "unsupported"
	// ClassProtocol is a server that breaks the protocol: noise beyond the limit, an endless line, a wrong answer.
	ClassProtocol Class = "protocol"
	// ClassTimeout is a bound that passed.
	ClassTimeout Class = "timeout"
	// ClassExited is a process that ended.
	ClassExited Class = "exited"
	// ClassNetwork is a refused, reset or unresolvable connection, or a server that answers 5xx.
	ClassNetwork Class = "network"
	// ClassThrottled is a 429 or 503 with Retry-After, or a call that found the queue of its server full.
	ClassThrottled Class = "throttled"
	// ClassSession is a protocol session that the server no longer knows (HTTP 404 with a session id).
	ClassSession Class = "session"
	// ClassExhausted is a machine without descriptors, processes or memory: our side, not the server's.
	ClassExhausted Class = "exhausted"
	// ClassCanceled is an end that we asked for.
	ClassCanceled Class = "canceled"
	// ClassDenied is a rule of ours that refused: access, approval, an allow-list.
	ClassDenied Class = "denied"
	// ClassInvalid is an argument of the caller that cannot be right: an unknown server, a bad value.
	ClassInvalid Class = "invalid"
	// ClassRejected is a request that the server refused with a JSON-RPC error. Nothing is wrong with its connection.
	ClassRejected Class = "rejected"
	// ClassPanic is a bug of ours that was caught.
	ClassPanic Class = "panic"
)

// Classes lists every class, ClassNone included, in the order of their declaration.
var Classes = []Class{
	ClassNone, ClassConfig, ClassMissing, ClassUnauthorized, ClassForbidden, ClassUnsupported, ClassProtocol, ClassTimeout,
	ClassExited, ClassNetwork, ClassThrottled, ClassSession, ClassExhausted, ClassCanceled, ClassDenied, ClassInvalid,
	ClassRejected, ClassPanic,
}
