package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// forNowHelp is the help of the flag that enable and disable share.
const forNowHelp = "write nothing: only until the daemon or the mcpvisor up that keeps it ends"

// NewEnable returns the command "enable": it writes the file first, so that the state holds even if the server does not
// connect, and connects it then.
func NewEnable(o *cli.Options) *cobra.Command {
	var wait time.Duration
	var now bool
	cmd := &cobra.Command{
		Use:   "enable SERVER",
		Short: "Enable a server, for good",
		Long: `Takes "disabled" out of the entry of a server, in the file that has it, and has the running "mcpvisor up" connect it.
Without one the server is connected for a moment, to see whether that works. A server that no file of yours has (it was
named on the command line, or is another program's) is enabled until that mcpvisor up ends.

Exit codes: 0 enabled, and it connects · 1 enabled, but it does not connect · 2 nothing was changed.`,
		Example:           `  mcpvisor enable files`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			server := args[0]
			if err := writeEnabled(cmd.Context(), o, server, true, now, ""); err != nil {
				return err
			}
			// If no up runs, the server of this process must be enabled although its entry may be read as disabled, so that the
			// command can try whether it connects.
			enabled := func(cfg *supervisor.Config) {
				spec := cfg.Servers[server]
				spec.Disabled = false
				cfg.Servers[server] = spec
			}
			return requestConnect(o, cmd, server, wait, enabled, func(ctx context.Context, p *project.Project) error {
				return p.Enable(ctx, server)
			})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long the server may take to connect")
	cmd.Flags().BoolVar(&now, "for-now", false, forNowHelp)
	o.AddJSONFlag(cmd, "print a JSON object: what the server is now, as in list --json")
	return cmd
}

// NewDisable returns the command "disable": it writes the file first, and then takes the tools away in a running up.
func NewDisable(o *cli.Options) *cobra.Command {
	var disconnect, now bool
	var scope string
	cmd := &cobra.Command{
		Use:   "disable SERVER",
		Short: "Disable a server, for good",
		Long: `Writes "disabled": true into the entry of a server, in the file that has it, and has the running "mcpvisor up" take its
tools away. Its connection is kept warm there unless --disconnect is given. A server of the project's file, which others share,
is disabled for you alone, by "disabledServers" in .mcpvisor/mcp.local.json; --scope project disables it for all. A server that
no file of yours has (it was named on the command line, or is another program's) is disabled until that mcpvisor up ends.

Exit codes: 0 disabled · 2 nothing was changed.`,
		Example: `  mcpvisor disable files
  mcpvisor disable files --for-now`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			only, err := readScope(cmd, scope)
			if err != nil {
				return err
			}
			if err := writeEnabled(cmd.Context(), o, args[0], false, now, only); err != nil {
				return err
			}
			return disableServer(o, cmd, args[0], disconnect)
		},
	}
	cmd.Flags().BoolVar(&disconnect, "disconnect", false, "end its connection, too")
	cmd.Flags().BoolVar(&now, "for-now", false, forNowHelp)
	cmd.Flags().StringVarP(&scope, "scope", "s", "", "whose entry: local, project or user (default: the one that counts, and of the "+
		"project's none but for you)")
	completeScope(cmd)
	o.AddJSONFlag(cmd, "print a JSON object: what the server is now, as in list --json")
	return cmd
}

// writeEnabled writes whether a server is enabled into the file of the entry that counts, or of the given scope. A server of
// the project's file is disabled in the person's local file, since others share the project's. now (--for-now) writes nothing.
// For a server that stands in no file of mcpvisor only a running up can be changed, and without one that is an error.
func writeEnabled(ctx context.Context, o *cli.Options, server string, enabled, now bool, scope messages.Scope) error {
	quiet := *o
	quiet.Err = io.Discard
	quiet.ReportAtOnce() // the command reports by itself
	p, err := project.Open(ctx, &quiet)
	if err != nil {
		return err
	}
	up := p.Up != nil
	verb := map[bool]string{true: "enabled", false: "disabled"}[enabled]
	exists := slices.Contains(p.Names, server)
	defer p.Close()
	all := entriesOf(p.Setup, server)
	switch {
	case len(all) == 0 && !exists:
		return project.UnknownServerError(verb[:len(verb)-1], server, p.Names, p.Setup)
	case now && !up:
		return exit.With(exit.Usage, "neither the daemon nor a mcpvisor up keeps the servers of this project, so that --for-now changes nothing; leave it out")
	// --for-now leaves the file alone; the caller changes the running up.
	case now:
		return nil
	case len(all) == 0: // the running up has it from its own command line
		o.PrintRemark("it is %s until %s ends: no file that counts here has it", verb, p.KeeperName())
		return nil
	}
	e := all[0]
	if scope != "" {
		i := slices.IndexFunc(all, func(e fileEntry) bool { return e.scope == scope })
		if i < 0 {
			return exit.With(exit.Usage, fmt.Sprintf("--scope: no file of the %s scope has a server %q; it stands in %s", scope,
				messages.Line(server, 60), e.toLocation()))
		}
		e = all[i]
	}
	// Enabling also removes what switchLocally has written earlier, whichever file has the entry.
	if scope == "" && (enabled || e.scope == messages.ScopeProject && e.checkEditable(verb) == nil) {
		changed, err := switchLocally(o, p.Setup, server, enabled)
		if err != nil {
			return err
		}
		if changed && up {
			p.ReloadUp(ctx)
		}
		if !enabled {
			return nil
		}
	}
	if err := e.checkEditable(verb); err != nil {
		if up && e.scope != messages.ScopeManaged {
			o.PrintRemark("it is %s until %s ends: %v", verb, p.KeeperName(), err)
			return nil
		}
		return err
	}
	// An entry that was approved should stay approved, since the command changes only whether it is enabled.
	changed, known := false, approvedCandidate(p.Setup, server)
	var after config.Entry
	err = editFile(e.file, e.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		entry, ok := ours.Servers[server]
		if !ok || entry.Path == nil {
			return nil, notInFileError(server, e)
		}
		now, err := switchEntry(text, entry, enabled)
		changed = string(now) != string(text)
		if known != nil && !bytes.Equal(known.Binding.Entry, entry.Canonical()) {
			known = nil // another process has changed the entry
		}
		after = config.Parse(config.File{Path: e.file, Scope: e.scope, Data: now}).Servers[server]
		return now, err
	})
	if err != nil || !changed {
		return err
	}
	if err := keepApproval(o, known, server, after); err != nil {
		return err
	}
	project.RecordChanges(o, e.file, audit.Record{Change: verb[:len(verb)-1], Server: server})
	o.PrintRemark("%s in %s", verb, e.toLocation())
	if up { // the caller changes an up that does not follow its files
		p.ReloadUp(ctx)
	}
	return nil
}

// approvedCandidate returns the approved entry of a server; nil if it waits for an approval or needs none.
func approvedCandidate(s *project.Setup, server string) *config.Candidate {
	if _, waits := s.Waiting[server]; waits {
		return nil
	}
	c, ok := discover.ApprovalCandidate(s.Set, server)
	if !ok {
		return nil
	}
	c.Own = s.Approvals.Owns(s.Set, server)
	return &c
}

// keepApproval approves an entry that this command has changed, if it was approved before, and only if it is now exactly what
// this command has made of it.
func keepApproval(o *cli.Options, before *config.Candidate, server string, after config.Entry) error {
	if before == nil {
		return nil
	}
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	c, ok := discover.ApprovalCandidate(s.Set, server)
	if !ok || c.Binding.Path != before.Binding.Path || !bytes.Equal(c.Binding.Entry, after.Canonical()) {
		return nil
	}
	approve := s.Approvals.Approve
	if before.Own {
		approve = s.Approvals.ApproveOwn
	}
	if err := approve(s.Set, server); err != nil {
		return waitsError(after.Spec.Source, server, err)
	}
	return nil
}

// switchEntry returns the text of a file with a server enabled or disabled. It uses the key that the entry uses already,
// "enabled" or a synonym of "disabled", and returns the text unchanged if the entry is as it should be.
func switchEntry(text []byte, e config.Entry, enabled bool) ([]byte, error) {
	key := e.Written("disabled")
	if key == "" {
		key = "disabled"
	}
	path := append(slices.Clone(e.Path), key)
	switch {
	case e.Spec.Disabled != enabled: // it is as it should be
		return text, nil
	case key == "enabled":
		return edit.Put(text, path, json.RawMessage(fmt.Sprint(enabled)))
	case enabled:
		return edit.Remove(text, path)
	}
	return edit.Put(text, path, json.RawMessage("true"))
}

// disableServer makes a running up take the server's tools away, and with disconnect end its connection. Without an up the file
// was all there was to change.
func disableServer(o *cli.Options, cmd *cobra.Command, server string, disconnect bool) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	// No process has the server, so that there is no tool to take away.
	if p.Up == nil || !slices.Contains(p.Names, server) {
		return inspect.PrintServer(o, messages.Status{Name: server, Status: messages.Disabled})
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.Disable(within, server, disconnect); err != nil {
		return attemptError(ctx, err)
	}
	all, err := p.AwaitStatus(ctx, 0, server)
	if err != nil {
		return err
	}
	return inspect.PrintServer(o, all[0])
}

// switchLocally adds a server to "disabledServers" in the person's own file of this project, or removes it from there,
// whichever file has its entry. It reports whether the file changed. A new file is kept out of git.
func switchLocally(o *cli.Options, s *project.Setup, server string, enabled bool) (changed bool, err error) {
	file := discover.FileOf(messages.ScopeLocal, discover.DefaultPaths(), s.ProjectDir)
	if _, err := os.Lstat(file); enabled && errors.Is(err, os.ErrNotExist) { // no server is disabled there
		return false, nil // nothing is switched off there
	}
	fresh := false
	err = editFile(file, messages.ScopeLocal, func(text []byte, ours config.Parsed) ([]byte, error) {
		fresh = len(text) == 0
		names := slices.DeleteFunc(slices.Clone(ours.DisabledServers), func(name string) bool { return name == server })
		if changed = enabled == (len(names) < len(ours.DisabledServers)); !changed {
			return text, nil
		}
		if !enabled {
			names = append(names, server)
		}
		// A new file gets the usual form around the list.
		if fresh {
			text = []byte(emptyFile)
		}
		if len(names) == 0 {
			return edit.Remove(text, []string{config.DisabledKey})
		}
		return edit.Put(text, []string{config.DisabledKey}, schema.EncodeJSON(names))
	})
	if err != nil || !changed {
		return false, err
	}
	verb := "disable"
	if enabled {
		verb = "enable"
	}
	project.RecordChanges(o, file, audit.Record{Change: verb, Server: server})
	o.PrintRemark("%sd for you alone, in %s%s", verb, messages.Line(file, 0), map[bool]string{true: "",
		false: "; for all who work on this project: mcpvisor disable " + terminal.ShellWord(server) + " --scope project"}[enabled])
	if fresh && keepOutOfGit(file) {
		o.PrintRemark("it is kept out of git by a .gitignore beside it")
	}
	return true, nil
}
