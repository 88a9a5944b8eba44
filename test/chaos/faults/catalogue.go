package faults

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// catalogue is every fault, sorted by name.
var catalogue = sorted(processes, output, calls, lists, protocol, sessions, network, trust, machine)

func sorted(groups ...[]Kind) []Kind {
	all := slices.Concat(groups...)
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// The servers that faults belong to. A server inside the program (sdk) has no process, no stream and no network.
var (
	everywhere = []messages.TransportKind{
		messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK,
	}
	// outside is all that is not in the program itself.
	outside = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket}
	// dual have both eras: the modern one has no HTTP+SSE.
	dual   = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.WebSocket, messages.SDK}
	remote = []messages.TransportKind{messages.HTTP, messages.SSE, messages.WebSocket}
	// posting are those where each message is a POST.
	posting = []messages.TransportKind{messages.HTTP, messages.SSE}
	process = []messages.TransportKind{messages.Stdio}
	http    = []messages.TransportKind{messages.HTTP}
	// dialled are those where something is opened before the first message.
	dialled = []messages.TransportKind{messages.Stdio, messages.SSE, messages.WebSocket}

	both   = []messages.Era{messages.EraLegacy, messages.EraModern}
	legacy = []messages.Era{messages.EraLegacy}
	modern = []messages.Era{messages.EraModern}

	tiers    = []string{Sim, Real}
	onlyReal = []string{Real}
	onlySim  = []string{Sim}
)

// chance is the parameter of faults that befall calls one by one.
var chance = Param{"chance", "1", Chance, "of each call", nil}
