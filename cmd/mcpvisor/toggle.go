package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

func newEnable(o *options) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "enable SERVER",
		Short: "Enable a server of the running mcpvisor up",
		Long: `Asks the running "mcpvisor up" to connect a disabled server and to keep it connected, until that
mcpvisor up ends. Without one the server is started, to see whether it connects, and ended. To enable a server
for good, take "disabled" out of its configuration. Exit code 1: it does not connect.`,
		Args:              oneServer,
		ValidArgsFunction: o.completeServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			server := args[0]
			enabled := func(cfg *supervisor.Config) {
				spec := cfg.Servers[server]
				spec.Disabled = false
				cfg.Servers[server] = spec
			}
			return o.wish(cmd, server, wait, enabled, func(ctx context.Context, p *project) error {
				return p.Enable(ctx, server)
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	return cmd
}

func newDisable(o *options) *cobra.Command {
	var disconnect bool
	cmd := &cobra.Command{
		Use:   "disable SERVER",
		Short: "Disable a server of the running mcpvisor up",
		Long: `Asks the running "mcpvisor up" to take a server's tools away until it is enabled again. Its connection
is kept warm unless --disconnect is given. To disable a server for good, write "disabled": true into its
configuration; without a running mcpvisor up there is nothing else that could be done, and the exit code is 2.`,
		Args:              oneServer,
		ValidArgsFunction: o.completeServer,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.disable(cmd, args[0], disconnect) },
	}
	cmd.Flags().BoolVar(&disconnect, "disconnect", false, "end its connection, too")
	return cmd
}

func (o *options) disable(cmd *cobra.Command, server string, disconnect bool) error {
	ctx := cmd.Context()
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if !slices.Contains(p.names, server) {
		return unknown("disable", server, p.names, p.setup)
	}
	if p.up == nil {
		where := "its configuration"
		if source := p.setup.Specs[server].Source; source != "" {
			where = messages.Line(source, 0)
		}
		return &exitError{exitUsage, fmt.Sprintf("no mcpvisor up runs for this project, so that server %q runs nowhere; "+
			"write \"disabled\": true for it in %s", messages.Line(server, 60), where)}
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.Disable(within, server, disconnect); err != nil {
		return ofAttempt(ctx, err)
	}
	all, err := p.status(ctx, 0, server)
	if err != nil {
		return err
	}
	o.printServer(all[0])
	return nil
}
