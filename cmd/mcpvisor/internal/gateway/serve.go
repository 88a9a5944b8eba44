// Package gateway holds the command serve, which offers the servers of a project to agents as one server of the protocol.
//
// How it fits: serve starts a manager as up does, follows the configuration files, and puts the handler of package transports/serve,
// whose service is package supervisor/gateway, on a listener or on standard input and output.
//
// Guarantees: a listener on the loopback takes requests with the token alone, unless the person says otherwise; the token stands in
// no file. Standard output has the address alone, or, with --stdio, the protocol alone. At the end agents have had their answers, or
// closeTime has passed, and all servers have ended.
//
// Not promised: a place for agents of another machine. An address that is not of the loopback is refused.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// closeTime bounds the end: requests in flight get a third of it, then the servers are stopped step by step.
const closeTime = 10 * time.Second

// flags holds the flags of serve.
type flags struct {
	listen, prefix, view   string
	stdio, noToken, asJSON bool
	noWatch                bool
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
send the token as "Authorization: Bearer TOKEN". It is made anew for each run and stands in no file. Only addresses of the loopback
are served.

The names of tools are server__tool; --prefix never leaves the servers' own names, --prefix conflict where only one server has the
name. The path /mcp has all servers, /mcp/s/NAME one of them, with its own names.`,
		Example: `  mcpvisor serve --listen 127.0.0.1:8210
  mcpvisor serve --stdio                                   # as the command of a server in an agent's configuration
  mcpvisor serve -c servers.json --listen 127.0.0.1:0 --no-token --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, o, f) },
	}
	cmd.Flags().StringVar(&f.listen, "listen", "", "serve over HTTP at this `address`, such as 127.0.0.1:8210; port 0 takes a free one")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "serve one agent on standard input and output")
	cmd.Flags().StringVar(&f.view, "server", "", "with --stdio, offer this `server` alone, with its own names")
	cmd.Flags().StringVar(&f.prefix, "prefix", string(gateway.PrefixAlways), "which names carry that of their server: always, conflict or never")
	cmd.Flags().BoolVar(&f.noToken, "no-token", false, "let every program of this machine in, without a token")
	cmd.Flags().BoolVar(&f.noWatch, "no-watch", false, "do not follow configuration files that change")
	cmd.Flags().BoolVarP(&f.asJSON, "json", "j", false, "print the address as JSON")
	return cmd
}

// run checks the flags, starts the manager and serves until the end.
func run(cmd *cobra.Command, o *cli.Options, f flags) error {
	o.ReportAtOnce()
	switch prefix := gateway.Prefix(f.prefix); {
	case !prefix.Valid():
		return exit.UsageError(cmd, "--prefix %q is none of always, conflict, never", f.prefix)
	case f.stdio == (f.listen != ""):
		return exit.UsageError(cmd, "serve needs --listen ADDRESS, or --stdio")
	case f.stdio && (f.noToken || f.asJSON):
		return exit.UsageError(cmd, "--no-token and --json belong to --listen")
	case !f.stdio && f.view != "":
		return exit.UsageError(cmd, "--server belongs to --stdio: over HTTP an agent chooses a server by the path /mcp/s/NAME")
	}
	ctx := cmd.Context()
	// The port is taken before any server starts: one that is taken ends the command at once.
	var listener net.Listener
	if f.listen != "" {
		var err error
		if listener, err = listen(ctx, cmd, f.listen); err != nil {
			return err
		}
		defer listener.Close()
	}
	s, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	s.PrintProblems(o)
	if nothing := s.NoServersText(); nothing != "" {
		if f.noWatch {
			return exit.With(exit.Usage, nothing+project.AddServerHint)
		}
		o.PrintRemark("%s", nothing)
	}
	cfg := s.ManagerConfig(o)
	// Agents answer what servers ask; a question that belongs to none of them is refused, because nobody here knows whose it is.
	cfg.Elicit, cfg.Sample = nil, nil
	gateway.PassQuestions(&cfg)
	cfg.CallWait = gateway.CallWait
	m, err := project.StartManager(ctx, o, cfg)
	if err != nil {
		return err
	}
	if !f.noWatch {
		follower, err := supervisor.Follow(ctx, m.Manager, supervisor.FollowOptions{Reading: &s.Snapshot})
		if err != nil && ctx.Err() == nil {
			o.WarnFailure(fmt.Errorf("changed configuration files are not followed: %w", err))
		} else if err == nil {
			defer follower.Close()
		}
	}
	g := gateway.New(gateway.Config{Manager: m.Manager, Prefix: gateway.Prefix(f.prefix)})
	if f.stdio {
		err = serve.Stdio(ctx, serve.Options{Service: g}, serve.Principal{}, serve.Path{Server: f.view}, o.In, o.Out)
	} else {
		err = serveHTTP(ctx, o, f, g, listener)
	}
	g.Close()
	if closed := m.CloseWithin(closeTime); err == nil {
		err = closed
	}
	return err
}

// listen takes the address, which must be one of the loopback.
func listen(ctx context.Context, cmd *cobra.Command, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, exit.UsageError(cmd, "--listen %q is not HOST:PORT", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, exit.UsageError(cmd, "--listen %q is no address of the loopback: agents of other machines are not served", address)
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &messages.Error{Op: "serve", Class: messages.ClassConfig, Text: "the address " + address + " cannot be taken: " + err.Error(),
			Fix: "end the program that has it, or choose another port", Err: err}
	}
	return l, nil
}

// serveHTTP serves until ctx ends, and then lets requests in flight finish for a while.
func serveHTTP(ctx context.Context, o *cli.Options, f flags, g *gateway.Gateway, l net.Listener) error {
	options, token := serve.Options{Service: g}, ""
	if f.noToken {
		o.PrintRemark("warning: without a token every program of this machine can use these servers")
	} else {
		token = rand.Text()
		options.Authenticate = serve.NewTokens(map[string]serve.Principal{token: {}}).Authenticate
	}
	h := serve.NewHandler(options)
	server := h.Server()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	url := "http://" + l.Addr().String() + "/mcp"
	if err := printAddress(o, f.asJSON, url, token); err != nil {
		_ = server.Close()
		return err
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	within, cancel := context.WithTimeout(context.Background(), closeTime/3)
	defer cancel()
	if cut := h.Close(within); cut != nil {
		o.PrintRemark("%s", cut)
	}
	_ = server.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// printAddress prints where agents find the servers, as the first line of standard output.
func printAddress(o *cli.Options, asJSON bool, url, token string) error {
	if asJSON {
		return terminal.PrintJSONLine(o.Out, struct {
			URL   string `json:"url"`
			Token string `json:"token,omitempty"`
		}{url, token})
	}
	text := url + "\n"
	if token != "" {
		text += "Authorization: Bearer " + token + "\n"
	}
	_, err := fmt.Fprint(o.Out, text)
	return err
}
