package fence

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// startsTimeout bounds the wait for children that are just being started.
const startsTimeout = time.Second

// Examine reads what the system tells of the peer of a connection and decides. It reads some small files; it may wait for a
// second while a server is being started.
func Examine(conn net.Conn, accepted AcceptTime) (Peer, Decision) {
	ctx, cancel := context.WithTimeout(context.Background(), startsTimeout)
	defer cancel()
	err := transports.AwaitStarts(ctx) // a server that has just begun to run is a child then
	p := readPeer(conn, accepted)
	if err != nil && !p.Unsupported {
		p.UnknownReason = "a server is being started, which takes long"
	}
	parents, _ := procinfo.Chain(os.Getpid()) // none are seen where none of the peer's are
	return p, Decide(p, OwnProcesses{Chain: parents, Find: transports.FindChild, Isolates: transports.IsolatesChildren()})
}

// readAncestry reads the chain of a process and the leaders of its session and group.
func (p *Peer) readAncestry(pid int) {
	chain, err := procinfo.Chain(pid)
	if err != nil {
		p.UnknownReason = "the system does not show process " + strconv.Itoa(pid)
		return
	}
	p.Chain = chain
	for _, leader := range []int{chain[0].Session, chain[0].Group} {
		if leader <= 0 {
			continue
		}
		at, err := procinfo.Find(leader)
		if err != nil {
			at = procinfo.Process{}
		}
		at.PID = leader
		p.Leaders = append(p.Leaders, at)
	}
}
