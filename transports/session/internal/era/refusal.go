package era

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// indicatesLegacy reports whether a refused server/discover means a server of the legacy era. 2026-07-28: "a recognized
// modern JSON-RPC error … identifies a modern server … Anything else identifies a legacy server." A failure that says nothing
// about the server (it cannot be reached, wants credentials, asks to wait) ends the probe instead.
func indicatesLegacy(e *messages.Error) bool {
	switch e.Class {
	case messages.ClassUnauthorized, messages.ClassThrottled, messages.ClassCanceled, messages.ClassExited,
		messages.ClassPanic, messages.ClassConfig, messages.ClassMissing:
		return false
	case messages.ClassNetwork:
		if e.Outcome == messages.OutcomeNotSent {
			return false // nothing was reached that could be of any era
		}
	}
	switch e.Code {
	case jsonrpc.CodeHeaderMismatch, jsonrpc.CodeMissingCapability:
		return false
	case jsonrpc.CodeUnsupportedVersion:
		return len(SupportedVersionsIn(e.Data)) == 0 // a server of the modern era lists its versions in this error
	}
	return true
}

// WantsAuthOrDelay reports whether a refusal asks for credentials or for a pause. The session asks nothing else then, and no
// other refusal explains more.
func WantsAuthOrDelay(e *messages.Error) bool {
	return e.Class == messages.ClassUnauthorized || e.Class == messages.ClassThrottled || e.RetryAfter > 0
}

// Classify turns the answer to server/discover, or its error e, into the state of that question. version is the
// modern version that both sides speak, empty if there is none; supported are the versions that the server lists, and legacy
// the versions of the legacy era that we speak.
func Classify(e *messages.Error, version string, supported, legacy []string) State {
	switch {
	case e != nil && !indicatesLegacy(e):
		return Final
	case e != nil:
		return Refused
	case version != "":
		return Accepted
	// The server lists versions, and none of them is one of ours: there is nothing to ask.
	case len(supported) > 0 && FirstCommon(legacy, supported) == "":
		return Final
	}
	return Refused
}
