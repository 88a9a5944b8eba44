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
		ValidArgsFunction: o.completeSignIn,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.logout(cmd.Context(), args[0], forget) },
	}
	o.jsonFlag(cmd, "print a JSON object")
	cmd.Flags().BoolVar(&forget, "forget", false, "forget as well which authorization server configured secrets belong to")
	return cmd
}

func (o *options) logout(ctx context.Context, server string, forget bool) error {
	s, spec, err := o.openSigner(ctx, "logout", server)
	if err != nil {
		return err
	}
	defer s.close()
	spec.Disabled = true // nothing is dialled
	if err := s.startSigner(ctx, server, spec); err != nil {
		return err
	}
	before, err := s.authOf(ctx, server)
	if err != nil {
		return err
	}
	if before.State == supervisor.AuthNotUsed && !forget && o.json {
		return printJSON(o.out, signedOut{Server: server})
	}
	if before.State == supervisor.AuthNotUsed && !forget {
		fmt.Fprintf(o.out, "%s: nobody is signed in\n", messages.Line(server, 60))
		return nil
	}
	leave := s.own.Logout
	if forget {
		leave = s.own.Forget
	}
	revoked, err := leave(ctx, server)
	if stop := interrupted(ctx); err != nil && stop != nil {
		return stop
	}
	if err != nil {
		return ofLogin(err)
	}
	out := signedOut{Server: server, SignedOut: slices.Contains(signInStates, before.State), Revoked: revoked}
	if o.json {
		return s.leftJSON(ctx, out)
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
	st, err := s.left(ctx, server)
	if st == nil || err != nil {
		return err
	}
	return o.printServer(*st)
}

// signedOut is what "logout --json" prints.
type signedOut struct {
	Server string `json:"server"`
	// SignedOut is false if nobody was signed in; Revoked says that the authorization server has revoked the sign-in.
	SignedOut bool `json:"signedOut"`
	Revoked   bool `json:"revoked"`
	// Status is what the server is now in the running mcpvisor up; empty if none runs.
	Status messages.Phase `json:"status,omitempty"`
}

// left has the running mcpvisor up connect a server without its sign-in, and returns what it is then; nil if none runs, or the
// server is disabled.
func (p *signer) left(ctx context.Context, server string) (*messages.Status, error) {
	if p.up == nil {
		return nil, nil
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	st, err := p.ask(ctx, server, 0)
	if err != nil || st.Status == messages.Disabled {
		return nil, err
	}
	_ = p.Reconnect(within, server) // that it needs a sign-in now is what is wanted, and is told
	if st, err = p.ask(ctx, server, 0); err != nil {
		return nil, err
	}
	return &st, nil
}

func (p *signer) leftJSON(ctx context.Context, out signedOut) error {
	st, err := p.left(ctx, out.Server)
	if err != nil {
		return err
	}
	if st != nil {
		out.Status = st.Status
	}
	return printJSON(p.out, out)
}
