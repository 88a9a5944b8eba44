package signin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// NewLogout returns the command "logout", which runs SignOutServer. remove runs it as well, with forget.
func NewLogout(o *cli.Options) *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget a sign-in, and ask its authorization server to revoke it",
		Long: `Removes the sign-in of a server from where it is kept, and asks the authorization server to revoke it. A running
"mcpvisor up" reconnects the server, which then needs a sign-in again.

Which authorization server a configured secret belongs to stays known, so that the server cannot name another one. --forget
forgets that too: the next sign-in asks you again.`,
		Example: `  mcpvisor logout search
  mcpvisor logout search --forget`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, completeSignIn),
		RunE:              func(cmd *cobra.Command, args []string) error { return SignOutServer(cmd.Context(), o, args[0], forget) },
	}
	o.AddJSONFlag(cmd, "print a JSON object")
	cmd.Flags().BoolVar(&forget, "forget", false, "forget as well which authorization server configured secrets belong to")
	return cmd
}

// SignOutServer deletes the sign-in of a server, asks the authorization server to revoke it, and makes a running up reconnect
// the server. With forget it also deletes which authorization server configured secrets belong to.
func SignOutServer(ctx context.Context, o *cli.Options, server string, forget bool) error {
	s, spec, err := Open(ctx, o, "logout", server)
	if err != nil {
		return err
	}
	defer s.Close()
	spec.Disabled = true // the server is not dialled
	if err := s.StartSignInManager(ctx, server, spec); err != nil {
		return err
	}
	before, err := s.AuthStatusOf(ctx, server)
	if err != nil {
		return err
	}
	if before.State == supervisor.AuthNotUsed && !forget && o.JSON {
		return terminal.PrintJSON(o.Out, logoutReport{Server: server})
	}
	if before.State == supervisor.AuthNotUsed && !forget {
		fmt.Fprintf(o.Out, "%s: nobody is signed in\n", messages.Line(server, 60))
		return nil
	}
	// Forget also deletes the binding of configured secrets to an authorization server.
	leave := s.OwnManager.Logout
	if forget {
		leave = s.OwnManager.Forget
	}
	revoked, err := leave(ctx, server)
	if stop := exit.InterruptedError(ctx); err != nil && stop != nil {
		return stop
	}
	if err != nil {
		return loginError(err)
	}
	// The state before decides what is printed, because afterwards the state is signed out in both cases.
	out := logoutReport{Server: server, SignedOut: slices.Contains(States, before.State), Revoked: revoked}
	if o.JSON {
		return s.printSignedOut(ctx, out)
	}
	text := "signed out"
	switch {
	case !slices.Contains(States, before.State):
		text = "nobody is signed in"
	case revoked:
		text += ", and revoked"
	default:
		text += "; the authorization server was not asked, or did not answer: what it gave ends at its own time"
	}
	fmt.Fprintf(o.Out, "%s: %s\n", messages.Line(server, 60), text)
	st, err := s.reconnectSignedOut(ctx, server)
	if st == nil || err != nil {
		return err
	}
	return inspect.PrintServer(o, *st)
}

// logoutReport is the JSON object that logout --json prints.
type logoutReport struct {
	Server string `json:"server"`
	// SignedOut is false if the person was not signed in; Revoked says that the authorization server has revoked the sign-in.
	SignedOut bool `json:"signedOut"`
	Revoked   bool `json:"revoked"`
	// Status is the phase of the server in the running mcpvisor up after the logout; empty if none runs.
	Status messages.Phase `json:"status,omitempty"`
}

// reconnectSignedOut makes the running mcpvisor up connect a server without its sign-in and returns the status after that. It
// returns nil if no up runs or the server is disabled.
func (p *signInProject) reconnectSignedOut(ctx context.Context, server string) (*messages.Status, error) {
	if p.Up == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	st, err := p.awaitOutcome(ctx, server, 0)
	if err != nil || st.Status == messages.Disabled {
		return nil, err
	}
	_ = p.Reconnect(within, server) // an error is expected: the server needs a sign-in now, and the status says so
	if st, err = p.awaitOutcome(ctx, server, 0); err != nil {
		return nil, err
	}
	return &st, nil
}

// printSignedOut reconnects the server as well, and prints the report as JSON.
func (p *signInProject) printSignedOut(ctx context.Context, out logoutReport) error {
	st, err := p.reconnectSignedOut(ctx, out.Server)
	if err != nil {
		return err
	}
	if st != nil {
		out.Status = st.Status
	}
	return terminal.PrintJSON(p.Options.Out, out)
}
