//go:build !linux && !darwin && !windows

package fence

import "net"

// Moment is when a connection was accepted.
type Moment uint64

// Now is the present Moment.
func Now() Moment { return 0 }

// look knows nothing here.
func look(net.Conn, Moment) Peer { return Peer{Silent: true} }
