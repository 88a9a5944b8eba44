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
	return &cobra.Command{
		Use:   "logout SERVER",
		Short: "Forget a sign-in, and ask its authorization server to revoke it",
		Long: `Removes the sign-in of a server from where it is kept, and asks the authorization server to revoke it. A running
"mcpvisor up" reconnects the server, which then needs a sign-in again.`,
		Args:              oneServer,
		ValidArgsFunction: o.completeSignIn,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.logout(cmd.Context(), args[0]) },
	}
}

func (o *options) logout(ctx context.Context, server string) error {
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
	if before.State == supervisor.AuthNotUsed {
		fmt.Fprintf(o.out, "%s: nobody is signed in\n", messages.Line(server, 60))
		return nil
	}
	revoked, err := s.own.Logout(ctx, server)
	if stop := interrupted(ctx); err != nil && stop != nil {
		return stop
	}
	if err != nil {
		return ofLogin(err)
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
	if s.up == nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	st, err := s.ask(ctx, server, 0)
	if err != nil || st.Status == messages.Disabled {
		return err
	}
	_ = s.Reconnect(within, server) // that it needs a sign-in now is what is wanted, and is told
	if st, err = s.ask(ctx, server, 0); err != nil {
		return err
	}
	o.printServer(st)
	return nil
}
