package transports

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
)

// Stdio starts a child process for every connection and speaks with it over its standard input and output: one message
// per line.
//
// The child is the first of a session and of a process group, both with its id (on Windows: of a job object), which holds
// everything that it starts. It has no controlling terminal: a Ctrl-C there reaches this process alone, which has to end its
// connections, and the child can neither read what is typed nor type. Terminals that it may open by name (/dev/pts/3) it can
// still read and draw on, unless Isolation keeps it from that. Its exit is the end of the connection, at once, also if something it has started holds its output open: what is in the
// pipe is read to its end, or for 20 ms. The rest of the group is killed then.
//
// Close closes the child's input; after Grace it sends SIGTERM to the group, after Grace again SIGKILL. The child is
// always reaped. A child with Fetches that has not written a message yet gets SIGTERM at once, and has 4 × Grace before
// SIGKILL: it may be in the middle of an installation, does not read its input, and needs the time to take back what it has begun.
//
// Standard error is always read; its last part is in Info.StderrTail. So is what the child prints to standard output before its
// first message: some programs say there why they end.
//
// When this process is killed, its children see the end of their input. On Linux the kernel also sends the child itself
// SIGKILL (SIGTERM with a Guard), on Windows it ends the whole job. On other systems, and for what a child has started,
// a Guard is needed.
//
// Besides its three pipes the child gets the descriptors that this process has open without close-on-exec, which Go itself
// never makes. Those are what this process was started with; see WithholdDescriptors. A child with a launcher (Isolation)
// gets none of them.
//
// Not covered: a process that leaves the group (setsid, setpgid, a daemon). It keeps running. On Linux, a program that
// runs with the rights of another user (setuid) does not get the kernel's signal. On Windows there is no SIGTERM: the
// group gets CTRL_BREAK, which reaches it only if it shares our console.
type Stdio struct{ cfg StdioConfig }

// StdioConfig describes the child. Only Command is needed.
type StdioConfig struct {
	// Command is a program: a name, which is looked up in the PATH of Env, or in ours if Env has none; or a path. A
	// relative path starts at Dir.
	Command string
	// Args are the arguments without the program itself. No shell reads them.
	Args []string
	// Env is the complete environment, each "NAME=value"; nil is empty. ChildEnv makes one.
	Env []string
	// Dir is the working directory, empty for ours.
	Dir string
	// Grace is how long each of the two steps before SIGKILL may take: default 2 s. Less makes Close faster, and takes
	// from a server the time to save what it has.
	Grace time.Duration
	// Fetches says that the command first fetches what it runs (package runner): see Close above.
	Fetches bool
	// MaxMessage is the limit of one incoming message in bytes: default 16 MiB. A message being received may occupy
	// twice as much. Lines that are no messages, and longer ones, occupy a few KiB.
	MaxMessage int64
	// Share bounds the bytes that are held for the server of the memory for all servers, and charges it for its floods; nil is no
	// bound.
	Share *budget.Share
	// StderrTail is how many of the last bytes of standard error are kept: default 64 KiB.
	StderrTail int
	// Secrets are values to hide in Info.StderrTail and in noise, besides those of the variables of Env whose name says
	// that they hold one (…TOKEN…, …_KEY). Values shorter than 6 bytes are not hidden.
	Secrets []string
	// Isolation says what the child is kept from; nil is nothing, and costs nothing. What this machine cannot enforce fails Dial
	// with the class config, unless Isolation.BestEffort is set. See package isolation for what each part means.
	Isolation *messages.Isolation
	// Terminal leaves the child in this process's session, in a process group of its own, so that it can ask on the
	// controlling terminal: a helper that unlocks a key (gpg, pass). Such a child can also type there. It has no effect on
	// Windows.
	Terminal bool
	// Guard is told of every process group, so that a guardian ends them when this process is killed; nil is none.
	Guard Guard
	// Server is the name of the server that is started, empty for a helper, and MayControl says that it may use the control
	// socket of this program: see FindChild.
	Server     string
	MayControl bool
}

// Guard ends process groups when this process cannot any more. *Guardian is one.
type Guard interface {
	// Watch is called when a group was started. release is called once, when no process of it is left.
	Watch(pgid int) (release func())
}

var _ Transport = (*Stdio)(nil)

// NewStdio makes a transport that starts cfg.Command for every Dial. It starts nothing and checks nothing: Dial does.
func NewStdio(cfg StdioConfig) *Stdio {
	if cfg.Grace <= 0 {
		cfg.Grace = 2 * time.Second
	}
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = 16 << 20
	}
	if cfg.StderrTail <= 0 {
		cfg.StderrTail = 64 << 10
	}
	return &Stdio{cfg: cfg}
}

// Kind implements Transport.
func (s *Stdio) Kind() messages.TransportKind { return messages.Stdio }

// Dial starts the child. It returns when the child runs: whether that speaks MCP shows later. Its errors have the
// classes missing (no such program), config (it can never work), exhausted (this machine has no descriptors, processes
// or memory left), exited (the system refuses for another reason), and timeout or canceled if ctx ended.
func (s *Stdio) Dial(ctx context.Context, sink Sink) (Conn, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, "starting the process")
	}
	path, dir, failed := resolveCommand(&s.cfg)
	if failed != nil {
		return nil, failed
	}
	p, failed := startProcess(ctx, &s.cfg, path, dir)
	if failed != nil {
		return nil, failed
	}
	if ctx.Err() != nil {
		p.killAndRelease()
		return nil, contextError(ctx, "starting the process")
	}
	return newStdioConn(&s.cfg, p, sink)
}
