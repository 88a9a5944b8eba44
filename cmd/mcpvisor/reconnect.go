package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

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
		ValidArgsFunction: o.completeServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.requestConnect(cmd, args[0], wait, nil, func(ctx context.Context, p *project) error {
				return p.Reconnect(ctx, args[0])
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	o.addJSONFlag(cmd, "print a JSON object: what the server is now, as in list --json")
	return cmd
}

// requestConnect asks a running up to connect a server, or connects it for a moment, and says how it went.
func (o *options) requestConnect(cmd *cobra.Command, server string, wait time.Duration, adjust func(*supervisor.Config),
	ask func(ctx context.Context, p *project) error) error {
	ctx := cmd.Context()
	p, err := o.openProject(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.startServers(ctx, []string{server}, adjust); err != nil {
		return err
	}
	if p.up != nil {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if err := ask(within, p); err != nil {
			return attemptError(ctx, err)
		}
		wait = 0
	}
	all, err := p.awaitStatus(ctx, wait, server)
	if err != nil {
		return err
	}
	st := all[0]
	if !isCallable(st) {
		e := notConnectedError(st)
		e.Outcome = "" // there was no call
		return &codedError{exitFailed, e}
	}
	if err := o.printServer(st); err != nil {
		return err
	}
	if p.up == nil {
		o.printRemark("it was connected for a moment only, because no mcpvisor up runs for this project")
	}
	return nil
}

// printServer says in a line what a server is now; with --json it prints its status.
func (o *options) printServer(st messages.Status) error {
	if o.json {
		return printJSON(o.out, st)
	}
	text := messages.Line(st.Name, 60) + ": " + paintPhase(o.out, st)
	if detail := detailOf(st, time.Now()); detail != "" {
		text += "  " + detail
	}
	_, err := fmt.Fprintln(o.out, text)
	return err
}

// attemptError makes the failure of an attempt the exit code 1, and leaves a wrong name or an interrupt what it is.
func attemptError(ctx context.Context, err error) error {
	if stop := interruptedError(ctx); stop != nil {
		return stop
	}
	var e *messages.Error
	if !errors.As(err, &e) || errors.Is(err, messages.ErrUnknownServer) {
		return err
	}
	return &codedError{exitFailed, err}
}
