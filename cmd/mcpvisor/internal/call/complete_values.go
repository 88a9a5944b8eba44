package call

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// completeFlags holds the flags of complete. Exactly one of prompt and template is given; Args checks it.
type completeFlags struct {
	prompt, template string
	// with has the values of other arguments, as KEY=VALUE: the server may propose by them.
	with []string
	json bool
	// wait bounds how long the server may take to connect.
	wait time.Duration
}

// NewComplete returns the command "complete", which asks a server for proposals (completion/complete). The completion of the
// shell is in shell_completion.go.
func NewComplete(o *cli.Options) *cobra.Command {
	var f completeFlags
	cmd := &cobra.Command{
		Use:   "complete SERVER (--prompt NAME | --template URI) ARGUMENT [VALUE]",
		Short: "Ask a server to complete the value of an argument",
		Long: `Asks a server which values it proposes for an argument of one of its prompts or resource templates, given what
was typed of the value so far. Values that other arguments have already are given with --with. Each proposal is a line.
(The completion of your shell is another matter: see mcpvisor completion.)

Exit codes: 0 answered, also with no proposal · 2 usage · 3 not sent · 4 the answer was lost · 5 rejected by the server.`,
		Example: `  mcpvisor complete everything --prompt completable-prompt department Eng
  mcpvisor complete files --template 'file:///{path}' path src/`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2 || len(args) > 3:
				return exit.UsageError(cmd, "write mcpvisor complete SERVER --prompt NAME ARGUMENT [VALUE]")
			case (f.prompt == "") == (f.template == ""):
				return exit.UsageError(cmd, "of what is it an argument? Give --prompt NAME or --template URI, one of the two")
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 && f.prompt != "" {
				return completeArguments(o, args[0], f.prompt)
			}
			return project.CompleteServer(o, cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return proposeValues(o, cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.prompt, "prompt", "", "the argument is one of this prompt (its `name` at the server)")
	fl.StringVar(&f.template, "template", "", "the argument is one of this resource template (its `URI`)")
	fl.StringArrayVar(&f.with, "with", nil, "another argument has this value already: `KEY=VALUE` (repeatable)")
	fl.BoolVarP(&f.json, "json", "j", false, "print a JSON object")
	fl.DurationVar(&f.wait, "wait", 30*time.Second, "how long the server may take to connect")
	_ = cmd.RegisterFlagCompletionFunc("prompt", func(_ *cobra.Command, args []string, _ string) ( // this flag exists
		[]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeArguments(o, args[0], "")
	})
	return cmd
}

// completeArguments offers the shell the arguments of a prompt, or the prompts of the server if none is named yet. It asks only
// a running mcpvisor up, because starting a server for a press of the tab key would take seconds.
func completeArguments(o *cli.Options, server, prompt string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return project.CompleteFrom(o, func(ctx context.Context, p *project.Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		if p.Up == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _ := p.Prompts(ctx, server) // a failure means nothing to offer; the shell has no place for an error
		var out []cobra.Completion
		for i := range all {
			if prompt == "" {
				out = append(out, cobra.CompletionWithDesc(messages.Line(all[i].Name, 0), nameText("", all[i].Title, all[i].Description)))
			}
			for _, a := range all[i].Arguments {
				if all[i].Name == prompt {
					out = append(out, cobra.CompletionWithDesc(messages.Line(a.Name, 0), nameText("", a.Title, a.Description)))
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

// proposeValues asks the server to complete the value and prints a proposal on each line. Proposals are the server's words, cut
// to one line and escaped.
func proposeValues(o *cli.Options, cmd *cobra.Command, args []string, f completeFlags) error {
	r := messages.CompleteRequest{Prompt: f.prompt, URITemplate: f.template, Argument: args[1]}
	// Without VALUE the server proposes values for an empty beginning.
	if len(args) == 3 {
		r.Value = args[2]
	}
	for _, w := range f.with {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return exit.UsageError(cmd, "--with: %q is no argument; write --with KEY=VALUE", messages.Line(w, 80))
		}
		// Values of other arguments go into the context of the request (completion/complete, context.arguments).
		if r.Context == nil {
			r.Context = map[string]string{}
		}
		r.Context[key] = value
	}
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := connectServer(ctx, p, args[0], f.wait); err != nil {
		return err
	}
	c, err := p.Complete(ctx, args[0], r)
	if err != nil {
		return err
	}
	c.Values = terminal.OrEmpty(c.Values)
	if f.json {
		return terminal.PrintJSON(o.Out, c)
	}
	for _, v := range c.Values {
		fmt.Fprintln(o.Out, messages.Line(v, 0))
	}
	// The specification bounds an answer to 100 values, so that more may exist.
	switch more := c.Total - len(c.Values); {
	case more > 0:
		o.PrintRemark("there are %d more; type more of the value", more)
	case c.HasMore:
		o.PrintRemark("there are more; type more of the value")
	}
	return nil
}
