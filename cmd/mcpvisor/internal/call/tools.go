package call

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// NewTools returns the command "tools", which runs listTools.
func NewTools(o *cli.Options) *cobra.Command {
	var asJSON, withheld bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "tools [SERVER]",
		Short: "List the tools of a server, or of all",
		Long: `Lists the tools that a server offers, with their arguments; of all enabled servers if none is named.
Without a running "mcpvisor up" the servers are started for that, and ended.

What there is is printed, and what is missing is said on standard error. Exit code 1: the server that was named is not
connected or cannot list its tools; if none was named, none has any for us. 2: a configuration file cannot be read.`,
		Example: `  mcpvisor tools files
  mcpvisor tools --json | jq -r '.[].qualifiedName'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.OneServer(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return listTools(o, cmd, args, asJSON, withheld, wait) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array, with the servers' own schemas")
	cmd.Flags().BoolVar(&withheld, "all", false, "name the tools too that are not offered, with the reason (not with --json: "+
		"see mcpvisor list --json)")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long servers may take to connect")
	return cmd
}

// listTools prints the tools of a server or of all, and reports servers without a list. A named server must have one; of all
// servers one that has tools is enough for exit code 0.
func listTools(o *cli.Options, cmd *cobra.Command, args []string, asJSON, withheld bool, wait time.Duration) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.StartServers(ctx, args, nil); err != nil {
		return err
	}
	// A server that fails is no error here: the others are listed, and reportMissing says why it is not.
	all, err := p.AwaitStatus(ctx, wait, args...)
	if err != nil {
		return err
	}
	tools := []control.Tool{}
	// Without an argument the connected servers are listed, and lazy ones with the tools of their last connection.
	if len(args) == 0 || status.IsCallable(all[0]) {
		// Connecting may have used up --wait, so that listing gets the same time again.
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if tools, err = p.Tools(within, args...); err != nil { // it connects a lazy server of a running up
			return err
		}
	}
	if len(args) == 0 && len(all) == 0 {
		o.PrintRemark("%s", p.Setup.NoServersText()+project.AddServerHint)
	}
	if asJSON {
		err = terminal.PrintJSON(o.Out, tools)
	} else {
		printTools(o, tools)
		if withheld {
			printWithheld(o, all)
		}
	}
	if err != nil {
		return err
	}
	err = reportMissing(o, all, len(args) > 0, true)
	// A file that cannot be read may hold servers whose tools are missing here.
	if broken := p.Setup.UnreadableError(); len(args) == 0 && broken != nil {
		return broken
	}
	return err
}

// reportMissing reports which servers have nothing to list, and why. That is a failure if the person named them; of all servers
// it is one only if none has anything. tools says that tools are listed, whose failure stands in the status.
func reportMissing(o *cli.Options, all []messages.Status, named, tools bool) error {
	// failed: a server that should have a list has none; there: at least one server has one.
	failed, there := false, false
	for _, st := range all {
		switch {
		case tools && st.ToolsError != "":
			failed = true
			o.WarnFailure(&messages.Error{Op: "list", Class: messages.ClassProtocol, Server: st.Name,
				Text: "its tools cannot be listed: " + messages.Line(st.ToolsError, 400)})
		case status.IsCallable(st):
			there = true
		case named || !status.IsAsWanted(st):
			failed = true
			e := status.NotConnectedError(st)
			e.Outcome = "" // no call was made
			o.WarnFailure(e)
		}
	}
	if failed && (named || !there) {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// printWithheld prints the tools that servers have and that are not offered to callers, with the reason.
func printWithheld(o *cli.Options, all []messages.Status) {
	for _, st := range all {
		for _, q := range st.Quarantined {
			fmt.Fprintf(o.Out, "%s  (not offered: %s)\n", messages.DisplayName(st.Name, q.Name), messages.Line(q.Reason, 400))
		}
	}
}

// printTools prints the tools with a blank line between servers.
func printTools(o *cli.Options, tools []control.Tool) {
	server := ""
	for i, t := range tools {
		if t.Server != server {
			if i > 0 {
				fmt.Fprintln(o.Out)
			}
			server = t.Server
		}
		printTool(o, t)
	}
}

// printTool prints a tool with its arguments, its state if it cannot be called now, the server's claims about it, and the
// beginning of its description.
func printTool(o *cli.Options, t control.Tool) {
	name := messages.DisplayName(t.Server, t.Name)
	if usage := argumentsOf(t); usage != "" {
		name += "  " + usage
	}
	// Only live tools can be called now; the state of others is part of the line.
	if t.State != "" && t.State != "live" {
		name += "  (" + t.State + ")"
	}
	if marks := ask.MarksOf(t.Annotations); marks != "" {
		name += "  [" + marks + "]"
	}
	fmt.Fprintln(o.Out, name)
	if d := messages.Line(t.Description, 160); d != "" {
		fmt.Fprintln(o.Out, "    "+d)
	}
}

// argumentsOf shows the arguments of a tool as they are typed, required ones first: path=string [limit=integer].
func argumentsOf(t control.Tool) string {
	s := schema.ReadInput(t.InputSchema)
	required := map[string]bool{}
	if list, ok := s.Root["required"].([]any); ok {
		for _, v := range list {
			if name, ok := v.(string); ok {
				required[name] = true
			}
		}
	}
	// The person must give the required ones, so that these stand where a long line is not cut.
	names := s.PropertyNames()
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case required[a] == required[b]:
			return strings.Compare(a, b)
		case required[a]:
			return -1
		}
		return 1
	})
	words := make([]string, 0, len(names))
	for _, name := range names {
		// A schema may leave the type open, or say it in a way that ReadInput does not follow.
		kind := "…"
		if p, ok := s.PropertySchema(name); ok {
			if types := s.AllowedTypes(p); len(types) > 0 {
				kind = strings.Join(types, "|")
			}
		}
		word := messages.Line(name, 60) + "=" + messages.Line(kind, 40)
		if !required[name] {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
