package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// phaseNode is where a server can be seen to be: a phase, with the step if it is pending. "" is before its first word and after
// its removal.
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

// automaticEdges is the documented relation (package lifecycle, "all other edges"), as far as nobody asks for anything: what can
// follow what because of what happens to the server. A phase that is said again with another schedule or class is no edge.
//
// Within one instant a server can go through more than is published: what is connected and lost before its tools are in
// the catalog is never seen as connected.
var automaticEdges = map[phaseNode][]phaseNode{
	absent:        {disabled, resting, queued, failed, needsAuth},
	disabled:      {},
	warm:          {disabled},
	resting:       {queued, closing}, // by use
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

// commandEdges is what can follow because somebody asks: from every phase "Disable leads to disabled, Remove to the end, Respec to what
// the new spec says". Enable leads out of disabled, Reconnect to a new start.
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

// commandOrigins is where a wish can begin. What is not named can begin everywhere.
var commandOrigins = map[string][]phaseNode{
	"enable": {disabled, warm},
	"reconnect": {
		resting, queued, dialing, handshaking, installing, listing, restarting, closing, connectedNode, failed, needsAuth,
	},
}

// keptConnEdges is what can follow because a wish goes on with the connection that there is. A warm one is connected again, once it
// has been listed if its list had changed; if it is lost before its tools are in the catalog, it is never seen as connected. Add is
// in sim and live a Connect with the spec that the server has, so that it enables and disables as that spec says.
var keptConnEdges = map[string]map[phaseNode][]phaseNode{
	"enable": {warm: {connectedNode, listing, restarting}},
	"add":    {warm: {connectedNode, listing, restarting}, connectedNode: {warm}, listing: {warm}},
	"adjust": {warm: {connectedNode, listing, restarting}, connectedNode: {warm}, listing: {warm}},
}

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

// canFollow reports whether to can follow from by what happens to a server.
func canFollow(from, to phaseNode) bool {
	return from == to || slices.Contains(automaticEdges[from], to)
}

// commandAllows reports whether to can follow from because of one command.
func commandAllows(do string, from, to phaseNode) bool {
	if slices.Contains(keptConnEdges[do][from], to) {
		return true
	}
	if begins, limited := commandOrigins[do]; limited && !slices.Contains(begins, from) {
		return false
	}
	return slices.Contains(commandEdges[do], to)
}
