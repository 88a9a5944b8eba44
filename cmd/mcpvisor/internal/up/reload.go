package up

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// NewReload returns the command "reload", which runs reloadFiles. Without a running up it is an error and starts nothing.
func NewReload(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the running mcpvisor up read its configuration files now",
		Long: `Asks the running "mcpvisor up" to read its configuration files at once and prints what changed, and what is wrong
with the files. A running mcpvisor up follows its files by itself; this is for scripts that want to know when it is done, and
what it came to. Exit code 1: a file or an entry cannot be used, and changed nothing. 2: no mcpvisor up runs, or it was
started with --no-watch.`,
		Example: `  mcpvisor reload
  mcpvisor reload --json | jq '.added, .replaced'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return reloadFiles(cmd.Context(), o, asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	return cmd
}

// reloadFiles asks the running up to read its files and prints what changed. It dials up directly and not with project.Open,
// because there is nothing to do if none runs. A file that cannot be used makes the exit code 1.
func reloadFiles(ctx context.Context, o *cli.Options, asJSON bool) error {
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	// The socket belongs to the project directory, and not to the working directory.
	location, err := control.LocationOf(s.ProjectDir)
	if err != nil {
		return err
	}
	client, err := control.Dial(ctx, location)
	if err != nil {
		return err
	}
	defer client.Close()
	// Reading the files may take long on a network disk.
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	res, err := client.Reload(within)
	if stop := exit.InterruptedError(ctx); stop != nil {
		return stop
	}
	var e *messages.Error
	// An up without a follower answers this request with ClassUnsupported.
	if errors.As(err, &e) && e.Class == messages.ClassUnsupported {
		return exit.With(exit.Usage, "the running mcpvisor up follows no files; it was started with --no-watch, --demo, or by "+
			"another version")
	}
	if err != nil {
		return err
	}
	faults := reloadProblems(res)
	if asJSON {
		if err := terminal.PrintJSON(o.Out, res); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(o.Out, reloadText(res))
		for _, text := range faults {
			fmt.Fprintln(o.Err, text)
		}
	}
	if len(faults) > 0 {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// reloadText describes in one line what a reload changed: "added a; replaced b, c; 3 servers as before".
func reloadText(res supervisor.ReloadResult) string {
	var parts []string
	for _, l := range []struct {
		word  string
		names []string
	}{
		{"added", res.Added}, {"removed", res.Removed}, {"replaced", res.Replaced}, {"adjusted", res.Adjusted},
		{"from another file now:", res.Moved},
	} {
		if len(l.names) > 0 {
			parts = append(parts, l.word+" "+terminal.JoinNames(l.names))
		}
	}
	if res.Rules {
		parts = append(parts, "other rules")
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing changed")
	} else {
		parts = append(parts, terminal.CountOf(len(res.Kept), "server")+" as before")
	}
	// A held server is new or changed, and does not run until the person approves it.
	if n := len(res.Held); n > 0 {
		parts = append(parts, terminal.JoinNames(res.Held)+" waiting for an approval (mcpvisor approve)")
	}
	if len(res.Restart) > 0 {
		parts = append(parts, restartText(res.Restart))
	}
	if n := len(reloadProblems(res)); n > 0 {
		parts = append(parts, terminal.CountOf(n, "fault"))
	}
	return strings.Join(parts, "; ")
}

// restartText says that keys have changed which a running up does not follow until it is started again.
func restartText(keys []string) string {
	return terminal.JoinNames(keys) + " changed: counts when mcpvisor up is started anew"
}

// reloadProblems returns what is wrong, one line each: the errors of the files, and remarks about servers that no error of the
// same server explains.
func reloadProblems(res supervisor.ReloadResult) []string {
	var out []string
	reported := map[string]bool{}
	for _, p := range res.Problems {
		if !p.Warning {
			out = append(out, messages.Line(p.Error(), 0))
			reported[p.Server] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(res.Remarks)) {
		if !reported[name] {
			out = append(out, serverPrefix(name)+messages.Line(res.Remarks[name], 0))
		}
	}
	return out
}
