package faults

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// catalogue is every fault, sorted by name.
var catalogue = sortByName(processFaults, outputFaults, callFaults, listFaults, protocolFaults, httpFaults, networkFaults, trustFaults, machineFaults)

func sortByName(groups ...[]Kind) []Kind {
	all := slices.Concat(groups...)
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// The servers that faults belong to. A server inside the program (sdk) has no process, no stream and no network.
var (
	allKinds = []messages.TransportKind{
		messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK,
	}
	// outOfProcess is all that is not in the program itself.
	outOfProcess = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket}
	// bothEraKinds have both eras: the modern one has no HTTP+SSE.
	bothEraKinds = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.WebSocket, messages.SDK}
	networkKinds = []messages.TransportKind{messages.HTTP, messages.SSE, messages.WebSocket}
	// postKinds are those where each message is a POST.
	postKinds    = []messages.TransportKind{messages.HTTP, messages.SSE}
	processKinds = []messages.TransportKind{messages.Stdio}
	httpKinds    = []messages.TransportKind{messages.HTTP}
	// dialedKinds are those where something is opened before the first message.
	dialedKinds = []messages.TransportKind{messages.Stdio, messages.SSE, messages.WebSocket}

	bothEras   = []messages.Era{messages.EraLegacy, messages.EraModern}
	legacyEras = []messages.Era{messages.EraLegacy}
	modernEras = []messages.Era{messages.EraModern}

	tiers    = []string{Sim, Real}
	realOnly = []string{Real}
	simOnly  = []string{Sim}
)

// chanceParam is the parameter of faults that befall calls one by one.
var chanceParam = Param{"chance", "1", Chance, "of each call", nil}
