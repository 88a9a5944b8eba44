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

// newLogout returns the command "logout", which runs signOutServer. remove runs it as well, with forget.
func newLogout(o *options) *cobra.Command {
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
		Args:              oneServer,
		ValidArgsFunction: completeWith(o, completeSignIn),
		RunE:              func(cmd *cobra.Command, args []string) error { return signOutServer(cmd.Context(), o, args[0], forget) },
	}
	o.addJSONFlag(cmd, "print a JSON object")
	cmd.Flags().BoolVar(&forget, "forget", false, "forget as well which authorization server configured secrets belong to")
	return cmd
}

// signOutServer deletes the sign-in of a server, asks the authorization server to revoke it, and makes a running up reconnect
// the server. With forget it also deletes which authorization server configured secrets belong to.
func signOutServer(ctx context.Context, o *options, server string, forget bool) error {
	s, spec, err := openSignIn(ctx, o, "logout", server)
	if err != nil {
		return err
	}
	defer s.close()
	spec.Disabled = true // the server is not dialled
	if err := s.startSignInManager(ctx, server, spec); err != nil {
		return err
	}
	before, err := s.authStatusOf(ctx, server)
	if err != nil {
		return err
	}
	if before.State == supervisor.AuthNotUsed && !forget && o.json {
		return printJSON(o.out, logoutReport{Server: server})
	}
	if before.State == supervisor.AuthNotUsed && !forget {
		fmt.Fprintf(o.out, "%s: nobody is signed in\n", messages.Line(server, 60))
		return nil
	}
	// Forget also deletes the binding of configured secrets to an authorization server.
	leave := s.ownManager.Logout
	if forget {
		leave = s.ownManager.Forget
	}
	revoked, err := leave(ctx, server)
	if stop := interruptedError(ctx); err != nil && stop != nil {
		return stop
	}
	if err != nil {
		return loginError(err)
	}
	// The state before decides what is printed, because afterwards the state is signed out in both cases.
	out := logoutReport{Server: server, SignedOut: slices.Contains(signInStates, before.State), Revoked: revoked}
	if o.json {
		return s.printSignedOut(ctx, out)
	}
	text := "signed out"
	switch {
	case !slices.Contains(signInStates, before.State):
		text = "nobody is signed in"
	case revoked:
		text += ", and revoked"
	default:
		text += "; the authorization server was not asked, or did not answer: what it gave ends at its own time"
	}
	fmt.Fprintf(o.out, "%s: %s\n", messages.Line(server, 60), text)
	st, err := s.reconnectSignedOut(ctx, server)
	if st == nil || err != nil {
		return err
	}
	return printServer(o, *st)
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
	if p.up == nil {
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
	return printJSON(p.options.out, out)
}
