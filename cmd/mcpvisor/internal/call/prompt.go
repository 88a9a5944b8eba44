package call

import (
	"context"
	"encoding/json"
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
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// promptFlags holds the flags of prompt.
type promptFlags struct {
	// args is the value of --args: a JSON object whose values are texts, "-" for standard input.
	args string
	json bool
	// wait bounds how long the server may take to connect; filling the prompt has the server's own bound.
	wait time.Duration
}

// NewPrompt returns the command "prompt", which runs fillPrompt.
func NewPrompt(o *cli.Options) *cobra.Command {
	var f promptFlags
	cmd := &cobra.Command{
		Use:   "prompt SERVER NAME [KEY=VALUE]",
		Short: "Fill a prompt of a server and print its messages",
		Long: `Fills a prompt and prints the messages that come out. A prompt is named by its server and its own name, as
SERVER:NAME, or by its full name, mcp__SERVER__NAME. Its arguments are texts: KEY=VALUE, or --args '{"KEY": "VALUE"}'; single
ones win over it.

Exit codes: 0 filled · 2 usage, an unknown prompt, or arguments that are missing · 3 not sent · 4 the answer was lost ·
5 rejected by the server.`,
		Example: `  mcpvisor prompt git commit-message changes="$(git diff --cached)"
  mcpvisor prompt mcp__docs__summarize url=https://example.com --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError(cmd, "which prompt? Write mcpvisor prompt SERVER NAME KEY=VALUE…")
			}
			return nil
		},
		ValidArgsFunction: project.CompleteWith(o, completePrompt),
		RunE:              func(cmd *cobra.Command, args []string) error { return fillPrompt(o, cmd, args, f) },
	}
	cmd.Flags().StringVar(&f.args, "args", "", "the arguments as a `JSON` object of texts; - reads it from standard input")
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print the server's result object unchanged")
	cmd.Flags().DurationVar(&f.wait, "wait", 30*time.Second, "how long the server may take to connect")
	return cmd
}

// fillPrompt fills one prompt: it checks the arguments against the server's list of prompts before it sends anything, and
// prints the messages of the answer.
func fillPrompt(o *cli.Options, cmd *cobra.Command, words []string, f promptFlags) error {
	ctx := cmd.Context()
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	t, words, err := ParseTarget(p, words, promptItem)
	if err != nil {
		return err
	}
	typed, err := schema.SplitArgs(words)
	if err != nil {
		return exit.UsageError(cmd, "%s", err)
	}
	args, err := promptArgs(f.args, typed, o)
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	// The arguments are read first: a wrong one is found without starting a server.
	prompt, err := findPrompt(ctx, p, t, f.wait)
	if err != nil {
		return err
	}
	// A server that misses a required argument answers with an error that is less clear than this one.
	if faults := argProblems(prompt, args); len(faults) > 0 {
		return exit.With(exit.Usage, strings.Join(faults, "; ")+" (nothing was sent; see: mcpvisor prompts "+
			terminal.ShellWord(prompt.Server)+")")
	}
	res, err := p.Fill(ctx, control.Fill{Server: prompt.Server, Name: prompt.Name, Args: args, CallHooks: defaultHooks(p)})
	if err != nil {
		return err
	}
	if f.json {
		printRaw(o, res.Raw)
		return nil
	}
	return printFilled(o, res)
}

// promptArgs merges --args and the typed arguments, which win. All arguments of prompts are texts by the specification, so that
// any other JSON is an error and no value is converted.
func promptArgs(whole string, typed []schema.TypedArg, o *cli.Options) (map[string]string, error) {
	object, _, err := schema.ReadArgsFlag(whole, o.In)
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	for name, v := range object {
		var text string
		if json.Unmarshal(v, &text) != nil {
			return nil, fmt.Errorf("--args: argument %q is %s; the arguments of prompts are texts, in quotes",
				messages.Line(name, 80), messages.Line(string(v), 40))
		}
		args[name] = text
	}
	given := map[string]bool{}
	for _, a := range typed {
		if given[a.Key] {
			return nil, fmt.Errorf("argument %q is given twice", messages.Line(a.Key, 80))
		}
		given[a.Key] = true
		// The specification knows only texts; a JSON value would be sent as its text, which the person may not expect.
		if a.JSON {
			return nil, fmt.Errorf("argument %q: the arguments of prompts are texts; write %s=…", messages.Line(a.Key, 80),
				messages.Line(a.Key, 40))
		}
		args[a.Key] = a.Value
	}
	return args, nil
}

// findPrompt connects the servers that the target may belong to and returns the prompt from the list of its server.
func findPrompt(ctx context.Context, p *project.Project, t target, wait time.Duration) (*messages.Prompt, error) {
	if len(t.servers) == 0 {
		return nil, noPromptError(t, "", nil)
	}
	if err := p.StartServers(ctx, t.servers, nil); err != nil {
		return nil, err
	}
	return firstOf(ctx, t.servers, func(ctx context.Context, server string) (*messages.Prompt, error) {
		if err := awaitServer(ctx, p, server, wait); err != nil {
			return nil, err
		}
		all, err := p.Prompts(ctx, server)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if all[i].Qualified == t.Qualified || t.Server != "" && all[i].Name == t.Tool {
				return &all[i], nil
			}
		}
		return nil, noPromptError(t, server, all)
	})
}

// noPromptError says that a server does not offer a prompt, and names the nearest one or those that it offers. With an empty
// server no configured server can have the prompt.
func noPromptError(t target, server string, all []messages.Prompt) error {
	// The outcome is not-sent, so that a script may correct the name and try again.
	e := &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Server: server,
		Err: messages.ErrUnknownPrompt}
	if server == "" {
		e.Text = fmt.Sprintf("no configured server can have a prompt %q", messages.Line(t.Qualified, 80))
		e.Fix = "see: mcpvisor prompts"
		return e
	}
	var names []string
	word := t.Tool
	if t.Server == "" {
		word = t.Qualified
	}
	for i := range all {
		if t.Server == "" {
			names = append(names, all[i].Qualified)
		} else {
			names = append(names, all[i].Name)
		}
	}
	e.Text = fmt.Sprintf("it offers no prompt %q", messages.Line(word, 80))
	switch near := messages.Nearest(word, names); {
	case near != "":
		e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(near, 80))
	case len(names) > 0:
		e.Fix = "it offers " + terminal.JoinNames(names)
	}
	return e
}

// argProblems names the required arguments that are missing, with the server's description, and the arguments that the prompt
// does not have. The result is empty if all is well.
func argProblems(p *messages.Prompt, args map[string]string) (faults []string) {
	var names []string
	for _, a := range p.Arguments {
		names = append(names, a.Name)
		if _, ok := args[a.Name]; a.Required && !ok {
			text := fmt.Sprintf("argument %q is missing", messages.Line(a.Name, 80))
			if d := nameText("", a.Title, a.Description); d != "" {
				text += " (" + d + ")"
			}
			faults = append(faults, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if slices.Contains(names, name) {
			continue
		}
		text := fmt.Sprintf("argument %q is not known to the prompt", messages.Line(name, 80))
		switch near := messages.Nearest(name, names); {
		case near != "":
			text += fmt.Sprintf("; did you mean %q?", messages.Line(near, 80))
		case len(names) == 0:
			text += "; it takes none"
		default:
			text += "; it knows " + terminal.JoinNames(names)
		}
		faults = append(faults, text)
	}
	return faults
}

// printFilled prints the messages, each below its role and indented, so that a text of the server cannot look like a role.
func printFilled(o *cli.Options, res control.FillResult) error {
	// Messages is nil if the answer has not the form that the specification demands.
	all := res.Messages()
	if all == nil {
		return exit.With(exit.Failed, "the server's answer is no prompt; --json prints it")
	}
	for i, m := range all {
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		fmt.Fprintf(o.Out, "%s:\n", messages.Line(m.Role, 40))
		for l := range strings.Lines(strings.TrimRight(messages.Printable(contentText(&m.Content)), "\n") + "\n") {
			fmt.Fprintln(o.Out, strings.TrimRight("  "+l, "\n"))
		}
	}
	return nil
}

// contentText returns one part of an answer as a person reads it, by the same rules as a tool's answer.
func contentText(c *supervisor.Content) string {
	raw := c.Raw
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return (&supervisor.Result{Raw: json.RawMessage(`{"content":[` + string(raw) + `]}`)}).Text()
}

// completePrompt offers the shell servers, then their prompts, then the arguments that are not given yet. It knows only what a
// running mcpvisor up has listed.
func completePrompt(o *cli.Options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return project.CompleteServer(o, cmd, args, word)
	}
	return project.CompleteFrom(o, func(ctx context.Context, p *project.Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		t, rest, err := ParseTarget(p, args, promptItem)
		var coded *exit.Error
		// A usage error means that the target is not typed to its end yet; its prompts can still be offered.
		if p.Up == nil || err != nil && !errors.As(err, &coded) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		// The first word may be a qualified name; then the prompts of all servers are looked at.
		var only []string
		if slices.Contains(p.Names, args[0]) {
			only = []string{args[0]}
		}
		all, _ := p.Prompts(ctx, only...) // a failure means nothing to offer
		var out []cobra.Completion
		for i := range all {
			switch {
			case len(args) == 1 && only != nil:
				out = append(out, cobra.CompletionWithDesc(messages.Line(all[i].Name, 0), nameText("", all[i].Title, all[i].Description)))
			case all[i].Qualified == t.Qualified || all[i].Server == t.Server && all[i].Name == t.Tool:
				for _, a := range all[i].Arguments {
					if !slices.ContainsFunc(rest, func(g string) bool { return strings.HasPrefix(g, a.Name+"=") }) {
						out = append(out, messages.Line(a.Name, 0)+"=")
					}
				}
				return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}
