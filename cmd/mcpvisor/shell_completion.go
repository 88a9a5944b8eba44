package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// completeTime bounds the time for which a shell waits after a press of the tab key.
const completeTime = time.Second

// withoutOutput returns a copy of the options for a completion: no output on standard error, which the shell would show in the
// middle of the line, no input, and a prompter that can ask nothing.
func withoutOutput(o *options) *options {
	q := *o
	q.err, q.in, q.prompter = io.Discard, strings.NewReader(""), &prompter{}
	return &q
}

// completeWith binds a function that offers words for a command line to the options of a run, in the form that cobra wants.
func completeWith(o *options, offer func(o *options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offer(o, cmd, args, word)
	}
}

// completeServer offers the names of the servers as the only argument.
func completeServer(o *options, _ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	p, ok := openForCompletion(ctx, o)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.close()
	return p.serverCompletions(p.names), cobra.ShellCompDirectiveNoFileComp
}

// completeCall offers servers, then the tools of the server, then the arguments of the tool. Tools are only known of a running
// mcpvisor up, because no server is started for a completion.
func completeCall(o *options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeServer(o, cmd, args, word)
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	p, ok := openForCompletion(ctx, o)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.close()
	t, rest, err := parseTarget(p, args, toolItem)
	if p.up == nil || err != nil && !slices.Contains(p.names, args[0]) {
		return nil, cobra.ShellCompDirectiveDefault // the value of an argument may be a file
	}
	only := []string{}
	if server := args[0]; slices.Contains(p.names, server) {
		only = append(only, server)
	}
	tools, err := p.Tools(ctx, only...)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 1 && len(only) == 1 {
		var out []cobra.Completion
		for i := range tools {
			out = append(out, cobra.CompletionWithDesc(messages.Line(tools[i].Name, 0),
				messages.Line(tools[i].Description, 60)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return argCompletions(tools, t, rest), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// argCompletions offers the arguments of a tool that are not given yet, as KEY=.
func argCompletions(tools []control.Tool, t target, given []string) []cobra.Completion {
	var out []cobra.Completion
	for i := range tools {
		if tools[i].Qualified != t.qualified && (tools[i].Server != t.server || tools[i].Name != t.tool) {
			continue
		}
		for _, name := range readInputSchema(tools[i].InputSchema).propertyNames() {
			if !slices.ContainsFunc(given, func(g string) bool {
				return strings.HasPrefix(g, name+"=") || strings.HasPrefix(g, name+":=")
			}) {
				out = append(out, messages.Line(name, 0)+"=")
			}
		}
	}
	return out
}

// completeWaiting offers the servers that wait for an approval, with what each would start.
func completeWaiting(o *options, _ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	q := withoutOutput(o)
	if q.applyFlags() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	s, err := loadSetup(q)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, name := range discover.AwaitingApproval(s.Set) {
		if !slices.Contains(args, name) {
			out = append(out, cobra.CompletionWithDesc(messages.Line(name, 0), startTextOf(s, name)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// openForCompletion opens the project without output. ok is false on any error, which a completion cannot show; otherwise the
// caller closes the project.
func openForCompletion(ctx context.Context, o *options) (*project, bool) {
	q := withoutOutput(o)
	if q.applyFlags() != nil {
		return nil, false
	}
	p, err := openProject(ctx, q)
	return p, err == nil
}

// serverCompletions describes the servers by what they start, as far as the files say.
func (p *project) serverCompletions(names []string) []cobra.Completion {
	out := make([]cobra.Completion, len(names))
	for i, name := range names {
		out[i] = messages.Line(name, 0)
		if _, ok := p.setup.Specs[name]; ok {
			out[i] = cobra.CompletionWithDesc(messages.Line(name, 0), startTextOf(p.setup, name))
		}
	}
	return out
}
