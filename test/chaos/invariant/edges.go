package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// phaseNode is a published state of a server: its phase, with the step if it is pending. Empty stands for the time before its
// first event and after its removal.
type phaseNode string

const (
	absent        phaseNode = ""
	disabled      phaseNode = "disabled"
	warm          phaseNode = "disabled (warm)"
	resting       phaseNode = "pending (idle)"
	queued        phaseNode = "pending (queued)"
	dialing       phaseNode = "pending (dialing)"
	handshaking   phaseNode = "pending (handshaking)"
	installing    phaseNode = "pending (installing)"
	listing       phaseNode = "pending (listing)"
	restarting    phaseNode = "pending (restarting)"
	closing       phaseNode = "pending (closing)"
	connectedNode phaseNode = "connected"
	failed        phaseNode = "failed"
	needsAuth     phaseNode = "needs-auth"
)

// automaticEdges is the documented relation (package lifecycle, "all other edges") without commands: which state may follow
// which because of what happens to the server. Publishing a phase again with another schedule or class is no edge.
//
// Within one instant a server can go through more states than are published: a server that is lost before its tools are in the
// catalog is never published as connected.
var automaticEdges = map[phaseNode][]phaseNode{
	absent:   {disabled, resting, queued, failed, needsAuth},
	disabled: {},
	warm:     {disabled},
	// A lazy server leaves the rest by use.
	resting:       {queued, closing},
	queued:        {dialing},
	dialing:       {handshaking, failed, needsAuth},
	handshaking:   {installing, listing, failed, needsAuth},
	installing:    {listing, failed, needsAuth},
	listing:       {connectedNode, restarting, failed, needsAuth},
	restarting:    {dialing, failed},
	closing:       {queued},
	connectedNode: {restarting, needsAuth, resting},
	failed:        {dialing},
	needsAuth:     {},
}

// commandEdges maps each command to the states to which it may lead: from every phase "Disable leads to disabled, Remove to the
// end, Respec to what the new spec says". Enable leads out of disabled, Reconnect to a new start.
var commandEdges = map[string][]phaseNode{
	"disable":    {disabled, warm},
	"disconnect": {disabled},
	"remove":     {disabled},
	"enable":     {resting, queued, closing, failed, needsAuth},
	"reconnect":  {queued, closing},
	"add":        {disabled, resting, queued, closing, failed, needsAuth},
	"adjust":     {disabled, resting, queued, closing, failed, needsAuth},
	"respec":     {disabled, resting, queued, closing, failed, needsAuth},
}

// commandOrigins limits the states in which a command may lead elsewhere. Commands without an entry may do so from every state.
var commandOrigins = map[string][]phaseNode{
	"enable": {disabled, warm},
	"reconnect": {
		resting, queued, dialing, handshaking, installing, listing, restarting, closing, connectedNode, failed, needsAuth,
	},
}

// keptConnEdges are the edges by which a command continues with the existing connection. A warm server is connected again,
// after a new list if its list had changed; if it is lost before its tools are in the catalog, it is never published as
// connected. In sim and live, add is a Connect with the spec that the server has, so that it enables and disables as that spec
// says.
var keptConnEdges = map[string]map[phaseNode][]phaseNode{
	"enable": {warm: {connectedNode, listing, restarting}},
	"add":    {warm: {connectedNode, listing, restarting}, connectedNode: {warm}, listing: {warm}},
	"adjust": {warm: {connectedNode, listing, restarting}, connectedNode: {warm}, listing: {warm}},
}

// nodeOf returns the state of a span.
func nodeOf(s *phaseSpan) phaseNode {
	switch s.Phase {
	case messages.Pending:
		return phaseNode("pending (" + string(s.Step) + ")")
	case messages.Disabled:
		if s.Warm {
			return warm
		}
	case messages.Connected, messages.Failed, messages.NeedsAuth:
	}
	return phaseNode(s.Phase)
}

// canFollow reports whether to may follow from without a command.
func canFollow(from, to phaseNode) bool {
	return from == to || slices.Contains(automaticEdges[from], to)
}

// commandAllows reports whether to may follow from because of one command.
func commandAllows(do string, from, to phaseNode) bool {
	if slices.Contains(keptConnEdges[do][from], to) {
		return true
	}
	if begins, limited := commandOrigins[do]; limited && !slices.Contains(begins, from) {
		return false
	}
	return slices.Contains(commandEdges[do], to)
}
