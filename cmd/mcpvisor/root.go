package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// streams holds the three streams that a run reads and writes. Tests pass buffers in place of the process's files.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// standardStreams returns the streams of this process, for main alone: commands use those of their options.
func standardStreams() streams { return streams{os.Stdin, os.Stdout, os.Stderr} }

// options holds what every command shares in one run: the streams and the values of the persistent flags. run makes one per
// process; cobra writes the flags into it before a command runs, and from then on only the command's goroutine changes it.
type options struct {
	streams
	// dir is the value of --dir, empty if not given; applyFlags changes the working directory to it.
	dir string
	// configs and servers are the values of --config and --mcp-server. They count as dynamic scope and need no approval.
	configs []string
	servers []string
	// only leaves out every file but those of --config, --mcp-server and the organisation.
	only bool
	// quiet suppresses progress, hints and notices (see printRemark); errors are printed all the same.
	quiet bool
	// json says that the command prints for programs; failures then collects what failed without ending the command, and
	// reportError prints it as part of one object.
	json     bool
	failures *failures
	// misread is true until cobra has parsed the command line. While it is true the value of json cannot be trusted, and run
	// looks for --json itself.
	misread bool
	// approve starts unapproved servers of the project for this run and remembers nothing; inheritEnv passes the whole
	// environment of this process to servers.
	approve    bool
	inheritEnv bool
	// logLevel is the value of --log-level; empty means logDefault.
	logLevel string
	// noControl neither connects to nor opens the control socket of the project.
	noControl bool
	// waitFlag is the value of --wait of the running command, 0 if the person did not give it or the command has no such flag.
	waitFlag time.Duration
	audit    auditFlags
	askFlags askFlags
	// prompter asks the person, on behalf of servers and of commands. A shell completion has an empty one, see withoutOutput.
	prompter *prompter
	// ctx is the context of the command, under which the configuration is read. If it is nil, an interrupt does not end the
	// reading.
	ctx context.Context
	// store says where sign-ins are kept: one of storeKinds, or empty for the default, auto.
	store string
	// logDefault is the log level of the command when --log-level is not given.
	logDefault zapcore.Level
}

// run executes the whole program behind main: it parses args, runs the command and returns the exit code. Only the second
// interrupt (see interruptContext) and a server of the demo call os.Exit below it, so that servers are closed and standard
// error is flushed.
func run(args []string, s streams) int {
	var flush func()
	// Standard error gets a bounded queue, because a reader that has stopped reading must not block a command. What servers
	// wrote is escaped before it enters the queue.
	s.err, flush = boundStderr(s.err)
	defer flush()
	s.err = escapeTerminal(s.err)
	// The checked writer remembers a failed write to standard output: on a full disk a run must not look like a success.
	out := &checkedWriter{Writer: escapeTerminal(s.out)}
	s.out = out
	o := &options{streams: s, logDefault: zapcore.ErrorLevel, failures: &failures{}, misread: true}
	questions := &interrupts{}
	ctx, stop := interruptContext(s.err, questions)
	defer stop()
	// Every call of this run carries the person and the word "command" into the audit log.
	ctx = audit.WithVia(messages.WithCaller(ctx, audit.User()), "command", "")
	o.prompter, o.ctx = newPrompter(ctx, s, questions), ctx
	root := newRoot(o)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	cmd, err := root.ExecuteContextC(ctx)
	// PersistentPreRunE did not run, so that cobra has not set o.json for a command line with a wrong flag.
	if o.misread {
		o.json = wantsJSON(cmd, args)
	}
	return o.reportError(out.resultError(err))
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
func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpvisor",
		Short:         "Keep MCP servers connected, and call their tools",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          showHelp,
		// PersistentPreRunE runs once the command line is understood and before any command's own code.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			o.misread = false
			if f := cmd.Flags().Lookup("json"); f != nil {
				o.json = f.Value.String() == "true"
			}
			if cmd.Flags().Changed("wait") {
				o.waitFlag, _ = cmd.Flags().GetDuration("wait") // the flag is a duration in every command that has it
			}
			return o.applyFlags()
		},
	}
	f := root.PersistentFlags()
	f.StringVarP(&o.dir, "dir", "C", "", "run as if started in this `directory`")
	f.StringArrayVarP(&o.configs, "config", "c", nil,
		"read this `file` as well, which needs no approval then (repeatable; - is standard input)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print results and errors alone: no progress, no hints, no notices")
	f.StringArrayVar(&o.servers, "mcp-server", nil,
		"add a `server`: NAME=URL, NAME=\"COMMAND ARGS…\" or NAME={json} (repeatable)")
	f.BoolVar(&o.only, "only", false, "of all files count those of --config and --mcp-server alone, and the organisation's")
	f.BoolVar(&o.approve, "approve", false, "for this run, start servers found in the project that nobody approved yet")
	f.BoolVar(&o.inheritEnv, "inherit-env", false, "give servers the whole environment, not the short list of variables")
	f.StringVar(&o.logLevel, "log-level", "", "log to standard error from this `level` on: debug, info, warn or error")
	f.BoolVar(&o.noControl, "no-control", false, "do not use (or, with up, open) the control socket of this project")
	o.audit.addTo(f)
	o.askFlags.addTo(f)
	f.StringVar(&o.store, "store", "", "keep sign-ins in auto, keyring, files (encrypted) or plain (files in the clear); "+
		"the same for every command, and $MCPVISOR_STORE if not given")
	// Flag errors of pflag name neither the unit that a duration lacks nor the flag that was meant; this adds both.
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
			return unknownCommand(cmd, words[0]) // the flags of an unknown command cannot be known
		}
		text := err.Error()
		if strings.Contains(text, "invalid duration") {
			text = strings.ReplaceAll(text, "time: ", "") + "; write a number with its unit, such as 10s or 2m"
		}
		if !cmd.HasParent() && (text == "unknown flag: --json" || strings.HasPrefix(text, "unknown shorthand flag: 'j'")) {
			return usageError(cmd, "--json stands after the name of a command")
		}
		if word, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
			if near := messages.Nearest(word, flagNames(cmd)); near != "" {
				text += " (did you mean --" + near + "?)"
			}
		}
		return usageError(cmd, "%s", text)
	})
	root.Version = versionText()
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
	root.SetOut(o.out) // the completion command takes this writer when it is made, not when it runs
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	completeWithoutPackage(root, o)
	shortenFlags(root)
	nameTopics(root)
	// cobra's completion command alone would print its help for an unknown shell and exit with 0; showHelp refuses it.
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args, c.RunE, c.Example = cobra.ArbitraryArgs, showHelp, "  mcpvisor completion bash"
	}
	return root
}

// applyFlags validates the persistent flags and makes them count before any command runs: it changes the working directory and
// reads the files that the answers to questions come from. Each error is an exitError with exitUsage.
func (o *options) applyFlags() error {
	if err := checkHomeDirs(o.err); err != nil {
		return err
	}
	if o.logLevel != "" {
		if _, err := zapcore.ParseLevel(o.logLevel); err != nil {
			return exitWith(exitUsage, fmt.Sprintf("--log-level: %q is no level; use debug, info, warn or error",
				messages.Line(o.logLevel, 40)))
		}
	}
	if o.only && len(o.configs)+len(o.servers) == 0 {
		return exitWith(exitUsage, "--only: it needs --config FILE or --mcp-server NAME=… that counts")
	}
	if o.store == "" {
		o.store = os.Getenv("MCPVISOR_STORE")
	}
	if o.store != "" && !slices.Contains(storeKinds, o.store) {
		return exitWith(exitUsage, fmt.Sprintf("--store: %q is no place for sign-ins; use %s",
			messages.Line(o.store, 40), strings.Join(storeKinds, ", ")))
	}
	// --dir comes after the checks that do not touch the disk and before askFlags, whose file names are relative to it.
	if o.dir != "" {
		if err := os.Chdir(o.dir); err != nil {
			text := err.Error()
			if errors.Is(err, os.ErrNotExist) {
				text = "there is no such directory"
			}
			return exitWith(exitUsage, fmt.Sprintf("--dir: %q: %s", messages.Line(o.dir, 200), text))
		}
	}
	return o.askFlags.readValues(o.prompter)
}

// showHelp serves as the RunE of commands that only have subcommands: it prints the help, and refuses a word that names none of
// them.
func showHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return cmd.Help()
}

// unknownCommand returns the usage error for a word that is no subcommand of cmd. It prefers the hint for a word of another
// program over the nearest name, because "ls" or "start" is no typing mistake.
func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", messages.Line(name, 60))
	if answer := foreignCommandHints[name]; answer != "" && !cmd.HasParent() {
		return exitWith(exitUsage, text+": "+answer)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	if near := messages.Nearest(name, names); near != "" {
		return exitWith(exitUsage, fmt.Sprintf("%s; did you mean %q?", text, near))
	}
	return exitWith(exitUsage, text+"; see: "+cmd.CommandPath()+" --help")
}

// foreignCommandHints maps command names that people know from other programs to the commands that do it here. They are not
// made aliases, because each of them could mean more than one command.
var foreignCommandHints = map[string]string{
	"ls":     "mcpvisor list says how each server fares, mcpvisor tools what it offers",
	"ps":     "mcpvisor list says how each server fares; with --json also its process",
	"start":  "mcpvisor up connects all servers and keeps them connected, mcpvisor enable SERVER one that was disabled",
	"stop":   "mcpvisor disable SERVER ends one server; Ctrl-C in the terminal of mcpvisor up ends them all",
	"serve":  "mcpvisor is no server itself; mcpvisor up keeps the servers of this project connected",
	"run":    "mcpvisor up keeps servers connected, mcpvisor call SERVER TOOL runs a tool",
	"edit":   "mcpvisor add NAME … --replace changes an entry, mcpvisor get NAME says in which file it stands",
	"delete": "mcpvisor remove SERVER takes a server out of its file",
	"rm":     "mcpvisor remove SERVER takes a server out of its file",
	"test":   "mcpvisor ping SERVER says whether a server answers, mcpvisor doctor whether this machine is fit",
	"setup":  "mcpvisor init makes a file for the servers of this project, mcpvisor import copies those of other programs",
	"exec":   "mcpvisor call SERVER TOOL runs a tool",
}

// flagNames returns the names of the visible flags of a command, its own and the persistent ones, as candidates for a hint.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
