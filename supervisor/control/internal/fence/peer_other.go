//go:build !linux && !darwin && !windows

package fence

import "net"

// AcceptTime is the time at which a connection was accepted; it is not used on this system.
type AcceptTime uint64

// Now returns 0, because nothing is compared with it here.
func Now() AcceptTime { return 0 }

// readPeer returns no information: this system gives none about peers.
func readPeer(net.Conn, AcceptTime) Peer { return Peer{Unsupported: true} }
