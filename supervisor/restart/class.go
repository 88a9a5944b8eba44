package restart

import "github.com/mcpvisor/mcpvisor/messages"

// retryMode is what a class of errors means for the next attempt.
type retryMode uint8

const (
	// counted: tried again, and counted towards parking.
	counted retryMode = iota
	// uncounted: tried again with growing delays, and never parked for it.
	uncounted
	// ifEverConnected: counted if this spec has connected before, otherwise never.
	ifEverConnected
	// never: no timer. A person, a token or a changed configuration must act.
	never
)

// retryModeOf states every class. One that is not known here is a failure like any other: retried, bounded by parking.
func retryModeOf(c messages.Class) retryMode {
	switch c {
	case messages.ClassConfig: // the same words will be wrong again
		return never
	case messages.ClassUnauthorized: // retrying a rejected token locks accounts
		return never
	case messages.ClassUnsupported: // another version must be installed, on one of the two sides
		return never
	case messages.ClassDenied: // our own rule
		return never
	case messages.ClassInvalid: // the caller's mistake
		return never
	case messages.ClassCanceled: // somebody wanted the end, and says what follows
		return never

	case messages.ClassMissing: // a typing error, or an upgrade in progress
		return ifEverConnected

	case messages.ClassExhausted: // our machine's fault: all servers would be parked for it at once
		return uncounted

	case messages.ClassNone: // an orderly end that nobody asked for
		return counted
	case messages.ClassForbidden: // a gateway's 403 may pass; a lasting one is parked and probed
		return counted
	case messages.ClassProtocol: // noise beyond the limit may be one bad start; a lasting one is parked
		return counted
	case messages.ClassRejected: // the server refuses the handshake or the list: it may be starting up
		return counted
	case messages.ClassThrottled: // the server lives and says when
		return counted
	case messages.ClassSession: // the server has restarted: a new session is all it needs
		return counted
	case messages.ClassTimeout, messages.ClassExited, messages.ClassNetwork:
		return counted
	case messages.ClassPanic: // our bug must not cost the user a server that the next attempt may connect
		return counted
	}
	return counted
}

// Retries reports whether an error of this class is followed by another attempt, for a server that has connected
// before or not.
func Retries(c messages.Class, everConnected bool) bool {
	v := retryModeOf(c)
	return v != never && (v != ifEverConnected || everConnected)
}
