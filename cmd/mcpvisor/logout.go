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
		Args:              oneServer,
		ValidArgsFunction: o.completeSignIn,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.logout(cmd.Context(), args[0], forget) },
	}
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
