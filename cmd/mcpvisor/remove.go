package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/edit"
)

// removeFlags are those of remove.
type removeFlags struct {
	scope          string
	logout, asJSON bool
}

func newRemove(o *options) *cobra.Command {
	var f removeFlags
	cmd := &cobra.Command{
		Use:     "remove SERVER",
		Aliases: []string{"rm"},
		Short:   "Take a server out of its configuration file",
		Long: `Takes the entry of a server out of the file that has it, and forgets its approval and how its tools were. If several scopes have the name, say
which one with --scope. Nothing else in the file changes. A sign-in stays where it is kept, unless --logout is given or you
say so when asked.

Exit codes: 0 removed · 2 nothing was changed.`,
		Example: `  mcpvisor remove files
  mcpvisor remove files --scope project`,
		Args:              oneServer,
		ValidArgsFunction: o.completeServer,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.remove(cmd, args[0], f) },
	}
	cmd.Flags().StringVarP(&f.scope, "scope", "s", "", "out of the file of this `scope`: local, project or user")
	cmd.Flags().BoolVar(&f.logout, "logout", false, "sign out of it first, see mcpvisor logout")
	cmd.Flags().BoolVarP(&f.asJSON, "json", "j", false, "print a JSON object")
	completeScope(cmd)
	return cmd
}

// removed is what `remove --json` prints.
type removed struct {
	Name string `json:"name"`
	where
	// Next is the entry of the same name that counts from now on; missing if there is none.
	Next *where `json:"next,omitempty"`
}

func (o *options) remove(cmd *cobra.Command, name string, f removeFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	s, err := load(o)
	if err != nil {
		return err
	}
	if err := s.mayManage("removed"); err != nil {
		return err
	}
	e, err := s.toRemove(name, scope)
	if err != nil {
		return err
	}
	if e.counts {
		if err := o.signOut(cmd.Context(), name, s.Specs[name], f); err != nil {
			return err
		}
	}
	err = editFile(e.file, e.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		is, ok := ours.Servers[name]
		if !ok || is.Path == nil { // somebody else was faster
			return nil, unknownIn(name, e)
		}
		return edit.Remove(text, is.Path)
	})
	if err != nil {
		return err
	}
	o.changed(e.file, audit.Record{Change: "remove", Server: name})
	if err := s.Approvals.Forget(e.file, name); err != nil {
		o.fault(err)
	}
	if e.counts {
		if err := s.pins.Forget(pinKey(s, name)); err != nil {
			o.fault(err)
		}
	}
	out := removed{Name: name, where: e.where()}
	now, err := load(o)
	if now == nil {
		return err
	}
	if left := now.standings(name); len(left) > 0 {
		next := left[0].where()
		out.Next = &next
	}
	o.tellUp(cmd.Context(), name, out.Next != nil)
	if f.asJSON {
		return printJSON(o.out, out)
	}
	fmt.Fprintf(o.out, "Removed server %s from the %s scope\nFile modified: %s\n", messages.Line(name, 60), e.scope,
		messages.Line(e.file, 0))
	if out.Next != nil {
		o.remark("the one of the %s counts now", out.Next)
	}
	return nil
}

// tellUp has a running mcpvisor up notice at once that a server is gone; another says that one of the same name is not.
func (o *options) tellUp(ctx context.Context, name string, another bool) {
	aside := *o
	aside.err = discard{}
	p, err := aside.open(ctx)
	if err != nil {
		return // the file has been changed all the same
	}
	defer p.close()
	if p.up == nil || !slices.Contains(p.names, name) {
		return
	}
	if !p.catchUp(ctx) {
		o.remark("the running mcpvisor up does not follow its files, and has the server until it ends")
		return
	}
	// It lets the process end before it forgets the server; who looks next is not to meet it any more.
	for until := time.Now().Add(stopTime); !another && slices.Contains(p.names, name) && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		p.look(ctx)
	}
}

// stopTime is how long a removed server is waited for.
const stopTime = 5 * time.Second

func unknownIn(name string, e standing) error {
	return &exitError{exitUsage, fmt.Sprintf("%s has no server %q", messages.Line(e.file, 0), messages.Line(name, 60))}
}

// toRemove is the entry that is meant: that of the scope, or the only one.
func (s *setup) toRemove(name string, scope messages.Scope) (standing, error) {
	all := s.standings(name)
	var fit []standing
	for _, e := range all {
		if scope == "" || e.scope == scope {
			fit = append(fit, e)
		}
	}
	switch {
	case len(all) == 0:
		return standing{}, unknown("remove", name, s.names(), s)
	case len(fit) == 0:
		return standing{}, &exitError{exitUsage, fmt.Sprintf("the %s scope has no server %q; it stands in the %s", scope,
			messages.Line(name, 60), all[0].where())}
	}
	var scopes []string
	for _, e := range fit {
		if !slices.Contains(scopes, string(e.scope)) {
			scopes = append(scopes, string(e.scope))
		}
	}
	if len(scopes) > 1 {
		return standing{}, &exitError{exitUsage, fmt.Sprintf("several scopes have a server %q: %s; say which one with --scope",
			messages.Line(name, 60), strings.Join(scopes, ", "))}
	}
	return fit[0], fit[0].editable("removed")
}

// signOut ends a sign-in of the server that is removed, if that is wanted: afterwards nobody knows it by its name.
func (o *options) signOut(ctx context.Context, name string, spec messages.Spec, f removeFlags) error {
	if spec.Invalid != "" || spec.URL == "" || spec.AuthKind() != messages.AuthOAuth {
		return nil
	}
	in, err := o.signedIn(ctx, name)
	if err != nil || !in {
		return nil //nolint:nilerr // what cannot be known does not keep a server
	}
	if !f.logout && !f.asJSON && o.desk.terminal() {
		word := "no"
		err := o.desk.ask(ctx, name, func(t *talk) error {
			var err error
			word, err = t.choose("You are signed in to "+messages.Line(name, 60)+". Sign out as well? [y]es or [n]o", "yes", "no")
			return err
		})
		if err != nil {
			return &exitError{exitInterrupted, "nothing was removed"}
		}
		f.logout = word == "yes"
	}
	if f.logout {
		return o.logout(ctx, name, true)
	}
	o.remark("its sign-in stays in the store; remove --logout would have ended it")
	return nil
}

// signedIn reports whether somebody is signed in to a server. Nothing is dialled.
func (o *options) signedIn(ctx context.Context, name string) (bool, error) {
	quiet := *o
	quiet.noControl = true
	s, spec, err := quiet.openSigner(ctx, "remove", name)
	if err != nil {
		return false, err
	}
	defer s.close()
	spec.Disabled = true
	if err := s.startSigner(ctx, name, spec); err != nil {
		return false, err
	}
	a, err := s.authOf(ctx, name)
	return slices.Contains(signInStates, a.State), err
}
