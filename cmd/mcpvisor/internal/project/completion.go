package project

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/messages"
)

// completeTime bounds the time for which a shell waits after a press of the tab key.
const completeTime = time.Second

// CompleteWith binds a function that offers words for a command line to the options of a run, in the form that cobra wants.
func CompleteWith(o *cli.Options, offer func(o *cli.Options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offer(o, cmd, args, word)
	}
}

// CompleteServer offers the names of the servers as the only argument.
func CompleteServer(o *cli.Options, _ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompleteFrom(o, func(_ context.Context, p *Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		return p.ServerCompletions(p.Names), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteFrom offers what a function finds in the project, which is opened without output and closed afterwards. If the project
// cannot be opened nothing is offered, because a completion has no place to show an error.
func CompleteFrom(o *cli.Options, offer func(context.Context, *Project) ([]cobra.Completion, cobra.ShellCompDirective)) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	q := o.WithoutOutput()
	if q.ApplyFlags() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := Open(ctx, q)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer p.Close()
	return offer(ctx, p)
}

// ServerCompletions describes the servers by what they start, as far as the files say.
func (p *Project) ServerCompletions(names []string) []cobra.Completion {
	out := make([]cobra.Completion, len(names))
	for i, name := range names {
		out[i] = messages.Line(name, 0)
		if _, ok := p.Setup.Specs[name]; ok {
			out[i] = cobra.CompletionWithDesc(messages.Line(name, 0), status.StartText(p.Setup.Specs[name]))
		}
	}
	return out
}

// CompleteServers offers the shell the names of the servers that are not given yet.
func CompleteServers(o *cli.Options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	all, directive := CompleteServer(o, cmd, nil, word)
	var out []cobra.Completion
	for _, c := range all {
		name, _, _ := strings.Cut(c, "\t")
		if !slices.Contains(args, name) {
			out = append(out, c)
		}
	}
	return out, directive
}
