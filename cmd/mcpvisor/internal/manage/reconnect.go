package manage

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// NewReconnect returns the command "reconnect". enable shares requestConnect with it.
func NewReconnect(o *cli.Options) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "reconnect SERVER",
		Aliases: []string{"restart"},
		Short:   "Tear a server's connection down and dial again at once",
		Long: `Asks the running "mcpvisor up" to end the server's connection, forget its failures and connect again.
Without one the server is started, to see whether it connects, and ended. Exit code 1: it does not connect.`,
		Example:           `  mcpvisor reconnect files`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			return requestConnect(o, cmd, args[0], wait, nil, func(ctx context.Context, p *project.Project) error {
				return p.Reconnect(ctx, args[0])
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	o.AddJSONFlag(cmd, "print a JSON object: what the server is now, as in list --json")
	return cmd
}

// requestConnect asks a running up to connect a server with ask, or connects it for a moment in this process, and prints its
// status. A server that does not connect is an error with exit code 1. adjust changes the configuration of this process, if it
// starts one.
func requestConnect(o *cli.Options, cmd *cobra.Command, server string, wait time.Duration, adjust func(*supervisor.Config),
	ask func(ctx context.Context, p *project.Project) error) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.StartServers(ctx, []string{server}, adjust); err != nil {
		return err
	}
	// The running up makes the attempt, and its answer comes when the attempt has ended.
	if p.Up != nil {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if err := ask(within, p); err != nil {
			return attemptError(ctx, err)
		}
		// The request has waited for the attempt.
		wait = 0
	}
	all, err := p.AwaitStatus(ctx, wait, server)
	if err != nil {
		return err
	}
	st := all[0]
	if !status.IsCallable(st) {
		e := status.NotConnectedError(st)
		e.Outcome = "" // no call was made
		return exit.WithCode(exit.Failed, e)
	}
	if err := inspect.PrintServer(o, st); err != nil {
		return err
	}
	if p.Up == nil {
		o.PrintRemark("it was connected for a moment only, because no mcpvisor up runs for this project")
	}
	return nil
}

// attemptError gives a failed attempt to connect the exit code 1. A wrong name and an interrupt keep their own codes.
func attemptError(ctx context.Context, err error) error {
	if stop := exit.InterruptedError(ctx); stop != nil {
		return stop
	}
	var e *messages.Error
	// These are mistakes of the command line, with exit codes of their own.
	if !errors.As(err, &e) || errors.Is(err, messages.ErrUnknownServer) {
		return err
	}
	return exit.WithCode(exit.Failed, err)
}
