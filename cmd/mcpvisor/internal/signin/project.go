// Package signin holds the commands about sign-ins: login, logout and auth.
//
// How it fits: a sign-in needs the person and a browser, so that its manager runs in this process even while a "mcpvisor up"
// runs; both share the store of sign-ins. supervisor and transports/auth hold the protocol; this package holds the dialog at
// the terminal and what is printed. Commands that add or remove a server sign in and out with [SignIn] and [SignOutServer].
//
//	login.go, login_dialog.go, login_confirm.go   what the server asks for, the browser and the paste, the yes for a secret
//	logout.go, auth.go                            the end of a sign-in, and the state of all
//	project.go                                    the manager of this process beside a running up
//
// Guarantees: no token is printed. A sign-in that was not completed changes nothing; one that is stored stays, even if the server
// does not connect afterwards, and the exit code says so. With a running up the server is not dialled a second time.
//
// Not promised: that a browser opens. Over SSH, without a display and with --no-browser the address is shown alone.
package signin

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// signInProject is a project for the commands about sign-ins. Their manager runs in this process also while an up runs, because
// the person is here; the two processes share the store of sign-ins.
type signInProject struct {
	// Project has both a client of the running up and a manager of its own, which no other command has.
	*project.Project
}

// Open opens the project and finds the server of a sign-in. The caller closes the result.
func Open(ctx context.Context, o *cli.Options, op, server string) (*signInProject, messages.Spec, error) {
	p, err := project.Open(ctx, o)
	if err != nil {
		return nil, messages.Spec{}, err
	}
	spec, err := specOf(ctx, p, op, server)
	if err != nil {
		p.Close()
		return nil, messages.Spec{}, err
	}
	return &signInProject{p}, spec, nil
}

// specOf returns the configuration of a server. A running up does not hand out the secrets of its specs, therefore the server
// must be configured for this command as well, and with the same URL.
func specOf(ctx context.Context, p *project.Project, op, server string) (messages.Spec, error) {
	if spec, ok := instanceSpec(p.Setup.Specs, server); ok {
		// A running up knows the instances that are used now. Of any other one nothing runs, and it finds the sign-in when it begins.
		if p.Up != nil {
			if all, err := p.Status(ctx, control.StatusQuery{Servers: []string{server}}); err != nil || len(all) == 0 {
				p.Up = nil
			}
		}
		return spec, nil
	}
	if !slices.Contains(p.Names, server) {
		return messages.Spec{}, project.UnknownServerError(op, server, p.Names, p.Setup)
	}
	spec, here := p.Setup.Specs[server]
	if p.Up == nil {
		return spec, nil
	}
	all, err := p.Status(ctx, control.StatusQuery{Servers: []string{server}})
	if err != nil {
		return messages.Spec{}, err
	}
	if c := all[0].Config; !here || c != nil && c.URL != spec.Redacted().URL {
		return messages.Spec{}, &messages.Error{Op: op, Class: messages.ClassInvalid, Server: server,
			Text: "the running mcpvisor up was started with another configuration than this command",
			Fix:  "repeat its --config or --mcp-server here"}
	}
	return spec, nil
}

// instanceSpec returns the configuration for the sign-in of a caller's instance, such as github@anna: that of its server, which must
// have share "principal". A server that is configured under the name itself comes first.
func instanceSpec(specs map[string]messages.Spec, name string) (messages.Spec, bool) {
	if _, own := specs[name]; own {
		return messages.Spec{}, false
	}
	for server, spec := range specs {
		principal, found := strings.CutPrefix(name, server+"@")
		if found && spec.Share == messages.SharePrincipal && isInstanceName(server, principal) {
			spec.Share = messages.ShareAll
			return spec, true
		}
	}
	return messages.Spec{}, false
}

// hashedInstance is what follows the @ in the name of an instance whose principal cannot stand there.
var hashedInstance = regexp.MustCompile(`^[A-Za-z0-9._+@-]{0,24}~[0-9a-f]{32}$`)

// isInstanceName reports whether a server can have an instance of the name server@rest.
func isInstanceName(server, rest string) bool {
	return messages.InstanceName(server, rest) == server+"@"+rest || hashedInstance.MatchString(rest)
}

// StartSignInManager starts a manager with this one server in this process. If an up runs, Backend stays the up's, so that its
// connection is the one that is reported.
func (s *signInProject) StartSignInManager(ctx context.Context, server string, spec messages.Spec) error {
	var err error
	s.OwnManager, err = project.StartManager(ctx, s.Options, s.configOf(map[string]messages.Spec{server: spec}))
	if err == nil && s.Up == nil {
		s.Backend = control.Local(s.OwnManager.Manager, control.LocalConfig{
			Project: s.Setup.ProjectDir, Origin: s.Setup.Origin, InheritEnv: s.Options.InheritEnv,
		})
	}
	return err
}

// configOf returns the configuration of a manager of these servers.
func (s *signInProject) configOf(specs map[string]messages.Spec) supervisor.Config {
	cfg := s.Setup.ManagerConfig(s.Options)
	cfg.Servers = specs
	project.TuneShortRun(&cfg, s.Options.WaitFlag)
	return cfg
}

// awaitOutcome waits until the server is connected or has failed, for 30 seconds if wait is 0.
func (s *signInProject) awaitOutcome(ctx context.Context, server string, wait time.Duration) (messages.Status, error) {
	if wait <= 0 {
		wait = 30 * time.Second
	}
	all, err := s.Status(ctx, control.StatusQuery{Servers: []string{server}, Wait: wait})
	if stop := exit.InterruptedError(ctx); stop != nil {
		return messages.Status{}, stop
	}
	if err != nil {
		return messages.Status{}, err
	}
	return all[0], nil
}

// AuthStatusOf returns what the manager of this process knows of the server's credentials. A server without any is AuthNotUsed.
func (s *signInProject) AuthStatusOf(ctx context.Context, server string) (supervisor.AuthStatus, error) {
	all, err := s.OwnManager.AuthStatus(ctx, server)
	if stop := exit.InterruptedError(ctx); stop != nil {
		return supervisor.AuthStatus{}, stop
	}
	if err != nil || len(all) == 0 {
		return supervisor.AuthStatus{Server: server, Kind: messages.AuthNone, State: supervisor.AuthNotUsed}, err
	}
	return all[0], nil
}

// completeSignIn offers the servers that sign in with OAuth.
func completeSignIn(o *cli.Options, _ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return project.CompleteFrom(o, func(_ context.Context, p *project.Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(p.Setup.Specs)) {
			if spec := p.Setup.Specs[name]; spec.AuthKind() == messages.AuthOAuth {
				names = append(names, name)
			}
		}
		return p.ServerCompletions(names), cobra.ShellCompDirectiveNoFileComp
	})
}
