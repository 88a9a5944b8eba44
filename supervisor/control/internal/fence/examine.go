package fence

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/stdio/children"
)

// exhaustedReason says why nothing is known of a peer when no file can be read.
const exhaustedReason = "mcpvisor has too many open files; raise their limit (ulimit -n)"

// startsTimeout bounds the wait for children that are just being started.
const startsTimeout = time.Second

// Examine reads the system's information about the peer of a connection and decides about it. It reads some small
// files, and may wait for a second while a server is being started; so it must not run in the loop that accepts
// connections.
func Examine(conn net.Conn, accepted AcceptTime) (Peer, Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), startsTimeout)
	defer cancel()
	err := children.AwaitStarts(ctx) // after this a server that has just begun to run is known as a child
	p := readPeer(conn, accepted)
	if err != nil && !p.Unsupported {
		// The peer may be the server that is being started, so it gets no more than the right to read.
		p.UnknownReason = "a server is being started, which takes long"
	}
	parents, _ := procinfo.Chain(os.Getpid()) // an error gives no chain: then every other mcpvisor is a stranger
	return p, Decide(p, OwnProcesses{Chain: parents, Find: children.Find, Isolates: children.AnyIsolated()})
}

// readAncestry reads the chain of a process and the leaders of its session and group into p.
func (p *Peer) readAncestry(pid int) {
	chain, err := procinfo.Chain(pid)
	if err != nil {
		p.UnknownReason = "the system does not show process " + strconv.Itoa(pid)
		if procinfo.IsExhausted(err) {
			p.UnknownReason = exhaustedReason
		}
		return
	}
	p.Chain = chain
	for _, leader := range []int{chain[0].Session, chain[0].Group} {
		if leader <= 0 {
			continue
		}
		// A leader that has ended is kept with its number, because a child of this program may have had it.
		at, err := procinfo.Find(leader)
		if procinfo.IsExhausted(err) {
			p.UnknownReason = exhaustedReason
			return
		}
		if err != nil {
			at = procinfo.Process{}
		}
		at.PID = leader
		p.Leaders = append(p.Leaders, at)
	}
}
