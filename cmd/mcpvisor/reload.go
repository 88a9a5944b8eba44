package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

func newReload(o *options) *cobra.Command {
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
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.reload(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	return cmd
}

func (o *options) reload(ctx context.Context, asJSON bool) error {
	s, err := load(o)
	if s == nil {
		return err
	}
	place, err := control.PlaceOf(s.ProjectDir)
	if err != nil {
		return err
	}
	client, err := control.Dial(ctx, place)
	if err != nil {
		return err
	}
	defer client.Close()
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	res, err := client.Reload(within)
	if stop := interrupted(ctx); stop != nil {
		return stop
	}
	var e *messages.Error
	if errors.As(err, &e) && e.Class == messages.ClassUnsupported {
		return &exitError{exitUsage, "the running mcpvisor up follows no files; it was started with --no-watch, --demo, or by " +
			"another version"}
	}
	if err != nil {
		return err
	}
	faults := reloadFaults(res)
	if asJSON {
		if err := printJSON(o.out, res); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(o.out, reloadWords(res))
		for _, text := range faults {
			fmt.Fprintln(o.err, text)
		}
	}
	if len(faults) > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

// reloadWords says in a line what a reload changed: "added a; replaced b, c; 3 servers as before".
func reloadWords(res supervisor.ReloadResult) string {
	var parts []string
	for _, l := range []struct {
		word  string
		names []string
	}{
		{"added", res.Added}, {"removed", res.Removed}, {"replaced", res.Replaced}, {"adjusted", res.Adjusted},
		{"from another file now:", res.Moved},
	} {
		if len(l.names) > 0 {
			parts = append(parts, l.word+" "+enumeration(l.names))
		}
	}
	if res.Rules {
		parts = append(parts, "other rules")
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing changed")
	} else {
		parts = append(parts, count(len(res.Kept), "server")+" as before")
	}
	if n := len(res.Held); n > 0 {
		parts = append(parts, enumeration(res.Held)+" waiting for an approval (mcpvisor approve)")
	}
	if len(res.Restart) > 0 {
		parts = append(parts, restartWords(res.Restart))
	}
	if n := len(reloadFaults(res)); n > 0 {
		parts = append(parts, count(n, "fault"))
	}
	return strings.Join(parts, "; ")
}

// restartWords says of keys that changed that what runs does not follow them.
func restartWords(keys []string) string {
	return enumeration(keys) + " changed: counts when mcpvisor up is started anew"
}

// reloadFaults are what is wrong, a line each: the problems of the files, and the remarks about servers that no problem of theirs
// explains.
func reloadFaults(res supervisor.ReloadResult) []string {
	var out []string
	told := map[string]bool{}
	for _, p := range res.Problems {
		if !p.Warning {
			out = append(out, messages.Line(p.Error(), 0))
			told[p.Server] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(res.Remarks)) {
		if !told[name] {
			out = append(out, label(name)+messages.Line(res.Remarks[name], 0))
		}
	}
	return out
}
