package faults

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// catalogue holds every fault, sorted by name, because Find searches it binarily.
var catalogue = sortByName(processFaults, outputFaults, callFaults, listFaults, protocolFaults, httpFaults, networkFaults, trustFaults, machineFaults)

// sortByName joins groups of faults and sorts them.
func sortByName(groups ...[]Kind) []Kind {
	all := slices.Concat(groups...)
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// The servers that faults apply to. An in-process server (sdk) has no process, no stream and no network.
var (
	allKinds = []messages.TransportKind{
		messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket, messages.SDK,
	}
	// outOfProcess are the transports to another process or machine.
	outOfProcess = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket}
	// bothEraKinds exist in both eras: the modern era has no HTTP+SSE.
	bothEraKinds = []messages.TransportKind{messages.Stdio, messages.HTTP, messages.WebSocket, messages.SDK}
	networkKinds = []messages.TransportKind{messages.HTTP, messages.SSE, messages.WebSocket}
	// postKinds send each message in a POST.
	postKinds    = []messages.TransportKind{messages.HTTP, messages.SSE}
	processKinds = []messages.TransportKind{messages.Stdio}
	httpKinds    = []messages.TransportKind{messages.HTTP}
	// dialedKinds open something before the first message.
	dialedKinds = []messages.TransportKind{messages.Stdio, messages.SSE, messages.WebSocket}

	bothEras   = []messages.Era{messages.EraLegacy, messages.EraModern}
	legacyEras = []messages.Era{messages.EraLegacy}
	modernEras = []messages.Era{messages.EraModern}

	// tiers are both tiers. Faults that the simulation cannot show (floods, processes) are realOnly, those that the system does
	// not let the harness do are simOnly.
	tiers    = []string{Sim, Real}
	realOnly = []string{Real}
	simOnly  = []string{Sim}
)

// chanceParam is the parameter of faults that strike single calls.
var chanceParam = Param{"chance", "1", Chance, "of each call", nil}
