// Package serve holds the command serve, which offers the servers of a project to agents as one server of the protocol.
//
// How it fits: serve starts a manager as up does, follows the configuration files, and puts the handler of package transports/serve,
// whose service is package supervisor/gateway, on a listener or on standard input and output.
//
// Guarantees: a listener takes requests with a token alone, unless the person says otherwise: with those of the configuration, or with
// one that is made for the run and stands in no file. An address that other machines reach needs a certificate and tokens of the
// configuration. Tokens and certificates that change on disk count within seconds; sessions that came with a token that is gone end, and
// the others notice nothing. Standard output has the address alone, or, with --stdio, the protocol alone. At the end agents have had
// their answers, or closeTime has passed, and all servers have ended.
//
//	serve.go        the command; listen.go the address
//	tokens.go       who comes in: the tokens of the configuration as they are now
//	certificate.go  the certificate as it is now
package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// closeTime bounds the end: requests in flight get a third of it, then the servers are stopped step by step.
const closeTime = 10 * time.Second

// flags holds the flags of serve.
type flags struct {
	listen, prefix, server, view string
	stdio, noToken, asJSON       bool
	noWatch                      bool
}

// NewServe returns the command "serve".
func NewServe(o *cli.Options) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer the servers of this project to agents, as one server",
		Long: `Connects every enabled server and keeps them connected, as up does, and offers all of them to agents as one MCP server: over
HTTP with --listen, or to the one program that starts it with --stdio. Agents of both eras of the protocol share the servers, and
one process of each serves all of them.

With --listen the first line of standard output is the address, once it accepts; with --json it is {"url": …, "token": …}. Agents
send the token as "Authorization: Bearer TOKEN": one of those that the key "gateway" of the configuration names, or else one that is
made for this run and stands in no file. That key also has views, principals, the certificate, and the address if --listen is not
given. Other machines are served with a certificate and such tokens only.

The names of tools are server__tool; --prefix never leaves the servers' own names, --prefix conflict where only one server has the
name. The path /mcp has all servers, /mcp/s/NAME one of them, with its own names, /mcp/v/NAME a view. SIGHUP reads the tokens anew.`,
		Example: `  mcpvisor serve --listen 127.0.0.1:8210
  mcpvisor serve --listen unix:$HOME/.mcp/agents.sock      # no token: only processes of this user can connect
  mcpvisor serve --stdio --view docs                       # as the command of a server in an agent's configuration
  mcpvisor serve -c servers.json --listen 127.0.0.1:0 --no-token --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, o, f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "serve over HTTP at this `address`, such as 127.0.0.1:8210 (port 0 takes a free one) or unix:/PATH")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "serve one agent on standard input and output")
	cmd.Flags().StringVar(&f.server, "server", "", "with --stdio, offer this `server` alone, with its own names")
	cmd.Flags().StringVar(&f.view, "view", "", "offer this `view` of the configuration, where no token says which")
	cmd.Flags().StringVar(&f.prefix, "prefix", "", "which names carry that of their server: always (the default), conflict or never")
	cmd.Flags().BoolVar(&f.noToken, "no-token", false, "let every program of this machine in, without a token")
	cmd.Flags().BoolVar(&f.noWatch, "no-watch", false, "do not follow configuration files that change")
	cmd.Flags().BoolVarP(&f.asJSON, "json", "j", false, "print the address as JSON")
	_ = cmd.RegisterFlagCompletionFunc("prefix", cobra.FixedCompletions(config.Prefixes, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("view", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		s, err := project.LoadSetup(o)
		if err != nil || s.Gateway == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(s.Gateway.Views)), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// run checks the flags, starts the manager and serves until the end.
func run(cmd *cobra.Command, o *cli.Options, f flags) error {
	o.ReportAtOnce()
	switch {
	case f.prefix != "" && !gateway.Prefix(f.prefix).Valid():
		return exit.UsageError(cmd, "--prefix %q is none of always, conflict, never", f.prefix)
	case f.stdio && f.listen != "":
		return exit.UsageError(cmd, "--stdio and --listen exclude each other")
	case f.stdio && (f.noToken || f.asJSON):
		return exit.UsageError(cmd, "--no-token and --json belong to --listen")
	case !f.stdio && f.server != "":
		return exit.UsageError(cmd, "--server belongs to --stdio: over HTTP an agent chooses a server by the path /mcp/s/NAME")
	}
	ctx := cmd.Context()
	s, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	s.PrintProblems(o)
	said := s.Gateway
	if said == nil {
		said = &config.Gateway{}
	}
	if said.Invalid != "" {
		return exit.With(exit.Usage, "who may use the servers cannot be read: "+said.Invalid+"; mcpvisor config check shows everything")
	}
	if err := checkView(cmd, f.view, said); err != nil {
		return err
	}
	if _, there := s.Specs[f.server]; f.server != "" && !there {
		return project.UnknownServerError("serve", f.server, s.ServerNames(), s)
	}
	// The address is taken before any server starts: one that is taken ends the command at once.
	var e *endpoint
	if !f.stdio {
		if e, err = openEndpoint(cmd, o, f, said); err != nil {
			return err
		}
		defer e.closeListener()
	}
	if nothing := s.NoServersText(); nothing != "" {
		if f.noWatch {
			return exit.With(exit.Usage, nothing+project.AddServerHint)
		}
		o.PrintRemark("%s", nothing)
	}
	cfg := s.ManagerConfig(o)
	// Agents answer what servers ask; a question that belongs to none of them is refused, because nobody here knows whose it is.
	cfg.Elicit, cfg.Sample = nil, nil
	questions := gateway.PassQuestions(&cfg)
	cfg.CallWait = gateway.CallWait
	// An agent that comes while servers start sees the tools that they had before: one that lists once would see none.
	cfg.RememberTools = true
	m, err := project.StartManager(ctx, o, cfg)
	if err != nil {
		return err
	}
	prefix := gateway.Prefix(f.prefix)
	if prefix == "" {
		prefix = gateway.Prefix(said.Prefix)
	}
	g := gateway.New(gateway.Config{Manager: m.Manager, Prefix: prefix, Views: said.Views, Questions: []*gateway.Questions{questions}})
	if !f.noWatch {
		follow := supervisor.FollowOptions{Reading: &s.Snapshot, OnReload: func(r supervisor.ReloadResult) { applyReload(ctx, o, g, e, r) }}
		follower, err := supervisor.Follow(ctx, m.Manager, follow)
		if err != nil && ctx.Err() == nil {
			o.WarnFailure(fmt.Errorf("changed configuration files are not followed: %w", err))
		} else if err == nil {
			defer follower.Close()
		}
	}
	if f.stdio {
		err = serve.Stdio(ctx, serve.Options{Service: g}, serve.Principal{View: f.view}, serve.Path{Server: f.server}, o.In, o.Out)
	} else {
		err = e.serveHTTP(ctx, o, f.asJSON, g)
	}
	g.Close()
	if closed := m.CloseWithin(closeTime); err == nil {
		err = closed
	}
	return err
}

// checkView refuses a view that is not configured.
func checkView(cmd *cobra.Command, name string, g *config.Gateway) error {
	if _, ok := g.Views[name]; ok || name == "" {
		return nil
	}
	known := slices.Sorted(maps.Keys(g.Views))
	if near := messages.Nearest(name, known); near != "" {
		return exit.UsageError(cmd, "there is no view %q; did you mean %q?", messages.Line(name, 80), near)
	}
	return exit.UsageError(cmd, "there is no view %q in the configuration", messages.Line(name, 80))
}

// applyReload takes what changed files say about agents. What cannot be read changes nothing; a key that is gone leaves no views and no
// tokens, so that nobody gets in who came by them.
func applyReload(ctx context.Context, o *cli.Options, g *gateway.Gateway, e *endpoint, r supervisor.ReloadResult) {
	said := r.Gateway
	if said == nil {
		said = &config.Gateway{}
	}
	if said.Invalid != "" {
		o.WarnFailure(fmt.Errorf("who may use the servers stays as it was: %s", said.Invalid))
		return
	}
	g.SetViews(said.Views)
	if e != nil && e.tokens != nil {
		e.tokens.replaceGateway(ctx, said)
	}
	for _, key := range r.Restart {
		o.PrintRemark("%s has changed, and counts when serve is started anew", key)
	}
}
