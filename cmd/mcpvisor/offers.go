package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// listFlags are those of the commands that list what servers offer.
type listFlags struct {
	json, templates bool
	wait            time.Duration
}

func newResources(o *options) *cobra.Command {
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
		ValidArgsFunction: o.completeServers,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.listResources(cmd, args, f) },
	}
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON array")
	cmd.Flags().BoolVar(&f.templates, "templates", false, "list the families of resources, not single ones")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect")
	return cmd
}

func (o *options) listResources(cmd *cobra.Command, names []string, f listFlags) error {
	return o.listFromServers(cmd, names, f, func(ctx context.Context, p *project, servers []string) error {
		if f.templates {
			all, err := p.Templates(ctx, servers...)
			return o.printListed(f.json, orEmpty(all), err, func() { o.printTemplates(all) })
		}
		all, err := p.Resources(ctx, servers...)
		return o.printListed(f.json, orEmpty(all), err, func() { o.printResources(all) })
	})
}

func newPrompts(o *options) *cobra.Command {
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
		ValidArgsFunction: o.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.listFromServers(cmd, args, f, func(ctx context.Context, p *project, servers []string) error {
				all, err := p.Prompts(ctx, servers...)
				return o.printListed(f.json, orEmpty(all), err, func() { o.printPrompts(all) })
			})
		},
	}
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print a JSON array")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long servers may take to connect")
	return cmd
}

// listFromServers connects what is needed and has list print what the servers offer that are connected.
func (o *options) listFromServers(
	cmd *cobra.Command, names []string, f listFlags, list func(ctx context.Context, p *project, servers []string) error,
) error {
	ctx := cmd.Context()
	p, err := o.openProject(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.startServers(ctx, names, nil); err != nil {
		return err
	}
	all, err := p.awaitStatus(ctx, f.wait, names...)
	if err != nil {
		return err
	}
	if len(names) == 0 && len(all) == 0 {
		o.printRemark("%s", p.setup.noServersText())
	}
	var ready []string // of the others the status says more than a question that fails
	for _, st := range all {
		if st.Status == messages.Connected || len(names) > 0 && isCallable(st) {
			ready = append(ready, st.Name)
		}
	}
	switch {
	case len(ready) > 0:
		within, cancel := context.WithTimeout(ctx, f.wait)
		defer cancel()
		err = list(within, p, ready)
	case f.json:
		err = printJSON(o.out, []string{})
	}
	missing := o.reportMissing(all, len(names) > 0, false)
	if len(names) == 0 {
		if broken := p.setup.unreadableError(); broken != nil {
			return broken
		}
	}
	var silent unlistedCount
	switch {
	case errors.As(err, &silent) && len(names) == 0 && int(silent) < len(ready): // some have told
	case errors.As(err, &silent):
		return &exitError{code: exitFailed}
	case err != nil:
		return err
	}
	return missing
}

// unlistedCount is how many servers could not list what they were asked for. They have been said.
type unlistedCount int

func (n unlistedCount) Error() string { return countOf(int(n), "server") + " could not list" }

// printListed prints a list, and then of which servers it has nothing.
func (o *options) printListed(asJSON bool, all any, failed error, print func()) error {
	if asJSON {
		if err := printJSON(o.out, all); err != nil {
			return err
		}
	} else {
		print()
	}
	if failed == nil {
		return nil
	}
	for _, err := range splitErrors(failed) {
		var e *messages.Error
		if errors.As(err, &e) {
			plain := *e
			plain.Outcome = "" // it is no call, and asking again harms nothing
			err = &plain
		}
		o.warnFailure(err)
	}
	return unlistedCount(len(splitErrors(failed)))
}

// splitErrors are the errors that one is made of.
func splitErrors(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok { // the outermost one alone
		return several.Unwrap()
	}
	return []error{err}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (o *options) printResources(all []messages.Resource) {
	if len(all) == 0 {
		return
	}
	t := newTable(o.out, "server", "uri", "type", "size", "name")
	o.fitColumns(t, 5, 2)
	for i := range all {
		r := &all[i]
		size := ""
		if r.Size != nil {
			size = sizeText(*r.Size)
		}
		t.AppendRow(table.Row{messages.Line(r.Server, 40), messages.Line(r.URI, 0), messages.Line(r.MIMEType, 40), size,
			nameText(r.Name, r.Title, r.Description)})
	}
	printTable(o.out, t)
}

func (o *options) printTemplates(all []messages.ResourceTemplate) {
	if len(all) == 0 {
		return
	}
	t := newTable(o.out, "server", "uri template", "type", "name")
	o.fitColumns(t, 4, 2)
	for i := range all {
		r := &all[i]
		t.AppendRow(table.Row{messages.Line(r.Server, 40), messages.Line(r.URITemplate, 0), messages.Line(r.MIMEType, 40),
			nameText(r.Name, r.Title, r.Description)})
	}
	printTable(o.out, t)
}

// fitColumns keeps the last column within the terminal; the URIs, which are there to be copied, stay whole.
func (o *options) fitColumns(t table.Writer, last, uri int) {
	most := 0
	if columns := columnsOf(o.out); columns > 0 {
		most = max(columns-80, 24)
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: uri, WidthMax: 0}, {Number: last, WidthMax: most}})
}

// nameText is what a server calls one of its things, and says of it.
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

// sizeText is a size for people.
func sizeText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

func (o *options) printPrompts(all []messages.Prompt) {
	server := ""
	for i := range all {
		p := &all[i]
		if p.Server != server {
			if i > 0 {
				fmt.Fprintln(o.out)
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
		fmt.Fprintln(o.out, line)
		if d := nameText("", p.Title, p.Description); d != "" {
			fmt.Fprintln(o.out, "    "+d)
		}
		for _, a := range p.Arguments {
			if d := nameText("", a.Title, a.Description); d != "" {
				fmt.Fprintf(o.out, "      %s: %s\n", messages.Line(a.Name, 60), d)
			}
		}
	}
}

// completeServers offers the names of the servers that are not given yet.
func (o *options) completeServers(cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	all, directive := o.completeServer(cmd, nil, word)
	var out []cobra.Completion
	for _, c := range all {
		name, _, _ := strings.Cut(c, "\t")
		if !containsWord(args, name) {
			out = append(out, c)
		}
	}
	return out, directive
}

func containsWord(list []string, word string) bool {
	for _, w := range list {
		if w == word {
			return true
		}
	}
	return false
}
