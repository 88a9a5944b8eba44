// Package connect holds the command connect, by which an agent uses the servers of mcpvisor: it carries the agent's messages from
// standard input to the daemon of the user and back, and the command down, which ends the daemon.
//
// How it fits: package daemon finds or starts the daemon and greets it. The bridge (bridge.go) decides what becomes of each line; it
// is a value without I/O, and also asks for the agent's roots (roots.go) and keeps the connection of a directory that the agent has left until
// its requests have ended (former.go). The carrier (carrier.go) reads and writes, and finds the next daemon when one has gone.
//
//	agent ── stdin ──> carryLines ──> bridge ──> outbox ──> daemon
//	agent <── stdout ── carryLines <── bridge <──────────── daemon
//
// Guarantees: the agent's session survives the daemon: a new one is told the handshake, the log level and the subscriptions. A
// request that only reads is asked again; any other that the old daemon had is answered as unknown, and never sent twice. What comes
// while there is no daemon waits for the next one, within bounds. A daemon that is replaced by a newer version answers what it has.
//
// The agent's roots choose whose servers it gets, unless a directory was given: the first one that is a directory of this machine. The
// agent begins with the working directory, so that nothing waits for roots. It is asked at most once a second.
//
// A message that is larger than the daemon takes is answered here, and the session goes on.
//
// Not promised: progress and partial results of what a daemon was doing when it was killed.
package connect

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// maxLine bounds a message of the agent that is read at all, maxMessage one that the daemon takes.
	maxLine, maxMessage = 64 << 20, serve.DefaultMaxBody
	// maxWaiting bounds what waits for a daemon; beyond it the agent is not read.
	maxWaiting = 16 << 20
	// firstRetry and lastRetry bound the time between two attempts to find or start a daemon.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// shortageTime is how long an agent waits for a daemon where there are no descriptors or processes left, before it is told so.
	shortageTime = 5 * time.Second
	// lastWrite is how long an agent has to read when this process is told to end.
	lastWrite = 2 * time.Second
	// rootsInterval is the least time between two questions for the agent's roots: each answer may start servers.
	rootsInterval = time.Second
	// lastAnswers bounds the wait for answers after the agent has closed its side.
	lastAnswers = 30 * time.Second
)

// programStart is when the agent began to wait for its servers: it has started this program.
var programStart = time.Now()

// NewConnect returns the command "connect".
func NewConnect(o *cli.Options) *cobra.Command {
	var dir, view string
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Give an agent all servers of mcpvisor, as one server over stdio",
		Long: `This is the command that an agent's configuration names; mcpvisor clients connect writes it there. It speaks MCP on standard input
and output, and passes everything on to the daemon of this user, which it starts if there is none. All agents share the servers.

The servers are those of the project in whose directory the agent works, and yours: of the first of its roots that is a directory, or of
the working directory. A server of a project that you have not approved is not started; standard error says which command approves it. The daemon ends ten minutes after its last agent, or with
mcpvisor down. If it is killed, or replaced by a newer version, agents go on.

Of the agent's variables only those that approved entries mention reach the daemon.`,
		Example: `  mcpvisor clients connect cursor
  mcpvisor connect --project ~/src/website`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConnect(cmd.Context(), o, dir, view) },
	}
	cmd.Flags().StringVar(&dir, "project", "", "use the servers of the project in this `directory`, whatever roots the agent has")
	_ = cmd.MarkFlagDirname("project") // this flag exists
	cmd.Flags().StringVar(&view, "view", "", "offer this `view` of the configuration, and not everything")
	return cmd
}

// NewDown returns the command "down".
func NewDown(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the daemon that agents use",
		Long: `Ends the daemon that mcpvisor connect or mcpvisor up has started, and its servers. What agents have asked is answered first, for at
most ten seconds. An agent that is still connected starts a new daemon with its next request.

Exit codes: 0 it has ended, or there was none · 1 it has not ended in time.`,
		Example: "  mcpvisor down",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			there, err := client.End(cmd.Context())
			switch interrupted := exit.InterruptedError(cmd.Context()); {
			case interrupted != nil:
				return interrupted
			case err != nil:
				return exit.WithCode(exit.Failed, err)
			case there:
				fmt.Fprintln(o.Out, "The daemon has ended.")
			default:
				fmt.Fprintln(o.Out, "No daemon runs.")
			}
			return nil
		},
	}
}

// runConnect carries messages between standard input and output and the daemon until the agent goes.
func runConnect(ctx context.Context, o *cli.Options, given, view string) error {
	// The daemon reads the files of the project by itself, and approvals with them: what one agent says is not all agents'.
	if flag := o.ApartFlag(); flag != "" {
		return exit.With(exit.Usage, "connect takes no "+flag+": the daemon keeps the servers as the files of the project and yours say; "+
			"use mcpvisor serve --stdio for an agent with servers of its own")
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return exit.With(exit.Usage, "the working directory is not known; change to another one, or give --project")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return exit.With(exit.Usage, fmt.Sprintf("--project: %s is no directory", messages.Line(dir, 0)))
	}
	c := &carrier{workDir: dir, in: o.In, out: o.Out, warn: func(text string) { fmt.Fprintln(o.Err, "mcpvisor: "+text) }}
	c.bridge.roots.follow = given == ""
	c.dial = func(ctx context.Context, dir string, began time.Time) (net.Conn, *bufio.Reader, []string, error) {
		return client.Dial(ctx, client.Wish{Dir: dir, View: view, Began: began, Lookup: os.LookupEnv})
	}
	return c.carryUntilEnd(ctx)
}
