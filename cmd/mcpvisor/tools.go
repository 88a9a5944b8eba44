package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// newTools returns the command "tools", which runs listTools.
func newTools(o *options) *cobra.Command {
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
				return oneServer(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: completeWith(o, completeServer),
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
func listTools(o *options, cmd *cobra.Command, args []string, asJSON, withheld bool, wait time.Duration) error {
	ctx := cmd.Context()
	p, err := openProject(ctx, o)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.startServers(ctx, args, nil); err != nil {
		return err
	}
	// A server that fails is no error here: the others are listed, and reportMissing says why it is not.
	all, err := p.awaitStatus(ctx, wait, args...)
	if err != nil {
		return err
	}
	tools := []control.Tool{}
	// Without an argument the connected servers are listed, and lazy ones with the tools of their last connection.
	if len(args) == 0 || isCallable(all[0]) {
		within, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if tools, err = p.Tools(within, args...); err != nil { // it connects a lazy server of a running up
			return err
		}
	}
	if len(args) == 0 && len(all) == 0 {
		o.printRemark("%s", p.setup.noServersText()+addServerHint)
	}
	if asJSON {
		err = printJSON(o.out, tools)
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
	if broken := p.setup.unreadableError(); len(args) == 0 && broken != nil {
		return broken
	}
	return err
}

// reportMissing reports which servers have nothing to list, and why. That is a failure if the person named them; of all servers
// it is one only if none has anything. tools says that tools are listed, whose failure stands in the status.
func reportMissing(o *options, all []messages.Status, named, tools bool) error {
	failed, there := false, false
	for _, st := range all {
		switch {
		case tools && st.ToolsError != "":
			failed = true
			o.warnFailure(&messages.Error{Op: "list", Class: messages.ClassProtocol, Server: st.Name,
				Text: "its tools cannot be listed: " + messages.Line(st.ToolsError, 400)})
		case isCallable(st):
			there = true
		case named || !isAsWanted(st):
			failed = true
			e := notConnectedError(st)
			e.Outcome = "" // no call was made
			o.warnFailure(e)
		}
	}
	if failed && (named || !there) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// printWithheld prints the tools that servers have and that are not offered to callers, with the reason.
func printWithheld(o *options, all []messages.Status) {
	for _, st := range all {
		for _, q := range st.Quarantined {
			fmt.Fprintf(o.out, "%s  (not offered: %s)\n", messages.DisplayName(st.Name, q.Name), messages.Line(q.Reason, 400))
		}
	}
}

// printTools prints the tools with a blank line between servers.
func printTools(o *options, tools []control.Tool) {
	server := ""
	for i, t := range tools {
		if t.Server != server {
			if i > 0 {
				fmt.Fprintln(o.out)
			}
			server = t.Server
		}
		printTool(o, t)
	}
}

// printTool prints a tool with its arguments, its state if it cannot be called now, the server's claims about it, and the
// beginning of its description.
func printTool(o *options, t control.Tool) {
	name := messages.DisplayName(t.Server, t.Name)
	if usage := argumentsOf(t); usage != "" {
		name += "  " + usage
	}
	// Only live tools can be called now; the state of others is part of the line.
	if t.State != "" && t.State != "live" {
		name += "  (" + t.State + ")"
	}
	if marks := marksOf(t.Annotations); marks != "" {
		name += "  [" + marks + "]"
	}
	fmt.Fprintln(o.out, name)
	if d := messages.Line(t.Description, 160); d != "" {
		fmt.Fprintln(o.out, "    "+d)
	}
}

// argumentsOf shows the arguments of a tool as they are typed, required ones first: path=string [limit=integer].
func argumentsOf(t control.Tool) string {
	s := readInputSchema(t.InputSchema)
	required := map[string]bool{}
	if list, ok := s.root["required"].([]any); ok {
		for _, v := range list {
			if name, ok := v.(string); ok {
				required[name] = true
			}
		}
	}
	names := s.propertyNames()
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
		kind := "…"
		if p, ok := s.propertySchema(name); ok {
			if types := s.allowedTypes(p); len(types) > 0 {
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
