// Package call holds the commands that use what servers offer: tools and call, resources and read, prompts and prompt, and
// complete.
//
// How it fits: each opens a project, waits for the servers that it needs, makes one request through control.Backend, and prints
// the answer. Arguments of tools are checked against their schema before anything is sent (package schema); questions of
// servers during a call reach the person through package ask. The exit code says whether a call may be repeated.
//
//	call.go, tools.go       tools: ParseTarget reads which one is meant, FindTool connects its server, callTool checks and sends
//	prompt.go               prompts, by the same target
//	read.go, read_await.go  resources, of the server that offers the URI
//	offers.go               the lists; servers that fail are reported beside them
//	complete_values.go      proposals of a server for a value
//
// Guarantees: what is wrong with the person's words or arguments is found before anything is sent, and its exit code says so. The
// bytes of an answer go to a file or into a pipe as they came; on a terminal they are escaped, and bytes that are no text do not go
// there. A completion of the shell starts no server.
//
// Not promised: that a call runs once. A call whose answer was lost ends with exit code 4, and the script decides.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	check "github.com/mcpvisor/mcpvisor/supervisor/output"
)

// Flags holds the flags of call. The command permissions fills in wait alone, to find a tool with FindTool.
type Flags struct {
	// args is the value of --args: a JSON object, "-" for standard input, empty without the flag.
	args string
	// timeout bounds the call; 0 with timeoutSet means no bound, without it the server's own callTimeout.
	timeout    time.Duration
	timeoutSet bool
	// Wait bounds how long the server may take to connect, apart from the call.
	Wait time.Duration
	// json prints the result object as the server sent it; it excludes output.
	json bool
	// progress shows the progress notifications of the call on standard error; meta is a JSON object for the _meta of the
	// request.
	progress bool
	meta     string
	// output is the file that the answer is written to; "-" is standard output, empty prints the text.
	output string
	// allow holds rules that hold for this call alone.
	allow []string
}

// NewCall returns the command "call", which runs callTool. Its exit codes are those of exit.CodeOf, by which a script knows
// whether it may repeat the call.
func NewCall(o *cli.Options) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "call SERVER TOOL [KEY=VALUE] [KEY:=JSON]",
		Short: "Call a tool",
		Long: `Calls a tool and prints its answer. A tool is named by its server and its own name, as SERVER:TOOL, or
by the name that models see, mcp__SERVER__TOOL.

Arguments: KEY=VALUE is a text, or what the tool's schema says it must be: count=3, recursive=true, and for a
list tag=a tag=b. KEY:=JSON is JSON: filter:='{"open":true}'. --args gives the whole object; single ones win
over it. They are checked against the tool's schema before anything is sent; a name that is not in the schema, but
nearly one that is and was not given, is refused too.

--output writes the answer to a file exactly as it came: an image, audio or a file of the tool as its bytes (several with
numbers in their names), otherwise the text.

Exit codes: 0 result · 1 the tool answered with an error · 2 usage or configuration, unknown names and wrong
arguments included · 3 not sent · 4 outcome unknown: it may have run · 5 rejected by the server.`,
		Example: `  mcpvisor call files read_file path=README.md
  mcpvisor call files:list_directory path=.
  mcpvisor call browser screenshot --output page.png
  mcpvisor call mcp__github__create_issue --args '{"title":"…"}' --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.UsageError(cmd, "which tool? Write mcpvisor call SERVER TOOL KEY=VALUE…")
			}
			return nil
		},
		ValidArgsFunction: project.CompleteWith(o, completeCall),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.timeoutSet = cmd.Flags().Changed("timeout")
			if f.json && f.output != "" {
				return exit.UsageError(cmd, "--json and --output exclude each other")
			}
			return callTool(o, cmd, args, f)
		},
	}
	cmd.Flags().StringVar(&f.args, "args", "", "the arguments as a `JSON` object; - reads it from standard input")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0,
		"how long the call may take, 0 for ever (default: the server's callTimeout, 60s).\n"+
			"A running mcpvisor up keeps to the server's own callTimeout if that is shorter")
	cmd.Flags().DurationVar(&f.Wait, "wait", 30*time.Second, "how long the server may take to connect")
	cmd.Flags().BoolVarP(&f.json, "json", "j", false, "print the server's result object unchanged; a failure as an object (mcpvisor help json)")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the answer to this `file`, as its bytes; - is standard output")
	cmd.Flags().BoolVar(&f.progress, "progress", false, "show on standard error how far the call has got")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "allow what this `rule` names, if the rules of your files ask "+
		"(repeatable; what they deny stays denied)")
	cmd.Flags().StringVar(&f.meta, "meta", "", "members for the request's _meta, as a `JSON` object")
	return cmd
}

// callTool makes one call: it finds the tool, checks the arguments against the tool's schema, sends the call, and prints the
// answer. Everything that can be wrong with the arguments is found before anything is sent.
func callTool(o *cli.Options, cmd *cobra.Command, words []string, f Flags) error {
	ctx := cmd.Context()
	// The rules of --allow go to the prompter: they answer a question about this call, and never undo what a rule of a file denies.
	for _, text := range f.allow {
		rule, err := access.Parse(access.Allow, text)
		if err != nil {
			return exit.UsageError(cmd, "--allow: %s", err)
		}
		o.Prompter.Allowed = append(o.Prompter.Allowed, rule)
	}
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	// The hooks are installed before servers start, because a server may ask or report progress during its start.
	hooks, done, err := callHooks(p, cmd, f)
	if err != nil {
		return err
	}
	defer done()
	target, words, err := ParseTarget(p, words, toolItem)
	if err != nil {
		return err
	}
	typed, err := schema.SplitArgs(words)
	if err != nil {
		return exit.UsageError(cmd, "%s", err)
	}
	// A denied tool is not offered, so that FindTool cannot find it. The call is made all the same, to be recorded as refused.
	tool, err := FindTool(ctx, p, target, f)
	if errors.Is(err, messages.ErrDenied) {
		return recordRefusal(ctx, p, target, typed, f, hooks, err)
	}
	if err != nil {
		return err
	}
	input := schema.ReadInput(tool.InputSchema)
	args, err := schema.BuildArgs(f.args, typed, input, o.In)
	if err != nil {
		return exit.With(exit.Usage, err.Error()+"; see: mcpvisor tools "+terminal.ShellWord(tool.Server))
	}
	// A name that is nearly one of the schema's is refused even if the schema allows more names: it is most likely a typing
	// mistake, and the call would run without the argument.
	if text := input.MisspeltArg(typed, args); text != "" {
		return exit.With(exit.Usage, text+" (nothing was sent; see: mcpvisor tools "+terminal.ShellWord(tool.Server)+")")
	}
	v := input.CheckValue(args)
	if len(v.Faults) > 0 {
		return exit.With(exit.Usage, strings.Join(v.Faults, "; ")+" (nothing was sent; see: mcpvisor tools "+
			terminal.ShellWord(tool.Server)+")")
	}
	if v.Unchecked != "" {
		o.PrintRemark("the arguments are sent unchecked, because the tool's schema cannot be used: %s", v.Unchecked)
	}
	// The time begins here and not earlier: finding and starting the server has the bound of --wait.
	if f.timeoutSet && f.timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		ctx = bounded
	}
	res, err := p.Call(ctx, control.Call{Server: tool.Server, Tool: tool.Name, Args: args, CallHooks: hooks})
	// Progress on the terminal ends before the answer is printed.
	done()
	if err != nil {
		return err
	}
	return printResult(o, res, tool, f)
}

// recordRefusal makes a call that the rules deny, so that the manager which answers refuses it and the record of calls shows
// the attempt. It returns denied, which names the rule.
func recordRefusal(ctx context.Context, p *project.Project, t target, typed []schema.TypedArg, f Flags, hooks control.CallHooks, denied error) error {
	// The tool's schema is not shown to this caller either, so that values without := are sent as texts.
	args, err := schema.BuildArgs(f.args, typed, schema.ReadInput(nil), p.Options.In)
	if err != nil {
		return exit.With(exit.Usage, err.Error())
	}
	c := control.Call{Qualified: t.Qualified, Server: t.Server, Tool: t.Tool, Args: args, CallHooks: hooks}
	res, err := p.Call(ctx, c)
	if err == nil { // the rules have changed since FindTool asked
		return printResult(p.Options, res, &control.Tool{}, f)
	}
	if errors.Is(err, messages.ErrDenied) {
		return denied
	}
	return err
}

// callHooks returns the hooks of the call: what the manager calls while it runs. done ends the display of progress and may be
// called more than once.
func callHooks(p *project.Project, cmd *cobra.Command, f Flags) (a control.CallHooks, done func(), err error) {
	a, done = defaultHooks(p), func() {}
	if f.meta != "" {
		var object map[string]json.RawMessage
		if a.Meta = json.RawMessage(strings.TrimSpace(f.meta)); json.Unmarshal(a.Meta, &object) != nil || object == nil {
			return a, done, exit.UsageError(cmd, `--meta: it is no JSON object; write --meta '{"key": "value"}'`)
		}
	}
	if f.progress && !p.Options.Quiet {
		// Questions and progress share one terminal: the prompter asks through g, which stops drawing meanwhile.
		g := &progress{options: p.Options}
		a.Progress, done = g.showProgress, g.clear
		p.Options.Prompter.WithTerminal = g.withTerminal
	}
	return a, done, nil
}

// ItemKind is a kind of items that servers offer by name, in the words for sentences: the item, the command that uses it, and
// the command that lists it.
type ItemKind struct{ word, command, list string }

var (
	toolItem   = ToolFor("call")
	promptItem = ItemKind{"prompt", "prompt", "prompts"}
)

// ToolFor returns the kind of the tools that a command takes.
func ToolFor(command string) ItemKind { return ItemKind{"tool", command, "tools"} }

// target is a tool or prompt as the person named it: by server and name, or by its qualified name.
type target struct {
	Server, Tool, Qualified string
	// servers are the servers that it can belong to: one, or several if a qualified name was shortened by a hash. Empty: none.
	servers []string
}

// ParseTarget reads the words that name the item and returns the words that follow. It accepts SERVER TOOL, SERVER:TOOL and
// mcp__SERVER__TOOL; the name of a configured server wins over the other readings of the first word.
func ParseTarget(p *project.Project, words []string, kind ItemKind) (target, []string, error) {
	first := words[0]
	known := func(name string) bool { return slices.Contains(p.Names, name) }
	if !known(first) {
		// The long form says its server without a doubt, so that an unknown one is an error at once.
		if server, tool, ok := (messages.Naming{}).Split(first); ok {
			if !known(server) {
				return target{}, nil, project.UnknownServerError(kind.command, server, p.Names, p.Setup)
			}
			return targetOf(server, tool), words[1:], nil
		}
		// A qualified name that is too long holds a hash, and cannot be split; each server whose name fits is asked.
		if strings.HasPrefix(first, "mcp__") {
			t := target{Qualified: first}
			for _, name := range p.Names {
				if (messages.Naming{}).MayBeOf(first, name) {
					t.servers = append(t.servers, name)
				}
			}
			return t, words[1:], nil
		}
		if server, tool, ok := messages.ParseDisplayName(first, known); ok {
			return targetOf(server, tool), words[1:], nil
		}
		server, _, _ := strings.Cut(first, ":")
		return target{}, nil, project.UnknownServerError(kind.command, server, p.Names, p.Setup)
	}
	if len(words) < 2 {
		return target{}, nil, exit.With(exit.Usage, fmt.Sprintf(
			"which %s of %q? Write mcpvisor %s %s %s; see: mcpvisor %s %s", kind.word, messages.Line(first, 60), kind.command,
			terminal.ShellWord(first), strings.ToUpper(kind.word), kind.list, terminal.ShellWord(first)))
	}
	return targetOf(first, words[1]), words[2:], nil
}

// targetOf returns the target of an item of one server.
func targetOf(server, tool string) target {
	return target{Server: server, Tool: tool, servers: []string{server}}
}

// FindTool connects the servers that the target may belong to and returns the tool. Its errors are of kind "not sent".
func FindTool(ctx context.Context, p *project.Project, t target, f Flags) (*control.Tool, error) {
	if len(t.servers) == 0 {
		return nil, noToolError(t, "", nil)
	}
	if err := p.StartServers(ctx, t.servers, func(cfg *supervisor.Config) { applyTimeout(cfg, f) }); err != nil {
		return nil, err
	}
	return firstOf(ctx, t.servers, func(ctx context.Context, server string) (*control.Tool, error) {
		all, err := p.AwaitStatus(ctx, f.Wait, server)
		if err != nil {
			return nil, err
		}
		if !status.IsCallable(all[0]) {
			return nil, p.UnreachableError(all[0])
		}
		// Connecting may have used up the wait. Listing gets the time once more: a lazy server is started by it.
		within, cancel := context.WithTimeout(ctx, f.Wait)
		defer cancel()
		tools, err := p.Tools(within, server)
		if err != nil {
			return nil, err
		}
		for i := range tools {
			if tools[i].Qualified == t.Qualified || t.Server != "" && tools[i].Name == t.Tool {
				return &tools[i], nil
			}
		}
		return nil, noToolError(t, server, tools, all[0].Quarantined...)
	})
}

// firstOf asks all servers at once and returns the first answer without an error; it cancels the others then and does not wait
// for them. If every server fails it returns the error of the first server in the list.
func firstOf[T any](ctx context.Context, servers []string, ask func(ctx context.Context, server string) (T, error)) (T, error) {
	type answer struct {
		at  int
		v   T
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(servers))
	for i, server := range servers {
		go func() { // it ends with ctx at the latest; answers has room for it
			a := answer{at: i, err: errors.New("a defect of mcpvisor ended the question to " + messages.Line(server, 60))}
			defer func() {
				_ = recover() // the error above stands for the panic
				answers <- a
			}()
			a.v, a.err = ask(ctx, server)
		}()
	}
	errs := make([]error, len(servers))
	for range servers {
		a := <-answers
		if a.err == nil {
			return a.v, nil
		}
		errs[a.at] = a.err
	}
	var none T
	return none, errs[0]
}

// applyTimeout sets the callTimeout of the servers that this command starts to the value of --timeout. Without it the server's
// own bound would end a call earlier than the person wants.
func applyTimeout(cfg *supervisor.Config, f Flags) {
	if !f.timeoutSet {
		return
	}
	for name, spec := range cfg.Servers {
		if spec.CallTimeout = messages.Duration(f.timeout); f.timeout <= 0 {
			spec.CallTimeout = -1 // negative means no bound; 0 would mean the default
		}
		cfg.Servers[name] = spec
	}
}

// noToolError says that a server does not offer a tool, and names the nearest one or those that it offers. A tool that the
// server has but the manager withholds is named with the reason. With an empty server no configured server can have the tool.
func noToolError(t target, server string, tools []control.Tool, withheld ...messages.QuarantinedTool) error {
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Server: server,
		Err: messages.ErrUnknownTool}
	if server == "" {
		e.Text = fmt.Sprintf("no configured server can have a tool %q", messages.Line(t.Qualified, 80))
		e.Fix = "see: mcpvisor tools"
		return e
	}
	var names []string
	word := t.Tool
	for i := range tools {
		if t.Server == "" {
			names = append(names, tools[i].Qualified)
		} else {
			names = append(names, tools[i].Name)
		}
	}
	if t.Server == "" {
		word = t.Qualified
	}
	e.Text = fmt.Sprintf("it offers no tool %q", messages.Line(word, 80))
	for _, q := range withheld {
		if q.Name != word {
			continue
		}
		// A rule withholds it, which is another error than a tool that does not exist.
		if q.By != "" {
			e.Tool, e.Class, e.Err, e.Text = word, messages.ClassDenied, messages.ErrDenied, q.Reason
			return e
		}
		e.Text = fmt.Sprintf("its tool %q is quarantined: %s", messages.Line(word, 80), messages.Line(q.Reason, 200))
		return e
	}
	// A server may have hundreds of tools: one near name helps more than all of them.
	switch near := messages.Nearest(word, names); {
	case near != "":
		e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(near, 80))
	case len(names) > 0:
		e.Fix = "it offers " + terminal.JoinNames(names)
	}
	return e
}

// printResult prints the answer of a tool, and returns an error with exit code 1 if the tool answered with isError.
func printResult(o *cli.Options, res control.Result, tool *control.Tool, f Flags) error {
	switch {
	case f.json:
		printRaw(o, res.Raw)
	case f.output != "":
		if err := writeAnswer(o, res, f.output); err != nil {
			return err
		}
	default:
		text := res.Text()
		if answer := (&supervisor.Result{Raw: res.Raw}); terminal.IsTerminal(o.Out) && text == string(answer.Structured()) {
			text = indentJSON(answer.Structured()) // a person reads it; a program in a pipe gets the server's own bytes
		}
		if text = messages.Printable(text); text != "" {
			fmt.Fprintln(o.Out, strings.TrimRight(text, "\n"))
		}
	}
	// An answer that does not fit its own schema is the server's fault. It is printed all the same, because the tool has run.
	if flaw := new(check.Checker).Flaw(tool.OutputSchema, res.Raw); flaw != "" {
		o.PrintRemark("%s", flaw)
	}
	if res.IsError {
		return exit.With(exit.Failed, "the tool answered with an error")
	}
	return nil
}

// completeCall offers servers, then the tools of the server, then the arguments of the tool. Tools are only known of a running
// mcpvisor up, because no server is started for a completion.
func completeCall(o *cli.Options, cmd *cobra.Command, args []string, word string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return project.CompleteServer(o, cmd, args, word)
	}
	return project.CompleteFrom(o, func(ctx context.Context, p *project.Project) ([]cobra.Completion, cobra.ShellCompDirective) {
		t, rest, err := ParseTarget(p, args, toolItem)
		if p.Up == nil || err != nil && !slices.Contains(p.Names, args[0]) {
			return nil, cobra.ShellCompDirectiveDefault // the value of an argument may be a file
		}
		// Without a server in the first word every tool of up is looked at, because the word may be a qualified name.
		only := []string{}
		if server := args[0]; slices.Contains(p.Names, server) {
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
	})
}

// argCompletions offers the arguments of a tool that are not given yet, as KEY=.
func argCompletions(tools []control.Tool, t target, given []string) []cobra.Completion {
	var out []cobra.Completion
	for i := range tools {
		if tools[i].Qualified != t.Qualified && (tools[i].Server != t.Server || tools[i].Name != t.Tool) {
			continue
		}
		for _, name := range schema.ReadInput(tools[i].InputSchema).PropertyNames() {
			if !slices.ContainsFunc(given, func(g string) bool {
				return strings.HasPrefix(g, name+"=") || strings.HasPrefix(g, name+":=")
			}) {
				out = append(out, messages.Line(name, 0)+"=")
			}
		}
	}
	return out
}
