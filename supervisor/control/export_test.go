package control

import "net"

// RestoreAgents looks now, and not at the next period, whether the file of a socket of [ListenAgents] is there.
func RestoreAgents(l net.Listener) error { return l.(*agentListener).restore() }
