package restart

import "github.com/mcpvisor/mcpvisor/messages"

// retryMode says what a class of errors means for the next attempt.
type retryMode uint8

const (
	// counted: tried again, and counted towards parking.
	counted retryMode = iota
	// uncounted: tried again with growing delays, and never parked for it.
	uncounted
	// ifEverConnected: counted if this spec has connected before, otherwise like never: the command may be misspelt.
	ifEverConnected
	// never: no timer. A person, a token or a changed configuration must act.
	never
)

// retryModeOf decides about every class. A class that is not known here is a failure like any other: retried, bounded by parking.
func retryModeOf(c messages.Class) retryMode {
	switch c {
	case messages.ClassConfig: // the same configuration will be wrong again
		return never
	case messages.ClassUnauthorized: // repeated requests with a rejected token lock accounts
		return never
	case messages.ClassUnsupported: // another version must be installed, on one of the two sides
		return never
	case messages.ClassDenied: // a rule of this machine forbids it, and only a change of the rule helps
		return never
	case messages.ClassInvalid: // the caller's mistake
		return never
	case messages.ClassCanceled: // a caller ended it on purpose, and decides what follows
		return never

	case messages.ClassMissing: // a typing error, or an upgrade in progress
		return ifEverConnected

	case messages.ClassExhausted: // this machine was at fault: counting would park all servers at once
		return uncounted

	case messages.ClassNone: // an orderly end that no command caused
		return counted
	case messages.ClassForbidden: // a gateway's 403 may pass; a lasting one is parked and probed
		return counted
	case messages.ClassProtocol: // noise beyond the limit may be one bad start; a lasting one is parked
		return counted
	case messages.ClassRejected: // the server refuses the handshake or the list: it may still be starting up
		return counted
	case messages.ClassThrottled: // the server lives and says when to come back
		return counted
	case messages.ClassSession: // the server has restarted: a new session is all it needs
		return counted
	case messages.ClassTimeout, messages.ClassExited, messages.ClassNetwork:
		return counted
	case messages.ClassPanic: // a defect of this program must not cost the user a server that the next attempt may connect
		return counted
	}
	return counted
}

// Retries reports whether an error of this class is followed by another attempt, for a server that has connected
// before or not. The status uses it to say that a person must act.
func Retries(c messages.Class, everConnected bool) bool {
	v := retryModeOf(c)
	return v != never && (v != ifEverConnected || everConnected)
}
