package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// newReconnect returns the command "reconnect". enable shares requestConnect with it.
func newReconnect(o *options) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "reconnect SERVER",
		Aliases: []string{"restart"},
		Short:   "Tear a server's connection down and dial again at once",
		Long: `Asks the running "mcpvisor up" to end the server's connection, forget its failures and connect again.
Without one the server is started, to see whether it connects, and ended. Exit code 1: it does not connect.`,
		Example:           `  mcpvisor reconnect files`,
		Args:              oneServer,
		ValidArgsFunction: completeWith(o, completeServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			return requestConnect(o, cmd, args[0], wait, nil, func(ctx context.Context, p *project) error {
				return p.Reconnect(ctx, args[0])
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	o.addJSONFlag(cmd, "print a JSON object: what the server is now, as in list --json")
	return cmd
}

// requestConnect asks a running up to connect a server with ask, or connects it for a moment in this process, and prints its
// status. A server that does not connect is an error with exit code 1. adjust changes the configuration of this process, if it
// starts one.
func requestConnect(o *options, cmd *cobra.Command, server string, wait time.Duration, adjust func(*supervisor.Config),
	ask func(ctx context.Context, p *project) error) error {
	ctx := cmd.Context()
	p, err := openProject(ctx, o)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.startServers(ctx, []string{server}, adjust); err != nil {
		return err
	}
	// The running up makes the attempt, and its answer comes when the attempt has ended.
	if p.up != nil {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if err := ask(within, p); err != nil {
			return attemptError(ctx, err)
		}
		// The request has waited for the attempt.
		wait = 0
	}
	all, err := p.awaitStatus(ctx, wait, server)
	if err != nil {
		return err
	}
	st := all[0]
	if !isCallable(st) {
		e := notConnectedError(st)
		e.Outcome = "" // no call was made
		return withExitCode(exitFailed, e)
	}
	if err := printServer(o, st); err != nil {
		return err
	}
	if p.up == nil {
		o.printRemark("it was connected for a moment only, because no mcpvisor up runs for this project")
	}
	return nil
}

// attemptError gives a failed attempt to connect the exit code 1. A wrong name and an interrupt keep their own codes.
func attemptError(ctx context.Context, err error) error {
	if stop := interruptedError(ctx); stop != nil {
		return stop
	}
	var e *messages.Error
	// These are mistakes of the command line, with exit codes of their own.
	if !errors.As(err, &e) || errors.Is(err, messages.ErrUnknownServer) {
		return err
	}
	return withExitCode(exitFailed, err)
}
