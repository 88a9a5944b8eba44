package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// run executes the whole program behind main: it parses args, runs the command and returns the exit code. Only the second
// interrupt (see InterruptContext) and a server of the demo call os.Exit below it, so that servers are closed and standard
// error is flushed.
func run(args []string, s terminal.Streams) int {
	var flush func()
	// Standard error gets a bounded queue, because a reader that has stopped reading must not block a command. What servers
	// wrote is escaped before it enters the queue.
	s.Err, flush = terminal.BoundStderr(s.Err)
	defer flush()
	s.Err = terminal.Escape(s.Err)
	// The checked writer remembers a failed write to standard output: on a full disk a run must not look like a success.
	out := &terminal.CheckedWriter{Writer: terminal.Escape(s.Out)}
	s.Out = out
	questions := &exit.Interrupts{}
	ctx, stop := exit.InterruptContext(s.Err, questions)
	defer stop()
	// Every call of this run carries the person and the word "command" into the audit log.
	ctx = audit.WithVia(messages.WithCaller(ctx, audit.User()), "command", "")
	o := cli.NewOptions(ctx, s, ask.NewPrompter(ctx, s, questions))
	root := newRoot(o)
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return o.ReportResult(cmd, args, out.ResultError(err))
}

const longHelp = `mcpvisor keeps the MCP servers of a project connected, and calls their tools.

It reads .mcp.json in the form that MCP clients share, starts or dials every server in it, restarts those that fail
with growing delays, and says of each what it is and why.

  mcpvisor up --demo            see it work, without any configuration
  mcpvisor init                 make a file for the servers of this project; mcpvisor add puts one into it
  mcpvisor up                   connect the servers of this project and keep them connected
  mcpvisor list                 what is configured, and does it connect?
  mcpvisor tools files          what does the server "files" offer?
  mcpvisor call files read_file path=README.md
  mcpvisor resources            what can be read; mcpvisor read URI reads it
  mcpvisor prompts              what can be filled; mcpvisor prompt SERVER NAME fills it
  mcpvisor login search         sign in to a server that asks for it
  mcpvisor doctor               what commonly goes wrong on a machine, and what to do

While "mcpvisor up" runs, the other commands in the same project talk to it. Without it they start what they need, and
end it.

Exit codes: 0 all is well · 1 the tool answered with an error, or a server is not connected · 2 usage or configuration ·
3 a call was not sent · 4 a call's outcome is unknown: it may have run · 5 the server rejected a call · 130 interrupted`

// newRoot builds the command tree for one run. All commands share o, so that a persistent flag reaches each of them.
func newRoot(o *cli.Options) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpvisor",
		Short:         "Keep MCP servers connected, and call their tools",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          cli.ShowHelp,
		// PersistentPreRunE runs once the command line is understood and before any command's own code.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.ReadCommandLine(cmd) },
	}
	o.AddFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(cli.ExplainFlagError)
	root.Version = cli.VersionText()
	root.SetVersionTemplate("{{.Version}}\n")
	cobra.EnableCommandSorting = false // a newcomer meets the commands in the order of their use
	for _, group := range commands {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			c := command(o)
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetCompletionCommandGroupID(commands[len(commands)-1].title)
	root.SetOut(o.Out) // the completion command takes this writer when it is made, not when it runs
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	cli.CompleteWithoutPackage(root, o)
	cli.ShortenFlags(root)
	nameTopics(root)
	// cobra's completion command alone would print its help for an unknown shell and exit with 0; ShowHelp refuses it.
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args, c.RunE, c.Example = cobra.ArbitraryArgs, cli.ShowHelp, "  mcpvisor completion bash"
	}
	return root
}
