package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// node is where a server can be seen to be: a phase, with the step if it is pending. "" is before its first word and after
// its removal.
type node string

const (
	absent      node = ""
	disabled    node = "disabled"
	warm        node = "disabled (warm)"
	resting     node = "pending (idle)"
	queued      node = "pending (queued)"
	dialing     node = "pending (dialing)"
	handshaking node = "pending (handshaking)"
	installing  node = "pending (installing)"
	listing     node = "pending (listing)"
	restarting  node = "pending (restarting)"
	closing     node = "pending (closing)"
	isConnected node = "connected"
	failed      node = "failed"
	needsAuth   node = "needs-auth"
)

// byItself is the documented relation (package lifecycle, "all other edges"), as far as nobody asks for anything: what can
// follow what because of what happens to the server. A phase that is said again with another schedule or class is no edge.
//
// Within one instant a server can go through more than is published: what is connected and lost before its tools are in
// the catalog is never seen as connected.
var byItself = map[node][]node{
	absent:      {disabled, resting, queued, failed, needsAuth},
	disabled:    {},
	warm:        {disabled},
	resting:     {queued, closing}, // by use
	queued:      {dialing},
	dialing:     {handshaking, failed, needsAuth},
	handshaking: {installing, listing, failed, needsAuth},
	installing:  {listing, failed, needsAuth},
	listing:     {isConnected, restarting, failed, needsAuth},
	restarting:  {dialing, failed},
	closing:     {queued},
	isConnected: {restarting, needsAuth, resting},
	failed:      {dialing},
	needsAuth:   {},
}

// byWish is what can follow because somebody asks: from every phase "Disable leads to disabled, Remove to the end, Respec to what
// the new spec says". Enable leads out of disabled, Reconnect to a new start.
var byWish = map[string][]node{
	"disable":    {disabled, warm},
	"disconnect": {disabled},
	"remove":     {disabled},
	"enable":     {resting, queued, closing, failed, needsAuth},
	"reconnect":  {queued, closing},
	"add":        {disabled, resting, queued, closing, failed, needsAuth},
	"adjust":     {disabled, resting, queued, closing, failed, needsAuth},
	"respec":     {disabled, resting, queued, closing, failed, needsAuth},
}

// outOf is where a wish can begin. What is not named can begin everywhere.
var outOf = map[string][]node{
	"enable": {disabled, warm},
	"reconnect": {
		resting, queued, dialing, handshaking, installing, listing, restarting, closing, isConnected, failed, needsAuth,
	},
}

// byKeeping is what can follow because a wish goes on with the connection that there is. A warm one is connected again, once it
// has been listed if its list had changed; if it is lost before its tools are in the catalog, it is never seen as connected. Add is
// in sim and live a Connect with the spec that the server has, so that it enables and disables as that spec says.
var byKeeping = map[string]map[node][]node{
	"enable": {warm: {isConnected, listing, restarting}},
	"add":    {warm: {isConnected, listing, restarting}, isConnected: {warm}, listing: {warm}},
	"adjust": {warm: {isConnected, listing, restarting}, isConnected: {warm}, listing: {warm}},
}

func nodeOf(s *stay) node {
	switch s.Phase {
	case messages.Pending:
		return node("pending (" + string(s.Step) + ")")
	case messages.Disabled:
		if s.Warm {
			return warm
		}
	case messages.Connected, messages.Failed, messages.NeedsAuth:
	}
	return node(s.Phase)
}

// follows reports whether to can follow from by what happens to a server.
func follows(from, to node) bool { return from == to || slices.Contains(byItself[from], to) }

// wishedFor reports whether to can follow from because of one command.
func wishedFor(do string, from, to node) bool {
	if slices.Contains(byKeeping[do][from], to) {
		return true
	}
	if begins, limited := outOf[do]; limited && !slices.Contains(begins, from) {
		return false
	}
	return slices.Contains(byWish[do], to)
}
