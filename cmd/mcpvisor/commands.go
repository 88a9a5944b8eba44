package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/call"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/clients"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/connect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/manage"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/registry"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/serve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/signin"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
)

// commands lists the constructors of all commands of the program, in the groups and the order in which the help prints them.
// newRoot calls each constructor once for a run. The last group also gets cobra's "completion" command.
var commands = []struct {
	title    string
	commands []func(*cli.Options) *cobra.Command
}{
	{"Use servers:", []func(*cli.Options) *cobra.Command{
		newUp, serve.NewServe, inspect.NewList, call.NewTools, call.NewCall, call.NewResources, call.NewRead, call.NewPrompts, call.NewPrompt, call.NewComplete,
	}},
	{"Find out what is wrong:", []func(*cli.Options) *cobra.Command{inspect.NewWhy, inspect.NewPing, inspect.NewLogs, inspect.NewDoctor, inspect.NewAudit}},
	{"Manage servers:", []func(*cli.Options) *cobra.Command{
		manage.NewInit, manage.NewAdd, manage.NewAddJSON, manage.NewGet, manage.NewRemove, manage.NewEnable, manage.NewDisable, manage.NewReconnect, up.NewReload, registry.NewSearch, manage.NewImport, clients.NewClients, connect.NewConnect, connect.NewDown,
	}},
	{"Decide who may do what:", []func(*cli.Options) *cobra.Command{signin.NewLogin, signin.NewLogout, signin.NewAuth, approve.NewApprove, approve.NewDiff, approve.NewPermissions}},
	{"More:", slices.Concat([]func(*cli.Options) *cobra.Command{manage.NewConfig}, harnessCommands(),
		[]func(*cli.Options) *cobra.Command{cli.NewVersion, guardian.NewCommand, daemon.NewCommand})},
}

// newUp returns the command up with the demo of this build.
func newUp(o *cli.Options) *cobra.Command { return up.NewUp(o, newDemo) }
