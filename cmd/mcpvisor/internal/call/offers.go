package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// listFlags holds the flags of the commands that list what servers offer.
type listFlags struct {
	// templates lists the families of resources in place of single ones; only resources has the flag.
	json, templates bool
	// wait bounds how long servers may take to connect, and again how long they may take to list.
	wait time.Duration
}

// NewResources returns the command "resources", which runs listResources.
func NewResources(o *cli.Options) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "resources [SERVER…]",
		Short: "List what can be read of servers",
		Long: `Lists the resources that the named servers let be read, or those of all enabled servers. --templates lists
the families of resources whose URIs follow a pattern instead: put values in place of what stands in {}, and read
the URI that comes out.

What there is is printed, and what is missing is said on standard error. Exit code 1: a server that was named is not
connected, or cannot list them; if none was named, none can. 2: a configuration file cannot be read.`,
		Example: `  mcpvisor resources files
  mcpvisor resources --json | jq -r '.[].uri'
  mcpvisor read "$(mcpvisor resources files --json | jq -r '.[0].uri')"`,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServers),
		RunE:              func(cmd *cobra.Command, args []string) error { return listResources(o, cmd, args, f) },
	}
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON array")
	cmd.Flags().BoolVar(&f.templates, "templates", false, "list the families of resources, not single ones")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect, and after that to list")
	return cmd
}

// listResources lists resources, or with --templates their templates.
func listResources(o *cli.Options, cmd *cobra.Command, names []string, f listFlags) error {
	return listFromServers(o, cmd, names, f, func(ctx context.Context, p *project.Project, servers []string) error {
		if f.templates {
			all, err := p.Templates(ctx, servers...)
			return printListed(o, f.json, terminal.OrEmpty(all), err, func() { printTemplates(o, all) })
		}
		all, err := p.Resources(ctx, servers...)
		return printListed(o, f.json, terminal.OrEmpty(all), err, func() { printResources(o, all) })
	})
}

// NewPrompts returns the command "prompts". Like resources it goes through listFromServers, so that both report missing servers
// alike.
func NewPrompts(o *cli.Options) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "prompts [SERVER…]",
		Short: "List the prompts of servers",
		Long: `Lists the prompts of the named servers, or of all enabled ones, with their arguments; those in [] may be
left out. "mcpvisor prompt" fills one.

What there is is printed, and what is missing is said on standard error. Exit code 1: a server that was named is not
connected, or cannot list them; if none was named, none can. 2: a configuration file cannot be read.`,
		Example: `  mcpvisor prompts
  mcpvisor prompts git --json`,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServers),
		RunE: func(cmd *cobra.Command, args []string) error {
			return listFromServers(o, cmd, args, f, func(ctx context.Context, p *project.Project, servers []string) error {
				all, err := p.Prompts(ctx, servers...)
				return printListed(o, f.json, terminal.OrEmpty(all), err, func() { printPrompts(o, all) })
			})
		},
	}
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect, and after that to list")
	return cmd
}

// listFromServers connects the named servers, or all, and makes list print what the connected ones offer. It reports servers
// that are missing. Without names one server that answers is enough for exit code 0; a named server must answer.
func listFromServers(
	o *cli.Options, cmd *cobra.Command, names []string, f listFlags, list func(ctx context.Context, p *project.Project, servers []string) error,
) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.StartServers(ctx, names, nil); err != nil {
		return err
	}
	all, err := p.AwaitStatus(ctx, f.wait, names...)
	if err != nil {
		return err
	}
	if len(names) == 0 && len(all) == 0 {
		o.PrintRemark("%s", p.Setup.NoServersText())
	}
	var ready []string // about the others the status says more than a failing request
	for _, st := range all {
		// Without names lazy servers are not started: a list should not wake every server.
		if st.Status == messages.Connected || len(names) > 0 && status.IsCallable(st) {
			ready = append(ready, st.Name)
		}
	}
	switch {
	case len(ready) > 0:
		// --wait bounds listing anew, since connecting may have used it up.
		within, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		err = list(within, p, ready)
	case f.json:
		err = terminal.PrintJSON(o.Out, []string{})
	}
	missing := reportMissing(o, all, len(names) > 0, false)
	// A file that cannot be read may configure servers that are missing in this list.
	if len(names) == 0 {
		if broken := p.Setup.UnreadableError(); broken != nil {
			return broken
		}
	}
	var silent unlistedCount
	switch {
	case errors.As(err, &silent) && len(names) == 0 && int(silent) < len(ready): // some servers have answered
	case errors.As(err, &silent):
		return &exit.Error{Code: exit.Failed}
	case err != nil:
		return err
	}
	return missing
}

// unlistedCount is an error that counts the servers which could not list. printListed has reported each of them.
type unlistedCount int

// Error returns a text that is never printed, since the failures are reported one by one.
func (n unlistedCount) Error() string { return terminal.CountOf(int(n), "server") + " could not list" }

// printListed prints a list and reports the servers that could not list. It returns an unlistedCount for those.
func printListed(o *cli.Options, asJSON bool, all any, failed error, print func()) error {
	if asJSON {
		if err := terminal.PrintJSON(o.Out, all); err != nil {
			return err
		}
	} else {
		print()
	}
	if failed == nil {
		return nil
	}
	// Each server has an error of its own, which a person can act on; one sentence about all of them would hide the reasons.
	for _, err := range splitErrors(failed) {
		var e *messages.Error
		if errors.As(err, &e) {
			plain := *e
			plain.Outcome = "" // it was no call, and another try does no harm
			err = &plain
		}
		o.WarnFailure(err)
	}
	return unlistedCount(len(splitErrors(failed)))
}

// splitErrors returns the errors that were joined into one.
func splitErrors(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // the outermost one alone: errors.As would find a joined error deeper inside
		return several.Unwrap()
	}
	return []error{err}
}

// printResources prints resources as a table; no resources print nothing.
func printResources(o *cli.Options, all []messages.Resource) {
	if len(all) == 0 {
		return
	}
	t := terminal.NewTable(o.Out, "server", "uri", "type", "size", "name")
	fitColumns(o, t, 5, 2)
	for i := range all {
		r := &all[i]
		size := ""
		if r.Size != nil {
			size = terminal.SizeText(*r.Size)
		}
		t.AppendRow(table.Row{messages.Line(r.Server, 40), messages.Line(r.URI, 0), messages.Line(r.MIMEType, 40), size,
			nameText(r.Name, r.Title, r.Description)})
	}
	terminal.PrintTable(o.Out, t)
}

// printTemplates prints templates of resources as a table.
func printTemplates(o *cli.Options, all []messages.ResourceTemplate) {
	if len(all) == 0 {
		return
	}
	t := terminal.NewTable(o.Out, "server", "uri template", "type", "name")
	fitColumns(o, t, 4, 2)
	for i := range all {
		r := &all[i]
		t.AppendRow(table.Row{messages.Line(r.Server, 40), messages.Line(r.URITemplate, 0), messages.Line(r.MIMEType, 40),
			nameText(r.Name, r.Title, r.Description)})
	}
	terminal.PrintTable(o.Out, t)
}

// fitColumns wraps the last column to what the terminal leaves. URIs stay whole, because they are there to be copied.
func fitColumns(o *cli.Options, t table.Writer, last, uri int) {
	most := 0
	if columns := terminal.ColumnsOf(o.Out); columns > 0 {
		most = max(columns-80, 24)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: uri, WidthMax: 0}, {Number: last, WidthMax: most}})
}

// nameText returns how a server names and describes one of its items, in a bounded line. The title replaces the name.
func nameText(name, title, description string) string {
	words := messages.Line(name, 60)
	if title = messages.Line(title, 60); title != "" {
		words = title
	}
	if description = messages.Line(description, 120); description != "" && description != words {
		words = strings.TrimPrefix(words+": "+description, ": ")
	}
	return words
}

// printPrompts prints the prompts with their arguments, optional ones in brackets, and a blank line between servers.
func printPrompts(o *cli.Options, all []messages.Prompt) {
	server := ""
	for i := range all {
		p := &all[i]
		if p.Server != server {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			server = p.Server
		}
		line := messages.DisplayName(p.Server, p.Name)
		for _, a := range p.Arguments {
			word := messages.Line(a.Name, 60) + "=…"
			if !a.Required {
				word = "[" + word + "]"
			}
			line += "  " + word
		}
		fmt.Fprintln(o.Out, line)
		if d := nameText("", p.Title, p.Description); d != "" {
			fmt.Fprintln(o.Out, "    "+d)
		}
		for _, a := range p.Arguments {
			if d := nameText("", a.Title, a.Description); d != "" {
				fmt.Fprintf(o.Out, "      %s: %s\n", messages.Line(a.Name, 60), d)
			}
		}
	}
}
