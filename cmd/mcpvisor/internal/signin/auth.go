package signin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// NewAuth returns the command "auth", which only has subcommands and prints its help without one.
func NewAuth(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "auth",
		Short:   "Say how servers let us in, and who is signed in",
		Example: `  mcpvisor auth status`,
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.ShowHelp,
	}
	cmd.AddCommand(newAuthStatus(o))
	return cmd
}

// newAuthStatus returns the command "auth status", which runs authStatus. It neither dials a server nor shows a token.
func newAuthStatus(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [SERVER…]",
		Short: "Say of the remote servers who is signed in, for what, until when, and where that is kept",
		Long: `Says of each remote server how it lets us in, who is signed in, with which scopes, until when, and where that is kept.
Nothing is sent and nothing is started, and no token is ever shown. Exit code 1: a server that was named, or one that a
running "mcpvisor up" keeps, needs a sign-in.`,
		Example: `  mcpvisor auth status
  mcpvisor auth status search --json`,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServers),
		RunE:              func(cmd *cobra.Command, args []string) error { return authStatus(cmd.Context(), o, args, asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	return cmd
}

// authReport is the JSON object that auth status prints for one server.
type authReport struct {
	supervisor.AuthStatus
	// Status is the phase of the server in a running up; empty without one.
	Status messages.Phase `json:"status,omitempty"`
	// Todo says what the person can do; empty if there is nothing to do.
	Todo string `json:"todo,omitempty"`
}

// authStatus prints the state of the sign-ins. It reads the stores in this process, and takes only the phases from a running
// up.
func authStatus(ctx context.Context, o *cli.Options, names []string, asJSON bool) error {
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	s := &signInProject{p}
	defer s.Close()
	specs := map[string]messages.Spec{}
	named := len(names) > 0
	if !named {
		names = s.Names
	}
	phases := map[string]messages.Status{}
	for _, name := range names {
		spec, err := specOf(ctx, s.Project, "auth status", name)
		switch {
		case err != nil && named:
			return err
		case err != nil:
			continue // the running up has this server from another file or flag
		}
		spec.Disabled = true // a disabled server is not dialled by the manager below
		specs[name] = spec
	}
	if s.Up != nil {
		all, err := s.Status(ctx, control.StatusQuery{})
		if err != nil {
			return err
		}
		for _, st := range all {
			phases[st.Name] = st
		}
	}
	all, err := s.authStatuses(ctx, specs)
	if err != nil {
		return err
	}
	out := make([]authReport, len(all))
	needed := false
	for i, a := range all {
		// Only the up's connection knows whether the server refuses the credentials; the stores know what is kept.
		if st, ok := phases[a.Server]; ok {
			if a.NeedsAuth = st.Status == messages.NeedsAuth; a.NeedsAuth && a.State == supervisor.AuthNotUsed {
				a.State = supervisor.AuthSignedOut
			}
			out[i].Status = st.Status
		}
		out[i].AuthStatus, out[i].Todo = a, authTodo(a, named)
		// A server that was not named and is not used by a running up does not make the command fail.
		needed = needed || a.NeedsAuth || named && out[i].Todo != "" && a.State != supervisor.AuthNotUsed
	}
	if asJSON {
		err = terminal.PrintJSON(o.Out, out)
	} else {
		printAuth(o, out, time.Now())
	}
	if err == nil && needed {
		err = &exit.Error{Code: exit.Failed}
	}
	return err
}

// authStatuses asks a manager of its own in which every server is disabled, so that nothing is dialled or started.
func (s *signInProject) authStatuses(ctx context.Context, specs map[string]messages.Spec) ([]supervisor.AuthStatus, error) {
	cfg := s.configOf(specs)
	cfg.Logger = s.Options.NewLogger()
	if err := project.ChooseStore(s.Options, &cfg); err != nil {
		return nil, err
	}
	m, err := supervisor.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		within, cancel := context.WithTimeout(context.Background(), project.CloseTime)
		defer cancel()
		_ = m.Close(within) // it has connected nothing, so that there is nothing to wait for
	}()
	return m.AuthStatus(ctx)
}

// authTodo returns what the person can do about the credentials of a server, as a clause. named adds advice that would be noise
// in a list of all servers.
func authTodo(a supervisor.AuthStatus, named bool) string {
	login := "mcpvisor login " + terminal.ShellWord(a.Server)
	// The order counts: what the person has to do first hides what may follow from it.
	switch {
	case a.State == supervisor.AuthUnknown:
		return messages.Line(a.Problem, 300)
	case a.State == supervisor.AuthExpired:
		return "sign in again: " + login
	case a.State == supervisor.AuthSignedOut:
		return "sign in: " + login
	case a.NeedsAuth && a.State == supervisor.AuthSignedIn:
		return "the server refuses this sign-in; sign in again: " + login
	case a.NeedsAuth:
		return "the server refuses what is configured: correct it, then run: mcpvisor reconnect " + terminal.ShellWord(a.Server)
	case len(a.Wanted) > 0:
		return "the server has asked for more (" + messages.Line(strings.Join(a.Wanted, " "), 200) + "); to allow it: " + login
	case a.Unsaved:
		return "the newest token could not be stored: see that the store can be written to"
	case a.State == supervisor.AuthNotUsed && named:
		return "if the server asks for a sign-in: " + login
	}
	return ""
}

// printAuth prints the table, and below it what to do about each server.
func printAuth(o *cli.Options, all []authReport, now time.Time) {
	if len(all) == 0 {
		o.PrintRemark("no remote server is configured: none needs credentials")
		return
	}
	t := terminal.NewTable(o.Out, "server", "kind", "state", "who", "scopes", "access until", "kept in")
	for _, a := range all {
		t.AppendRow([]any{messages.Line(a.Server, 60), messages.Line(a.Kind, 40),
			terminal.PaintText(o.Out, colourOfAuth(a.AuthStatus), string(a.State)), personText(a.AuthStatus),
			messages.Line(strings.Join(a.Scopes, " "), 80), untilText(a.AuthStatus, now), messages.Line(a.Where, 80)})
	}
	terminal.PrintTable(o.Out, t)
	for _, a := range all {
		if a.Todo != "" {
			fmt.Fprintf(o.Out, "\n%s: %s\n", messages.Line(a.Server, 60), messages.Line(a.Todo, 0))
		}
	}
}

// colourOfAuth is yellow where the person has to act, green for a valid sign-in, and nil otherwise.
func colourOfAuth(a supervisor.AuthStatus) text.Colors {
	switch {
	case a.NeedsAuth, a.State == supervisor.AuthSignedOut, a.State == supervisor.AuthExpired,
		a.State == supervisor.AuthUnknown:
		return text.Colors{text.FgYellow}
	case a.State == supervisor.AuthSignedIn:
		return text.Colors{text.FgGreen}
	}
	return nil
}

// personText names the person and the authorization server, as far as they are known.
func personText(a supervisor.AuthStatus) string {
	who := messages.Line(a.Who, 80)
	if a.Issuer == "" {
		return who
	}
	return strings.TrimSpace(who + " at " + strings.TrimPrefix(messages.Line(a.Issuer, 120), "https://"))
}

// untilText says until when the access token is valid; "" if it does not expire or that is unknown.
func untilText(a supervisor.AuthStatus, now time.Time) string {
	switch {
	case a.Expiry.IsZero():
		return ""
	case a.Renewable:
		return terminal.ClockTime(a.Expiry, now) + ", then renewed"
	}
	return terminal.ClockTime(a.Expiry, now)
}

// signInText returns a text that continues "signed in": as whom, where, for what, until when, and where that is kept.
func signInText(a supervisor.AuthStatus, now time.Time) string {
	out := ""
	if a.Who != "" {
		out += " as " + messages.Line(a.Who, 80)
	}
	if a.Issuer != "" {
		out += " at " + messages.Line(a.Issuer, 120)
	}
	if len(a.Scopes) > 0 {
		out += " for " + messages.Line(strings.Join(a.Scopes, " "), 200)
	}
	if u := untilText(a, now); u != "" {
		out += ", access until " + u
	}
	return out + "; kept in " + messages.Line(a.Where, 200)
}
