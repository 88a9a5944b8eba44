// Package fence decides what the peer of a control socket may do: everything, look, or nothing. The servers that a manager
// runs are processes of the same user, so the modes of the socket do not keep them out; this package does, by what the
// system tells of the process that has connected.
//
// A peer is refused:
//
//   - by ancestry: it is a server or a helper that this program has started, or descends from one;
//   - by session and process group: it lives in one that a server or a helper began, though its parents have ended;
//   - by isolation: it is kept from something that this process is not kept from (no_new_privs, a system call filter, a
//     user or network namespace of its own), while this program has isolated servers: one of their processes may have left
//     its session, and cannot leave its isolation;
//   - because another mcpvisor stands among its parents, which is none of this process's: it is a server of that one.
//
// The first two do not hold for a server whose entry says "mayControl": true. A peer that has ended, or that the system does
// not show, may look. Linux tells most (SO_PEERCRED, with a descriptor of the process from 6.5 on), macOS all but isolation
// (LOCAL_PEERPID), Windows ancestry alone (SIO_AF_UNIX_GETPEERPID); other systems tell nothing, and there every peer of the
// user may do everything.
//
// This is a fence and no wall. Around it goes, without isolation: a process that begins a session of its own and whose
// parents end (setsid and two forks); one that has somebody else start a program (systemd-run, at, cron, ssh to this machine,
// a terminal multiplexer that runs, the desktop, docker); one that traces a process of the person's or changes what their
// shell runs. Isolation closes the first way and those that need what it takes away; a mount namespace of its own is no mark,
// because units of systemd have one, too.
package fence

import (
	"fmt"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

// Right is what a peer may do. The zero value is nothing.
type Right int

const (
	// NoAccess: no question is answered.
	NoAccess Right = iota
	// ReadOnly: what changes nothing is answered.
	ReadOnly
	// FullAccess: calls, answers and changes too.
	FullAccess
)

// Peer is what the system tells of whoever has connected.
type Peer struct {
	// Unsupported says that this system tells nothing of peers.
	Unsupported bool
	// Ended says that the process that has connected does not run any more. Unseen, if not empty, says why nothing is known
	// of it.
	Ended         bool
	UnknownReason string
	// Chain is the process, its parent and so on, as far as they can be seen.
	Chain []procinfo.Process
	// Leaders are the processes whose numbers the session and the group of the peer bear, if they run; a zero Start marks
	// one that does not.
	Leaders []procinfo.Process
	// Isolation names what the peer is kept from and this process is not, empty if nothing is seen.
	Isolation string
}

// OwnProcesses is what this program knows of its own processes.
type OwnProcesses struct {
	// Chain is this process, its parent and so on.
	Chain []procinfo.Process
	// Find is transports.FindChild, Isolates whether any child is isolated.
	Find     func(pid int) (transports.Child, bool)
	Isolates bool
}

// descendsFrom reports whether this process is another one, or descends from it.
func (o OwnProcesses) descendsFrom(process procinfo.Process) bool {
	return slices.ContainsFunc(o.Chain, func(p procinfo.Process) bool { return p.PID == process.PID && p.Start == process.Start })
}

// Decision is a decision, and why.
type Decision struct {
	Right Right
	// Server is the server that the peer belongs to, if it is one's.
	Server string
	// Reason and Fix say it to the peer's person; empty for Everything.
	Reason, Fix string
}

// Decide decides. It reads nothing but its arguments.
func Decide(p Peer, own OwnProcesses) Decision {
	if p.Unsupported {
		return Decision{Right: FullAccess}
	}
	if c, found := owningChild(p, own); found {
		return decideForChild(c)
	}
	for i, ancestor := range p.Chain {
		if i > 0 && trimExe(ancestor.Name) == "mcpvisor" && !own.descendsFrom(ancestor) {
			return Decision{Reason: fmt.Sprintf("it was started by another mcpvisor (process %d), so it is a server of that one", ancestor.PID),
				Fix: "run it from a shell"}
		}
	}
	switch {
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

// owningChild is the child of this program that a peer belongs to: the nearest one among its parents, else the one that began its
// session or its group.
func owningChild(p Peer, own OwnProcesses) (transports.Child, bool) {
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
	return transports.Child{}, false
}

func decideForChild(c transports.Child) Decision {
	switch {
	case c.MayControl:
		return Decision{Right: FullAccess, Server: c.Server}
	case c.Server == "":
		return Decision{Reason: "it belongs to a helper program that mcpvisor up has started"}
	}
	return Decision{Server: c.Server, Reason: "it belongs to the server " + messages.Line(c.Server, 80),
		Fix: `add "mayControl": true to the server's entry if it is itself an agent or a shell`}
}

// trimExe is the name of a program without what Windows adds.
func trimExe(name string) string {
	if n := len(name) - len(".exe"); n > 0 && name[n:] == ".exe" {
		return name[:n]
	}
	return name
}

func reasonSuffix(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Program names the program of a peer and of its parent for a record: "mcpvisor, started by bash". It is one line without
// characters that act on a terminal.
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

// PID is the number of the process; 0 if it is not known.
func (p Peer) PID() int {
	if len(p.Chain) == 0 {
		return 0
	}
	return p.Chain[0].PID
}

// Process tells the process of a peer from every other one; empty if it is not known.
func (p Peer) Process() string {
	if len(p.Chain) == 0 {
		return ""
	}
	return fmt.Sprintf("%d@%d", p.Chain[0].PID, p.Chain[0].Start)
}

// Session tells where the person works from every other place: the terminal's session, as long as its first process runs,
// else the process alone. It is empty if neither is known.
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
