package stdio

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/process"
)

// Transport starts a child process for every connection and speaks with it over its standard input and output: one message per
// line.
//
// The child leads a session and a process group, both with its id (on Windows: a job object), which hold everything that it
// starts. It has no controlling terminal: a Ctrl-C there reaches this process alone, which has to end its connections, and the
// child can neither read what is typed nor type. It can still read and draw on terminals that it may open by name (/dev/pts/3),
// unless Isolation keeps it from that.
//
// The child's exit ends the connection at once, also if something that it has started holds its output open: the connection reads
// to the end of the pipe, or for 20 ms, and then kills the rest of the group.
//
// Close closes the child's input; after Grace it sends SIGTERM to the group, after Grace again SIGKILL. The child is always
// reaped. A child with Fetches that has not written a message yet gets SIGTERM at once, and has 4 × Grace before SIGKILL: it may
// be in the middle of an installation, does not read its input, and needs the time to take back what it has begun.
//
// Standard error is always read; its last part is in Info.StderrTail. So is what the child prints to standard output before its
// first message: some programs say there why they end.
//
// When this process is killed, its children see the end of their input. On Linux the kernel also sends the child itself SIGKILL
// (SIGTERM with a Guard), on Windows it ends the whole job. On other systems, and for processes that a child has started, a Guard
// is needed.
//
// Besides its three pipes the child gets the descriptors that this process has open without close-on-exec. Go never opens such a
// descriptor, so that these are the ones that this process was started with; see [WithholdDescriptors]. A child with a launcher
// (Isolation) gets none of them.
//
// Not covered: a process that leaves the group (setsid, setpgid, a daemon) keeps running. On Linux, a program that runs with the
// rights of another user (setuid) does not get the kernel's signal. On Windows there is no SIGTERM: the group gets CTRL_BREAK,
// which reaches it only if it shares this process's console.
type Transport struct{ cfg Config }

// Config describes the child. Only Command is needed. New copies the struct and no slice in it: leave them unchanged.
type Config struct {
	// Command is a program: a name, which is looked up in the PATH of Env, or in ours if Env has none; or a path. A
	// relative path starts at Dir.
	Command string
	// Args are the arguments without the program itself. No shell reads them.
	Args []string
	// Env is the complete environment, each "NAME=value"; nil is empty. [ChildEnv] makes one.
	Env []string
	// Dir is the working directory, empty for this process's own.
	Dir string
	// Grace bounds each of the two steps before SIGKILL: default 2 s. Less makes Close faster, and takes from a
	// server the time to save its state.
	Grace time.Duration
	// Fetches says that the command first downloads the program that it runs (package runner): see Close above.
	Fetches bool
	// MaxMessage is the limit of one incoming message in bytes: default 16 MiB. While a message is being received it may occupy
	// twice as much, because it is copied into one piece. Lines that are no messages, and longer ones, occupy a few KiB.
	MaxMessage int64
	// Share is the server's part of the memory for all servers: it bounds the bytes of half-received messages, and is charged for
	// noise and floods, after which the reader pauses. nil means no bound and no pauses.
	Share *budget.Share
	// StderrTail is the number of bytes kept of the end of standard error: default 64 KiB.
	StderrTail int
	// Secrets are values to hide in Info.StderrTail and in noise. The values of those variables of Env whose name says that they
	// hold a secret (…TOKEN…, …_KEY) are hidden as well. Values shorter than 6 bytes are not hidden.
	Secrets []string
	// Isolation says what the child is kept from; nil starts it directly, without a launcher. A part that this machine cannot
	// enforce fails Dial with ClassConfig, unless Isolation.BestEffort is set. See package isolation for what each part means.
	Isolation *messages.Isolation
	// Terminal leaves the child in this process's session, in a process group of its own, so that it can ask on the controlling
	// terminal: a helper that unlocks a key (gpg, pass). Such a child can also type there. It has no effect on Windows.
	Terminal bool
	// Guard learns of every process group, and ends it when this process is killed; nil is none.
	Guard Guard
	// Server is the name of the server that is started, empty for a helper. MayControl says that it may use the control socket of
	// this program. Both are only noted for children.Find.
	Server     string
	MayControl bool
}

// Guard ends process groups when this process no longer can. [*Guardian] is one.
type Guard interface {
	// Watch is called when a group was started, in a goroutine of its own. The caller calls release once, when no process of the
	// group is left. A Watch that panics, or has not returned when the context of Dial ends, ends the group and fails the Dial; a
	// release that panics has no effect, and one that does not return is waited for as long as Config.Grace says.
	Watch(pgid int) (release func())
}

var _ transports.Transport = (*Transport)(nil)

// New makes a transport that starts cfg.Command for every Dial. It starts nothing and checks nothing: Dial does both.
func New(cfg Config) *Transport {
	if cfg.Grace <= 0 {
		cfg.Grace = 2 * time.Second
	}
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = 16 << 20
	}
	if cfg.StderrTail <= 0 {
		cfg.StderrTail = 64 << 10
	}
	return &Transport{cfg: cfg}
}

// childSpec returns what the configuration says about the child.
func (cfg *Config) childSpec() *process.Spec {
	return &process.Spec{
		Command: cfg.Command, Args: cfg.Args, Env: cfg.Env, Dir: cfg.Dir, Isolation: cfg.Isolation, Terminal: cfg.Terminal,
		Guarded: cfg.Guard != nil, Server: cfg.Server, MayControl: cfg.MayControl,
	}
}

// Kind implements Transport.
func (s *Transport) Kind() messages.TransportKind { return messages.Stdio }

// Dial starts the child. It returns when the child runs: whether that speaks MCP shows later. Its errors have the classes missing
// (no such program), config (it can never work), exhausted (this machine has no descriptors, processes or memory left, which
// passes by itself), exited (the system refuses for another reason), and timeout or canceled if ctx ended.
func (s *Transport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	if ctx.Err() != nil {
		return nil, errs.ContextError(ctx, "starting the process")
	}
	p, failed := process.Start(ctx, s.cfg.childSpec())
	if failed != nil {
		return nil, failed
	}
	// The start itself cannot be interrupted, so that ctx may have ended meanwhile: the caller wants no connection any more.
	if ctx.Err() != nil {
		p.KillAndRelease()
		return nil, errs.ContextError(ctx, "starting the process")
	}
	return newConnection(ctx, &s.cfg, p, sink)
}
