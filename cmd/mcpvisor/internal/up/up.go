// Package up holds the command up, which keeps the servers of a project connected until it is interrupted, and the command
// reload.
//
// How it fits: up starts a manager, opens the control socket by which the other commands reach it (controlEndpoint), follows
// the configuration files (followFiles) and shows events on a display: a live table on a terminal, lines elsewhere, JSON for
// programs. The board holds what is shown and is changed by events; a frame
// is drawn from it, the time and the size of the terminal.
//
//	manager ──events──> recordEvent ──> board ──> frame ──> the terminal
//
//	up.go                     the run of up: one manager, until Ctrl-C
//	detach.go, attach.go      the run of --detach, which the daemon keeps, and the view of what it keeps
//	endpoint.go, follow.go    the control socket, and the files that are followed; reload.go asks for it
//	board.go, table.go        what is shown, as a value and as text; both are pure
//	display.go, live.go       the four displays; live.go owns the terminal and its one painting goroutine
//	demo.go                   the run of --demo, of servers that package demo makes
//
// Guarantees: one up for each project; a second one says that the first runs. A display that fails or is slow does not hold up the
// manager. At the end all servers have ended, within upCloseTime.
//
// Not promised: that each event is drawn. The table shows the newest state, and the record of calls has every call.
package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	daemonclient "github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/sparing"
)

// upCloseTime bounds the end of up: running calls get at most half of it, then the servers are stopped step by step. The
// guardian ends what is left after that.
const upCloseTime = 10 * time.Second

// upFlags holds the flags of up.
type upFlags struct {
	json, demo bool
	// callersAnswer announces to servers that questions can be asked although this process has no terminal: callers answer
	// them.
	callersAnswer bool
	// duration is the time after which the run ends by itself; 0 for never.
	duration time.Duration
	// detach hands the servers to the daemon and returns.
	detach bool
	// noWatch reads the configuration files once and does not follow them.
	noWatch bool
}

// NewUp returns the command "up", which runs runUp until it is interrupted. All other commands of the project use its servers
// meanwhile. makeDemo is called for --demo.
func NewUp(o *cli.Options, makeDemo func() (Demo, error)) *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Connect the servers of this project and keep them connected",
		Long: `Shows how the servers of this project fare. The daemon connects every enabled one in parallel and keeps them
connected: a server that fails is tried again with growing delays, one that fails again and again is parked and probed
every five minutes. It is started if there is none, and ends with this command (Ctrl-C, SIGTERM), unless an agent or
another up uses it then. No process stays behind, not even when mcpvisor itself is killed.

On a terminal the servers stand in a table that is kept up to date; elsewhere each change is a line, with --json an object.
Configuration files that change are followed: what did not change keeps its connection and its calls, a file or an entry
that cannot be used changes nothing, and a server that is approved meanwhile starts. "mcpvisor reload" does it at once.

While it runs, the other commands in the same project use the same servers. What happens is kept in a journal, for
"mcpvisor why". With --detach the daemon keeps the servers and this command returns (mcpvisor help gateway). What a
server asks meanwhile is asked at the terminal of whoever called it.

With a flag that is about the servers' own process (--config, --mcp-server, --approve, --inherit-env, --no-watch, --answers,
--store, --audit …) this command keeps them itself; a second Ctrl-C then ends them at once.`,
		Example: `  mcpvisor up                    # the servers of this project
  mcpvisor up --demo             # built-in servers, good and bad ones, with calls going on
  mcpvisor up --mcp-server 'files=npx -y @modelcontextprotocol/server-filesystem .'
  mcpvisor up --json | jq -c 'select(.kind == "phase") | [.server, .status.status]'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUp(o, cmd, f, makeDemo) },
	}
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print one JSON object a line")
	cmd.Flags().BoolVar(&f.demo, "demo", false, "run built-in servers instead of configured ones: see what mcpvisor does")
	cmd.Flags().BoolVar(&f.callersAnswer, "callers-answer", false, "tell servers that they may ask, though there is no terminal "+
		"here: who calls them is asked")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "let the daemon keep the servers, until mcpvisor down, and return")
	cmd.Flags().BoolVar(&f.noWatch, "no-watch", false, "do not follow configuration files that change")
	cmd.Flags().DurationVar(&f.duration, "duration", 0, "end by itself after this `time`, such as 30s, with a summary")
	return cmd
}

// runUp builds the run, of the project or of the demo, and keeps it until it ends.
func runUp(o *cli.Options, cmd *cobra.Command, f upFlags, makeDemo func() (Demo, error)) error {
	o.ReportAtOnce()
	if f.duration < 0 {
		return exit.UsageError(cmd, "--duration: %s is negative", f.duration)
	}
	if f.detach {
		return detachUp(o, cmd, f)
	}
	var r *upRun
	var err error
	if f.demo {
		r, err = demoRun(o, f, makeDemo)
	} else {
		r, err = projectRun(cmd.Context(), o, f)
	}
	if err != nil {
		return err
	}
	defer r.close()
	if runsApart(o, f) == "" {
		if attached, err := r.attach(cmd.Context()); attached {
			return err
		}
	}
	return r.keepConnected(cmd.Context())
}

// upRun is one run of up: what it keeps connected, and how. projectRun or demoRun makes it; keepConnected uses it once.
type upRun struct {
	options *cli.Options
	flags   upFlags
	// project is the directory whose commands talk to this run; origin identifies what --config and --mcp-server named.
	project, origin string
	// attached is the process whose servers are shown, foreign that it is another up and not the daemon; 0 if they are this run's own.
	attached int
	foreign  bool
	// attachment keeps the servers in the daemon; nil without one. startedDaemon says that this run has started the daemon, and endsDaemon
	// that it ends with this run.
	attachment                *daemonclient.Attachment
	startedDaemon, endsDaemon bool
	// keeperEnded says that the process whose servers are shown has ended, and they with it.
	keeperEnded bool
	// intro explains to a newcomer what is on the screen; empty except in the demo.
	intro string
	// emptyText is shown as long as there are no servers; empty if some are configured.
	emptyText string
	// notes are remarks about the configuration for the table, which hides standard error.
	notes []string
	// servers are configured once the display runs; cfg has none, so that the display sees the first event of each.
	servers map[string]supervisor.Spec
	cfg     supervisor.Config
	// reading holds the files as they were read, from where changes are followed; nil if none are followed.
	reading *discover.Snapshot
	// refusals limits how often reportRefused speaks about one server. The control socket calls it from many goroutines.
	refusals sparing.Limiter
	// noJournal is true if this run must not be written into the project's journal, as the demo.
	noJournal bool
	// work, if not nil, uses the servers until ctx ends, and reports how each of its calls ended. Only the demo has one.
	work func(ctx context.Context, m *supervisor.Manager, ended func(server string, o messages.Outcome))
	// close ends what belongs to the run besides the manager; it is never nil.
	close func()
	// defect is called with a panic of a goroutine of the run, and ends the run in good order: a panic that is not recovered
	// would leave the servers to the guardian.
	defect func(p any)
}

// KeepServers keeps servers connected as "mcpvisor up" does, without files to follow and without a journal, while work uses them.
// The tests of the command give it work that has a defect.
func KeepServers(ctx context.Context, o *cli.Options, servers map[string]messages.Spec,
	work func(context.Context, *supervisor.Manager, func(string, messages.Outcome))) error {
	r := &upRun{options: o, project: ".", noJournal: true, close: func() {}, servers: servers, work: work}
	return r.keepConnected(ctx)
}

// catchPanic is deferred by every goroutine of the run.
func (r *upRun) catchPanic() {
	if p := recover(); p != nil {
		r.defect(p)
	}
}

// projectRun returns a run of the project's servers. It prints the problems of the files and asks about servers that wait for
// an approval. Without any server it still runs, unless --no-watch leaves it nothing to wait for.
func projectRun(ctx context.Context, o *cli.Options, f upFlags) (*upRun, error) {
	s, err := project.LoadSetup(o)
	if err != nil {
		return nil, err
	}
	s.PrintProblems(o)
	nothing := s.NoServersText()
	if nothing != "" && f.noWatch {
		return nil, exit.With(exit.Usage, nothing+addServerHelp)
	}
	// JSON output is for programs, which answer no questions.
	if !f.json {
		if err := approve.OfferApprovals(ctx, o, s); err != nil {
			return nil, err
		}
	}
	cfg := s.ManagerConfig(o)
	o.Prompter.OutlivesCall = true
	if f.callersAnswer && cfg.Elicit == nil {
		cfg.Elicit, cfg.ElicitURL = o.Prompter.AnswerElicitation, true // it refuses a question that no caller answers
	}
	r := &upRun{
		options: o, flags: f, project: s.ProjectDir, origin: s.Origin, servers: cfg.Servers, cfg: cfg, close: func() {},
	}
	r.cfg.Servers = nil
	if !f.noWatch {
		r.reading = &s.Snapshot
	}
	if nothing != "" {
		r.emptyText = nothing + ". It waits for servers: add one in another terminal with mcpvisor add NAME COMMAND…"
		if f.json {
			o.PrintRemark("%s", r.emptyText)
		}
	}
	if n := len(s.Problems); n > 0 {
		r.notes = append(r.notes, terminal.CountOf(n, "problem")+" in the configuration: mcpvisor config check")
	}
	return r, nil
}

// addServerHelp continues the sentence that there is nothing to connect.
const addServerHelp = `; add one with mcpvisor add NAME COMMAND…, or write a .mcp.json such as
  {"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]}}}
or name a server with --mcp-server, or see what mcpvisor does with: mcpvisor up --demo`

// errOutputClosed is the cancellation cause of a run whose output is a pipe that was closed.
var errOutputClosed = errors.New("nobody reads the output any more")

// keepConnected starts the manager, connects the servers, and keeps them until ctx ends, the time has passed, the output is
// closed or a goroutine panics. The end goes in the opposite order of the start:
//
//	start: display, manager, control socket and journal, servers, following the files
//	end:   following, journal, servers, manager, socket, display
//
// The error is nil after Ctrl-C and after --duration if every server ended in time.
func (r *upRun) keepConnected(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// By default Go ends the process at a write to a closed standard output. The servers should end in good order instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	r.defect = func(p any) {
		stop(&messages.Error{Op: "up", Class: messages.ClassPanic,
			Text: "a defect of mcpvisor ended it: " + messages.Line(fmt.Sprint(p), 200)})
	}
	d := r.chooseDisplay(func() { stop(errOutputClosed) })
	// From here on standard error goes through the display, so that it does not tear the table.
	r.options = d.wrapOptions(r.options)
	if r.options.Prompter != nil {
		r.options.Prompter.WithTerminal = d.withTerminal
	}
	m, err := project.StartManager(ctx, r.options, r.cfg)
	if err != nil {
		return err
	}
	p, err := r.openEndpoint(m)
	if err != nil {
		_ = m.CloseWithin(upCloseTime) // it has no servers yet
		return err
	}
	// The servers are configured after the watchers exist, so that no event of theirs is missed. The buffer holds a burst of
	// events of some hundred servers; what does not fit is reported as a gap, and the display reads the statuses again.
	w := m.Watch(4096)
	d.beginRun(ownManager{m.Manager})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		defer r.catchPanic()
		for e := range w.Events(context.Background()) { // it ends with the manager
			d.showEvent(e)
		}
	}()
	if _, err = m.Configure(ctx, r.servers); err == nil {
		unfollow := r.followFiles(ctx, m.Manager, d)
		r.runWork(ctx, m.Manager, d)
		// The journal ends before the manager does, with the servers as they were, not as they are while they end.
		p.announceEnd()
		unfollow()
	} else {
		p.announceEnd()
	}
	r.waitBriefly(func() { d.showEnding(r.endCause(ctx)) })
	start := time.Now()
	// An error of Configure is the reason of the end; otherwise servers that did not end in time are.
	if ended := m.CloseWithin(upCloseTime); err == nil || ctx.Err() != nil {
		err = ended
	}
	took := time.Since(start)
	p.closeAll()
	// All events have been published by now; closing the watcher lets the goroutine show the rest and end.
	w.Close()
	r.waitBriefly(func() {
		<-shown
		d.showEnded(took)
	})
	var defect *messages.Error
	switch cause := context.Cause(ctx); {
	case err != nil:
	case errors.Is(cause, errOutputClosed):
		err = &exit.Error{Code: exit.Failed}
	case errors.As(cause, &defect):
		err = defect
	}
	return err
}

// waitBriefly runs f and goes on without it after a second. A reader that has stopped reading the output would otherwise keep
// the servers, and this process, running.
func (r *upRun) waitBriefly(f func()) {
	done := make(chan struct{})
	go func() { // it ends with f, or with the process
		defer close(done)
		defer r.catchPanic()
		f()
	}()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// runWork returns when the run is to end and the work of the demo has ended.
func (r *upRun) runWork(ctx context.Context, m *supervisor.Manager, d display) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.catchPanic()
		if r.work != nil {
			r.work(ctx, m, d.countCall)
		}
	}()
	var ended <-chan time.Time
	if r.flags.duration > 0 {
		t := time.NewTimer(r.flags.duration)
		defer t.Stop()
		ended = t.C
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	cancel()
	<-done
}

// endCause says for a person why the run ends.
func (r *upRun) endCause(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return fmt.Sprintf("%s have passed", r.flags.duration)
	default:
		return cause.Error()
	}
}
