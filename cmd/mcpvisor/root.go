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

// streams are what a run reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func standardStreams() streams { return streams{os.Stdin, os.Stdout, os.Stderr} }

// options are what every command shares: the streams and the persistent flags.
type options struct {
	streams
	dir     string
	configs []string
	servers []string
	only    bool
	quiet   bool
	// json says that the command prints for programs, faults is what then has failed without ending it.
	json     bool
	failures *failures
	// misread says that no command was begun: the command line was not understood.
	misread    bool
	approve    bool
	inheritEnv bool
	logLevel   string
	noControl  bool
	// waitFlag is what --wait says of the command that runs, 0 if it was not given.
	waitFlag time.Duration
	audit    auditFlags
	askFlags askFlags
	// prompter answers what servers ask of the person.
	prompter *prompter
	// ctx is the command's, under which the configuration is read; nil: nothing ends that.
	ctx context.Context
	// store is where sign-ins are kept: one of storeKinds, or empty.
	store string
	// logDefault is the command's own level when --log-level is not given.
	logDefault zapcore.Level
}

// run is the whole program: it returns the exit code.
func run(args []string, s streams) int {
	var flush func()
	s.err, flush = boundStderr(s.err)
	defer flush()
	s.err = escapeTerminal(s.err)
	out := &checkedWriter{Writer: escapeTerminal(s.out)}
	s.out = out
	o := &options{streams: s, logDefault: zapcore.ErrorLevel, failures: &failures{}, misread: true}
	questions := &interrupts{}
	ctx, stop := interruptContext(s.err, questions)
	defer stop()
	ctx = audit.WithVia(messages.WithCaller(ctx, audit.User()), "command", "")
	o.prompter, o.ctx = newPrompter(ctx, s, questions), ctx
	root := newRoot(o)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	cmd, err := root.ExecuteContextC(ctx)
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

func newRoot(o *options) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpvisor",
		Short:         "Keep MCP servers connected, and call their tools",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE:          showHelp,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			o.misread = false
			if f := cmd.Flags().Lookup("json"); f != nil {
				o.json = f.Value.String() == "true"
			}
			if cmd.Flags().Changed("wait") {
				o.waitFlag, _ = cmd.Flags().GetDuration("wait") // the flag is one of these, wherever there is one
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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
			return unknownCommand(cmd, words[0]) // whose flag nobody can know
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
	cobra.EnableCommandSorting = false // a newcomer meets them in the order of their use
	for _, group := range commands {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range group.commands {
			c := command(o)
			c.GroupID = group.title
			root.AddCommand(c)
		}
	}
	root.SetCompletionCommandGroupID(commands[len(commands)-1].title)
	root.SetOut(o.out) // the completion command takes it when it is made
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	completeWithoutPackage(root, o)
	shortenFlags(root)
	nameTopics(root)
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Args, c.RunE, c.Example = cobra.ArbitraryArgs, showHelp, "  mcpvisor completion bash"
	}
	return root
}

// applyFlags makes the persistent flags count, before any command runs.
func (o *options) applyFlags() error {
	if err := checkHomeDirs(o.err); err != nil {
		return err
	}
	if o.logLevel != "" {
		if _, err := zapcore.ParseLevel(o.logLevel); err != nil {
			return &exitError{exitUsage, fmt.Sprintf("--log-level: %q is no level; use debug, info, warn or error",
				messages.Line(o.logLevel, 40))}
		}
	}
	if o.only && len(o.configs)+len(o.servers) == 0 {
		return &exitError{exitUsage, "--only: it needs --config FILE or --mcp-server NAME=… that counts"}
	}
	if o.store == "" {
		o.store = os.Getenv("MCPVISOR_STORE")
	}
	if o.store != "" && !slices.Contains(storeKinds, o.store) {
		return &exitError{exitUsage, fmt.Sprintf("--store: %q is no place for sign-ins; use %s",
			messages.Line(o.store, 40), strings.Join(storeKinds, ", "))}
	}
	if o.dir != "" {
		if err := os.Chdir(o.dir); err != nil {
			text := err.Error()
			if errors.Is(err, os.ErrNotExist) {
				text = "there is no such directory"
			}
			return &exitError{exitUsage, fmt.Sprintf("--dir: %q: %s", messages.Line(o.dir, 200), text)}
		}
	}
	return o.askFlags.readValues(o.prompter)
}

// showHelp is what a command does that only has other commands.
func showHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return cmd.Help()
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", messages.Line(name, 60))
	if answer := foreignCommandHints[name]; answer != "" && !cmd.HasParent() {
		return &exitError{exitUsage, text + ": " + answer}
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	if near := messages.Nearest(name, names); near != "" {
		return &exitError{exitUsage, fmt.Sprintf("%s; did you mean %q?", text, near)}
	}
	return &exitError{exitUsage, text + "; see: " + cmd.CommandPath() + " --help"}
}

// foreignCommandHints are commands that people know from other programs, with what they mean here. They are no commands: each can
// mean more than one thing.
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

// flagNames are the flags of a command, its own and those of all.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
