//go:build !linux && !darwin && !windows

package fence

import "net"

// AcceptTime is when a connection was accepted.
type AcceptTime uint64

// Now is the present Moment.
func Now() AcceptTime { return 0 }

// readPeer knows nothing here.
func readPeer(net.Conn, AcceptTime) Peer { return Peer{Unsupported: true} }
