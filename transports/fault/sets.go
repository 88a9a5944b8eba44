package fault

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The servers that faults apply to, as they follow from the table of kinds. Where a set is a decision about a fault, it is a list. An
// in-process server (sdk) has no process, no stream and no network; claudeai-proxy is HTTP at another address, and stands in none.
var (
	allServers = serversThat(func(messages.TransportKind) bool { return true })
	// outOfProcess are the transports to another process or machine.
	outOfProcess = serversThat(func(k messages.TransportKind) bool { return k != messages.SDK })
	// bothEraServers exist in both eras: the modern era has no HTTP+SSE.
	bothEraServers = serversThat(func(k messages.TransportKind) bool { return k != messages.SSE })
	networkServers = serversThat(messages.TransportKind.Remote)
	// cancellingServers are told that a request is cancelled, by a message on a connection that stays.
	cancellingServers = serversThat(func(k messages.TransportKind) bool { return !k.PairsAnswers() })

	// postServers take each message in a POST.
	postServers    = []messages.TransportKind{messages.HTTP, messages.SSE}
	processServers = []messages.TransportKind{messages.Stdio}
	httpServers    = []messages.TransportKind{messages.HTTP}
	// dialedServers are opened before the first message.
	dialedServers = []messages.TransportKind{messages.Stdio, messages.SSE, messages.WebSocket}

	bothEras   = []messages.Era{messages.EraLegacy, messages.EraModern}
	legacyEras = []messages.Era{messages.EraLegacy}
	modernEras = []messages.Era{messages.EraModern}
)

// serversThat returns the kinds that a condition holds for, in the order of the table.
func serversThat(hold func(messages.TransportKind) bool) []messages.TransportKind {
	return slices.DeleteFunc(slices.Clone(messages.TransportKinds), func(k messages.TransportKind) bool {
		return k == messages.ClaudeAIProxy || !hold(k)
	})
}

// The locations of many faults. A fault of rules|scenarios can be done everywhere.
const (
	everywhere = rules | scenarios
	// web is wherever there are HTTP statuses, or errors that stand for them.
	web = Program | HTTP
)

// Common values of Kind.On.
var (
	callMethods      = []string{"tools/call"}
	handshakeMethods = []string{"initialize", "server/discover"}
	toolListMethods  = []string{"tools/list"}
	listMethods      = []string{"*/list"}
	dialMethods      = []string{"dial"}
)

// codeParam is the exit code of a process that ends, and signalParam the signal that it dies of instead.
func codeParam(value string) Param { return countParam("code", value, "exit code of the process") }

func signalParam() Param {
	return wordParam("signal", "", "signal that the process dies of instead", "", "KILL", "SEGV", "ABRT", "TERM")
}

// perCall is the chance of faults that strike single calls.
func perCall() Param { return chanceParam("chance", "1", "of each call") }

// whenParam says which messages a server refuses; value is the default.
func whenParam(value string) Param {
	return wordParam("when", value, "at which messages: those of the handshake, calls, or all", "all", "handshake", "call")
}
