package fence_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/control/internal/fence"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
	"github.com/mcpvisor/mcpvisor/transports/stdio/children"
)

// The manager is process 10, started by the shell 5. Its children are the server 20 (begun at 200), the agent 30,
// which may control, the helper 40, and the server 50, which has ended.
var (
	shell   = procinfo.Process{PID: 5, Parent: 1, Session: 5, Group: 5, Start: 50, Name: "bash"}
	first   = procinfo.Process{PID: 1, Start: 1, Name: "systemd"}
	manager = procinfo.Process{PID: 10, Parent: 5, Session: 5, Group: 10, Start: 100, Name: "mcpvisor"}
	knows   = map[int]children.Child{
		20: {PID: 20, Start: 200, Server: "files"},
		30: {PID: 30, Start: 300, Server: "agent", MayControl: true},
		40: {PID: 40, Start: 400},
		50: {PID: 50, Start: 500, Server: "gone", Ended: true},
	}
)

func own(isolates bool) fence.OwnProcesses {
	return fence.OwnProcesses{Chain: []procinfo.Process{manager, shell, first}, Isolates: isolates,
		Find: func(pid int) (children.Child, bool) { c, ok := knows[pid]; return c, ok }}
}

func at(pid int, start uint64, name string) procinfo.Process {
	return procinfo.Process{PID: pid, Start: start, Name: name, Session: 5}
}

func TestEveryKindOfPeerIsJudged(t *testing.T) {
	command := at(90, 900, "mcpvisor")
	for name, c := range map[string]struct {
		peer     fence.Peer
		isolates bool
		want     fence.Right
		why      string
	}{
		"a command in a shell": {peer: fence.Peer{Chain: []procinfo.Process{command, shell, first},
			Leaders: []procinfo.Process{shell, shell}}, want: fence.FullAccess},
		"a command of a script without a terminal": {peer: fence.Peer{Chain: []procinfo.Process{command, at(80, 800, "cron"), first}},
			want: fence.FullAccess},
		"this process itself": {peer: fence.Peer{Chain: []procinfo.Process{manager, shell, first}}, want: fence.FullAccess},
		"what this process has started and is no server": {peer: fence.Peer{Chain: []procinfo.Process{command, manager, shell, first}},
			want: fence.FullAccess},
		"a system that tells nothing": {peer: fence.Peer{Unsupported: true}, want: fence.FullAccess},
		"a server":                    {peer: fence.Peer{Chain: []procinfo.Process{at(20, 200, "node"), manager}}, why: "server files"},
		"what a server has started": {peer: fence.Peer{Chain: []procinfo.Process{command, at(85, 850, "sh"), at(20, 200, "node"), manager}},
			why: "server files"},
		"a process with the number of a server": {peer: fence.Peer{Chain: []procinfo.Process{command, at(20, 777, "bash"), first}},
			want: fence.FullAccess},
		"an orphan in a server's session": {peer: fence.Peer{Chain: []procinfo.Process{command, first},
			Leaders: []procinfo.Process{at(20, 200, "node"), at(90, 900, "x")}}, why: "server files"},
		"an orphan in a server's group": {peer: fence.Peer{Chain: []procinfo.Process{command, first},
			Leaders: []procinfo.Process{shell, at(20, 200, "node")}}, why: "server files"},
		"an orphan in the session of a server that has ended": {peer: fence.Peer{Chain: []procinfo.Process{command, first},
			Leaders: []procinfo.Process{{PID: 50}}}, why: "server gone"},
		"a shell with the number of a server that has ended": {peer: fence.Peer{Chain: []procinfo.Process{command, first},
			Leaders: []procinfo.Process{at(50, 999, "bash")}}, want: fence.FullAccess},
		"a helper": {peer: fence.Peer{Chain: []procinfo.Process{at(40, 400, "pass"), manager}}, why: "helper"},
		"an agent that may control": {peer: fence.Peer{Chain: []procinfo.Process{command, at(30, 300, "claude"), manager},
			Isolation: "no_new_privs"}, isolates: true, want: fence.FullAccess},
		"an isolated process that has left its session": {peer: fence.Peer{Chain: []procinfo.Process{command, first},
			Isolation: "no_new_privs"}, isolates: true, why: "no_new_privs"},
		"a sandboxed agent, and no isolated server": {peer: fence.Peer{Chain: []procinfo.Process{command, at(81, 810, "codex"), first},
			Isolation: "no_new_privs, a system call filter"}, want: fence.FullAccess},
		"a server of another mcpvisor": {peer: fence.Peer{Chain: []procinfo.Process{command, at(82, 820, "node"),
			at(83, 830, "mcpvisor"), shell}}, why: "process 83"},
		"one that has ended":      {peer: fence.Peer{Ended: true}, want: fence.ReadOnly, why: "has ended"},
		"one that cannot be seen": {peer: fence.Peer{UnknownReason: "it lives elsewhere"}, want: fence.ReadOnly, why: "it lives elsewhere"},
		"one of which nothing is": {want: fence.ReadOnly, why: "cannot be seen"},
	} {
		got := fence.Decide(c.peer, own(c.isolates))
		if got.Right != c.want || !strings.Contains(got.Reason, c.why) || c.why == "" && got.Reason != "" {
			t.Errorf("%s: %+v, not %v because of %q", name, got, c.want, c.why)
		}
	}
}

// A manager that is itself run by a server of another mcpvisor answers the commands of that server's shell.
func TestAnOuterMcpvisorIsNoOtherOne(t *testing.T) {
	outer := procinfo.Process{PID: 7, Start: 70, Name: "mcpvisor"}
	o := own(false)
	o.Chain = append(o.Chain, outer)
	v := fence.Decide(fence.Peer{Chain: []procinfo.Process{at(90, 900, "mcpvisor"), shell, outer}}, o)
	if v.Right != fence.FullAccess {
		t.Errorf("%+v", v)
	}
}

// All processes at one terminal are one caller; a process whose terminal has ended is a caller of its own.
func TestACallerIsATerminal(t *testing.T) {
	one := fence.Peer{Chain: []procinfo.Process{{PID: 90, Session: 5, Start: 900}}, Leaders: []procinfo.Process{shell}}
	two := fence.Peer{Chain: []procinfo.Process{{PID: 91, Session: 5, Start: 910}}, Leaders: []procinfo.Process{shell}}
	lone := fence.Peer{Chain: []procinfo.Process{{PID: 92, Session: 5, Start: 920}}, Leaders: []procinfo.Process{{PID: 5}}}
	if one.Session() != two.Session() || one.Session() == lone.Session() || one.Process() == two.Process() {
		t.Error(one.Session(), two.Session(), lone.Session())
	}
	if (fence.Peer{}).Session() != "" || (fence.Peer{}).Process() != "" || (fence.Peer{}).Program() != "" {
		t.Error("nothing is known of the zero peer")
	}
	named := fence.Peer{Chain: []procinfo.Process{{Name: "a\u202e\x1b[2Jb"}, {Name: "c\nd"}}}
	if got := named.Program(); got != `a\u202e\x1b[2Jb, started by c d` {
		t.Errorf("%q", got)
	}
}
