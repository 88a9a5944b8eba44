// Package fence decides which rights the peer of a control socket has: all, only to read, or none. The servers that a
// manager runs are processes of the same user, so the modes of the socket do not keep them out; this package does, by
// the system's information about the process that has connected.
//
// A peer is refused:
//
//   - by ancestry: it is a server or a helper that this program has started, or descends from one;
//   - by session and process group: it lives in one that a server or a helper began, though its parents have ended;
//   - by isolation: it is restricted in a way in which this process is not (no_new_privs, a system call filter, a
//     user or network namespace of its own), while this program has isolated servers: one of their processes may
//     have left its session, and cannot leave its isolation;
//   - because another mcpvisor is among its ancestors that is not an ancestor of this process: it is a server of
//     that one.
//
// The first two do not hold for a server whose entry says "mayControl": true. A peer that has ended, or that the
// system does not show, may read. Linux shows most (SO_PEERCRED, with a descriptor of the process from 6.5 on), macOS
// all but isolation (LOCAL_PEERPID), Windows ancestry alone (SIO_AF_UNIX_GETPEERPID); other systems show nothing, and
// there every peer of the user has all rights.
//
// # How it fits
//
// Package control calls [Examine] once for each connection and enforces the [Decision]; nothing else calls this package. Examine
// reads the system (readPeer, one file for each system) and asks package transports/stdio/children about this program's children;
// [Decide] is a pure function of the two, so that tests need no processes. The package owns no state.
//
// # Limits
//
// This is a fence and no wall. Without isolation these processes get around it: one that begins a session of its own
// and whose parents end (setsid and two forks); one that lets another program start a process (systemd-run, at, cron,
// ssh to this machine, a running terminal multiplexer, the desktop, docker); one that traces a process of the person
// or changes the commands of their shell. Isolation prevents the first way, and those that need a right that
// isolation takes away; a mount namespace of its own is no sign of isolation, because units of systemd have one, too.
package fence

import (
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/stdio/children"
)

// Right is a peer's right at the control socket. The zero value is none, so that a forgotten decision grants nothing.
type Right int

const (
	// NoAccess refuses every request.
	NoAccess Right = iota
	// ReadOnly answers requests that change nothing.
	ReadOnly
	// FullAccess allows calls, answers and changes too.
	FullAccess
)

// Peer is the system's information about the process that has connected.
type Peer struct {
	// Unsupported is true if this system gives no information about peers.
	Unsupported bool
	// Ended is true if the process that has connected does not run any more. UnknownReason, if not empty, says why
	// nothing is known about it.
	Ended         bool
	UnknownReason string
	// Chain is the process, its parent and so on, as far as the system shows them.
	Chain []procinfo.Process
	// Leaders are the processes whose numbers the session and the group of the peer bear, if they run; a zero Start
	// marks one that does not.
	Leaders []procinfo.Process
	// Isolation names the restrictions that the peer has and this process has not, empty if none is seen.
	Isolation string
}

// OwnProcesses is this program's information about its own processes.
type OwnProcesses struct {
	// Chain is this process, its parent and so on.
	Chain []procinfo.Process
	// Find is children.Find; Isolates is true if any child is isolated.
	Find     func(pid int) (children.Child, bool)
	Isolates bool
}

// descendsFrom reports whether this process is the given one, or descends from it. The start time is compared too,
// because numbers are reused.
func (o OwnProcesses) descendsFrom(process procinfo.Process) bool {
	return slices.ContainsFunc(o.Chain, func(p procinfo.Process) bool { return p.PID == process.PID && p.Start == process.Start })
}

// A Decision is the right of a peer with its reason.
type Decision struct {
	Right Right
	// Server is the server that the peer belongs to, empty if it belongs to none.
	Server string
	// Reason and Fix are for the peer's person; empty for FullAccess.
	Reason, Fix string
}

// Decide decides which right a peer has. It reads nothing but its arguments. A peer that belongs to a child of this
// program is decided by that child's entry; for all others every sign of a stranger takes rights away.
func Decide(p Peer, own OwnProcesses) Decision {
	if p.Unsupported {
		return Decision{Right: FullAccess}
	}
	// The entry of the child decides, and no other sign.
	if c, found := owningChild(p, own); found {
		return decideForChild(c)
	}
	// The peer itself may be mcpvisor: that is a command of the person. Only its ancestors count.
	for i, ancestor := range p.Chain {
		if i > 0 && trimExe(ancestor.Name) == "mcpvisor" && !own.descendsFrom(ancestor) {
			return Decision{Reason: fmt.Sprintf("it was started by another mcpvisor (process %d), so it is a server of that one", ancestor.PID),
				Fix: "run it from a shell"}
		}
	}
	switch {
	// An isolated peer counts as a server only while this program has isolated servers: other sandboxes exist, too.
	case p.Isolation != "" && own.Isolates:
		return Decision{Reason: "it is isolated as servers are (" + p.Isolation + "), and this mcpvisor up has isolated servers",
			Fix: "run it outside of the sandbox"}
	case p.Ended:
		return Decision{Right: ReadOnly, Reason: "the process that has connected has ended"}
	case p.UnknownReason != "" || len(p.Chain) == 0:
		return Decision{Right: ReadOnly, Reason: "the process that has connected cannot be seen" + reasonSuffix(p.UnknownReason)}
	}
	return Decision{Right: FullAccess}
}

// owningChild returns the child of this program that a peer belongs to: the nearest one among its ancestors, else the
// one that began its session or its group. A start time of 0 is unknown and fits any.
func owningChild(p Peer, own OwnProcesses) (children.Child, bool) {
	for _, ancestor := range p.Chain {
		if c, ok := own.Find(ancestor.PID); ok && (c.Start == 0 || c.Start == ancestor.Start) {
			return c, true
		}
	}
	for _, leader := range p.Leaders {
		if c, ok := own.Find(leader.PID); ok && (leader.Start == 0 || c.Start == 0 || c.Start == leader.Start) {
			return c, true
		}
	}
	return children.Child{}, false
}

// decideForChild decides about a peer that belongs to a child of this program.
func decideForChild(c children.Child) Decision {
	switch {
	case c.MayControl:
		return Decision{Right: FullAccess, Server: c.Server}
	case c.Server == "":
		return Decision{Reason: "it belongs to a helper program that mcpvisor up has started"}
	}
	return Decision{Server: c.Server, Reason: "it belongs to the server " + messages.Line(c.Server, 80),
		Fix: `add "mayControl": true to the server's entry if it is itself an agent or a shell`}
}

// trimExe returns the name of a program without the suffix that Windows adds.
func trimExe(name string) string {
	if n := len(name) - len(".exe"); n > 0 && name[n:] == ".exe" {
		return name[:n]
	}
	return name
}

// reasonSuffix returns the reason as the end of a sentence, empty if there is none.
func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Program returns the names of a peer's program and of its parent for a record: "mcpvisor, started by bash". It is
// one line without characters that act on a terminal, because a process chooses its name.
func (p Peer) Program() string {
	if len(p.Chain) == 0 {
		return ""
	}
	text := messages.Line(messages.Escaped(p.Chain[0].Name), 60)
	if len(p.Chain) > 1 {
		text += ", started by " + messages.Line(messages.Escaped(p.Chain[1].Name), 60)
	}
	return text
}

// PID returns the number of the process; 0 if it is not known.
func (p Peer) PID() int {
	if len(p.Chain) == 0 {
		return 0
	}
	return p.Chain[0].PID
}

// Process identifies the peer's process among all that ever had its number; empty if it is not known.
func (p Peer) Process() string {
	if len(p.Chain) == 0 {
		return ""
	}
	return fmt.Sprintf("%d@%d", p.Chain[0].PID, p.Chain[0].Start)
}

// Session identifies the terminal at which the person works: by its session, as long as the session's first process
// runs, else by the process alone. It is empty if neither is known.
func (p Peer) Session() string {
	if len(p.Chain) == 0 {
		return ""
	}
	for _, leader := range p.Leaders {
		if leader.PID == p.Chain[0].Session && leader.Start != 0 {
			return fmt.Sprintf("session %d@%d", leader.PID, leader.Start)
		}
	}
	return "process " + p.Process()
}
