package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
)

// ShowHelp serves as the RunE of commands that only have subcommands: it prints the help, and refuses a word that names none of
// them.
func ShowHelp(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UnknownCommand(cmd, args[0])
	}
	return cmd.Help()
}

// UnknownCommand returns the usage error for a word that is no subcommand of cmd. It prefers the hint for a word of another
// program over the nearest name, because "ls" or "start" is no typing mistake.
func UnknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", messages.Line(name, 60))
	if answer := foreignCommandHints[name]; answer != "" && !cmd.HasParent() {
		return exit.With(exit.Usage, text+": "+answer)
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	if near := messages.Nearest(name, names); near != "" {
		return exit.With(exit.Usage, fmt.Sprintf("%s; did you mean %q?", text, near))
	}
	return exit.With(exit.Usage, text+"; see: "+cmd.CommandPath()+" --help")
}

// foreignCommandHints maps command names that people know from other programs to the commands that do it here. They are not
// made aliases, because each of them could mean more than one command.
var foreignCommandHints = map[string]string{
	"ls":     "mcpvisor list says how each server fares, mcpvisor tools what it offers",
	"ps":     "mcpvisor list says how each server fares; with --json also its process",
	"start":  "mcpvisor up connects all servers and keeps them connected, mcpvisor enable SERVER one that was disabled",
	"stop":   "mcpvisor disable SERVER ends one server; Ctrl-C in the terminal of mcpvisor up, or mcpvisor down, all of them",
	"daemon": "mcpvisor connect and mcpvisor up start it when there is none, mcpvisor up --detach keeps it, mcpvisor down ends it",
	"run":    "mcpvisor up keeps servers connected, mcpvisor call SERVER TOOL runs a tool",
	"edit":   "mcpvisor add NAME … --replace changes an entry, mcpvisor get NAME says in which file it stands",
	"delete": "mcpvisor remove SERVER takes a server out of its file",
	"rm":     "mcpvisor remove SERVER takes a server out of its file",
	"test":   "mcpvisor ping SERVER says whether a server answers, mcpvisor doctor whether this machine is fit",
	"setup":  "mcpvisor init makes a file for the servers of this project, mcpvisor import copies those of other programs",
	"exec":   "mcpvisor call SERVER TOOL runs a tool",
}

// FlagNames returns the names of the visible flags of a command, its own and the persistent ones, as candidates for a hint.
func FlagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// NoArgs refuses arguments; commands without arguments use it for Args.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.UsageError(cmd, "%s takes no arguments, and %q is one", cmd.Name(), messages.Line(args[0], 60))
	}
	return nil
}

// OneServer demands exactly one argument and explains what is missing or too much; commands about one server use it for Args.
func OneServer(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return exit.UsageError(cmd, "which server? Write %s SERVER", cmd.CommandPath())
	case len(args) > 1:
		return exit.UsageError(cmd, "%s is about one server, and %q is a second argument", cmd.Name(), messages.Line(args[1], 60))
	}
	return nil
}

// ExplainFlagError returns the usage error for a flag error of pflag, which names neither the unit that a duration lacks nor the
// flag that was meant; this adds both.
func ExplainFlagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(words) > 0 {
		return UnknownCommand(cmd, words[0]) // the flags of an unknown command cannot be known
	}
	text := err.Error()
	if strings.Contains(text, "invalid duration") {
		text = strings.ReplaceAll(text, "time: ", "") + "; write a number with its unit, such as 10s or 2m"
	}
	if !cmd.HasParent() && (text == "unknown flag: --json" || strings.HasPrefix(text, "unknown shorthand flag: 'j'")) {
		return exit.UsageError(cmd, "--json stands after the name of a command")
	}
	if word, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		if near := messages.Nearest(word, FlagNames(cmd)); near != "" {
			text += " (did you mean --" + near + "?)"
		}
	}
	return exit.UsageError(cmd, "%s", text)
}
