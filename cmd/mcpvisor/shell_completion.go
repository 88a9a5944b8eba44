package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// completeTime bounds the time for which a shell waits after a press of the tab key.
const completeTime = time.Second

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

// openForCompletion opens the project without output. ok is false on any error, which a completion cannot show; otherwise the
// caller closes the project.
func openForCompletion(ctx context.Context, o *options) (*project, bool) {
	q := o.withoutOutput()
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
			out[i] = cobra.CompletionWithDesc(messages.Line(name, 0), startText(p.setup.Specs[name]))
		}
	}
	return out
}

// completeServers offers the shell the names of the servers that are not given yet.
func completeServers(o *options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	all, directive := completeServer(o, cmd, nil, word)
	var out []cobra.Completion
	for _, c := range all {
		name, _, _ := strings.Cut(c, "\t")
		if !slices.Contains(args, name) {
			out = append(out, c)
		}
	}
	return out, directive
}
