package manage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/signin"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// removeFlags holds the flags of remove.
type removeFlags struct {
	scope          string
	logout, asJSON bool
}

// NewRemove returns the command "remove", which runs removeServer.
func NewRemove(o *cli.Options) *cobra.Command {
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
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return removeServer(o, cmd, args[0], f) },
	}
	cmd.Flags().StringVarP(&f.scope, "scope", "s", "", "out of the file of this `scope`: local, project or user")
	cmd.Flags().BoolVar(&f.logout, "logout", false, "sign out of it first, see mcpvisor logout")
	cmd.Flags().BoolVarP(&f.asJSON, "json", "j", false, "print a JSON object")
	completeScope(cmd)
	return cmd
}

// removeReport is the JSON object that remove --json prints.
type removeReport struct {
	Name string `json:"name"`
	entryLocation
	// Next is the entry of the same name that counts from now on; nil if there is none.
	Next *entryLocation `json:"next,omitempty"`
}

// removeServer removes the entry from its file, forgets its approval and pins, and makes a running up let go of the server. The
// sign-out comes first, because it needs the entry. After the file is changed failures are only reported.
func removeServer(o *cli.Options, cmd *cobra.Command, name string, f removeFlags) error {
	scope, err := readScope(cmd, f.scope)
	if err != nil {
		return err
	}
	s, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	if err := checkMayManage(s, "removed"); err != nil {
		return err
	}
	e, err := entryToRemove(s, name, scope)
	if err != nil {
		return err
	}
	if e.counts {
		if err := signOut(cmd.Context(), o, name, s.Specs[name], f); err != nil {
			return err
		}
	}
	err = editFile(e.file, e.scope, func(text []byte, ours config.Parsed) ([]byte, error) { // another process has removed it
		current, ok := ours.Servers[name]
		if !ok || current.Path == nil { // another process has removed it
			return nil, notInFileError(name, e)
		}
		return edit.Remove(text, current.Path)
	})
	if err != nil {
		return err
	}
	project.RecordChanges(o, e.file, audit.Record{Change: "remove", Server: name})
	if err := s.Approvals.Forget(e.file, name); err != nil {
		o.WarnFailure(err)
	}
	// The pins belong to the entry that counts; those of a hidden entry are another server's.
	if e.counts {
		if err := s.Pins.Forget(approve.PinKey(s, name)); err != nil {
			o.WarnFailure(err)
		}
	}
	out := removeReport{Name: name, entryLocation: e.toLocation()}
	// Another scope may have an entry of the same name, which counts from now on.
	now, err := project.LoadSetup(o)
	if now == nil {
		return err
	}
	if remaining := entriesOf(now, name); len(remaining) > 0 {
		next := remaining[0].toLocation()
		out.Next = &next
	}
	notifyUp(cmd.Context(), o, name, out.Next != nil)
	if f.asJSON {
		return terminal.PrintJSON(o.Out, out)
	}
	fmt.Fprintf(o.Out, "Removed server %s from the %s scope\nFile modified: %s\n", messages.Line(name, 60), e.scope,
		messages.Line(e.file, 0))
	if out.Next != nil {
		o.PrintRemark("the one of the %s counts now", out.Next)
	}
	return nil
}

// notifyUp makes a running mcpvisor up notice at once that a server was removed, and waits until it is gone there, for at most
// stopTime. another says that another entry of the name counts now, so that the name stays.
func notifyUp(ctx context.Context, o *cli.Options, name string, another bool) {
	quiet := *o
	quiet.Err = io.Discard
	p, err := project.Open(ctx, &quiet)
	if err != nil {
		return // the file is changed all the same
	}
	defer p.Close()
	if p.Up == nil || !slices.Contains(p.Names, name) {
		return
	}
	if !p.ReloadUp(ctx) {
		o.PrintRemark("the running mcpvisor up does not follow its files, and has the server until it ends")
		return
	}
	// up lets the process end before it forgets the server. A command that the person runs next shall not see it any more.
	for until := time.Now().Add(stopTime); !another && slices.Contains(p.Names, name) && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
		p.RefreshNames(ctx)
	}
}

// stopTime bounds the wait for a removed server to be gone.
const stopTime = 5 * time.Second

// notInFileError returns the error about a server that is not in the file any more.
func notInFileError(name string, e fileEntry) error {
	return exit.With(exit.Usage, fmt.Sprintf("%s has no server %q", messages.Line(e.file, 0), messages.Line(name, 60)))
}

// entryToRemove returns the entry that is meant: that of the scope, or the only one. If several scopes have the name the person
// must choose, because the wrong one would be lost.
func entryToRemove(s *project.Setup, name string, scope messages.Scope) (fileEntry, error) {
	all := entriesOf(s, name)
	var fit []fileEntry
	for _, e := range all {
		if scope == "" || e.scope == scope {
			fit = append(fit, e)
		}
	}
	switch {
	case len(all) == 0:
		return fileEntry{}, project.UnknownServerError("remove", name, s.ServerNames(), s)
	case len(fit) == 0:
		return fileEntry{}, exit.With(exit.Usage, fmt.Sprintf("the %s scope has no server %q; it stands in the %s", scope,
			messages.Line(name, 60), all[0].toLocation()))
	}
	var scopes []string
	for _, e := range fit {
		if !slices.Contains(scopes, string(e.scope)) {
			scopes = append(scopes, string(e.scope))
		}
	}
	if len(scopes) > 1 {
		return fileEntry{}, exit.With(exit.Usage, fmt.Sprintf("several scopes have a server %q: %s; say which one with --scope",
			messages.Line(name, 60), strings.Join(scopes, ", ")))
	}
	return fit[0], fit[0].checkEditable("removed")
}

// signOut ends the sign-in of a server that is removed, if the person wants that. Later the sign-in could not be found by the
// name of the server. A sign-in whose state cannot be read does not keep the server in its file.
func signOut(ctx context.Context, o *cli.Options, name string, spec messages.Spec, f removeFlags) error {
	if spec.Invalid != "" || spec.URL == "" || spec.AuthKind() != messages.AuthOAuth {
		return nil
	}
	in, err := isSignedIn(ctx, o, name)
	if err != nil || !in {
		return nil //nolint:nilerr // what cannot be known does not keep a server
	}
	if !f.logout && !f.asJSON && o.Prompter.HasTerminal() {
		word := "no"
		err := o.Prompter.PromptForCommand(ctx, name, func(t *ask.Conversation) error {
			var err error
			word, err = t.ChooseWord("You are signed in to "+messages.Line(name, 60)+". Sign out as well? [y]es or [n]o", "yes", "no")
			return err
		})
		if err != nil {
			return exit.With(exit.Interrupted, "nothing was removed")
		}
		f.logout = word == "yes"
	}
	if f.logout {
		return signin.SignOutServer(ctx, o, name, true)
	}
	o.PrintRemark("its sign-in stays in the store; remove --logout would have ended it")
	return nil
}

// isSignedIn reports whether the person is signed in to a server. It asks a manager in which the server is disabled, so that
// nothing is dialled, and not the running up, since the store is shared.
func isSignedIn(ctx context.Context, o *cli.Options, name string) (bool, error) {
	quiet := *o
	quiet.NoControl = true
	s, spec, err := signin.Open(ctx, &quiet, "remove", name)
	if err != nil {
		return false, err
	}
	defer s.Close()
	spec.Disabled = true
	if err := s.StartSignInManager(ctx, name, spec); err != nil {
		return false, err
	}
	a, err := s.AuthStatusOf(ctx, name)
	return slices.Contains(signin.States, a.State), err
}
