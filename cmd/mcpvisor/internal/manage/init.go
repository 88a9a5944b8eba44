package manage

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// emptyFile is the text that init writes: a file with room for servers.
const emptyFile = "{\n  \"mcpServers\": {}\n}\n"

// NewInit returns the command "init", which runs initProject. It never changes a file that is there.
func NewInit(o *cli.Options) *cobra.Command {
	scope := string(messages.ScopeProject)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a file for the servers of this project",
		Long: `Makes a configuration file without servers, and says how to go on. A file that is there already is left as it is.

Scopes: project is .mcp.json, for all who work on the project (the default), local is yours in this project
(.mcpvisor/mcp.local.json), user is yours everywhere.

Exit codes: 0 the file is there · 1 it cannot be made · 2 usage.`,
		Example: `  mcpvisor init
  mcpvisor init --scope user`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return initProject(o, cmd, messages.Scope(scope)) },
	}
	cmd.Flags().StringVarP(&scope, "scope", "s", scope, "whose file: project, local or user")
	o.AddJSONFlag(cmd, "print a JSON object")
	return cmd
}

// initReport is the JSON object that init --json prints. Made is false if the file was there.
type initReport struct {
	File  string         `json:"file"`
	Scope messages.Scope `json:"scope"`
	Made  bool           `json:"made"`
}

// initProject makes the file of the scope unless it is there, and prints how to go on. editScope creates missing directories.
func initProject(o *cli.Options, cmd *cobra.Command, scope messages.Scope) error {
	switch scope {
	case messages.ScopeProject, messages.ScopeLocal, messages.ScopeUser:
	default:
		return exit.UsageError(cmd, "--scope: %q is none; use project, local or user", messages.Line(string(scope), 40))
	}
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	if err := checkMayManage(s, "added"); err != nil {
		return err
	}
	// The file belongs to the project, which may be a directory above the working directory.
	file := discover.FileOf(scope, discover.DefaultPaths(), s.ProjectDir)
	if file == "" {
		return exit.With(exit.Failed, "there is no place for files of yours: HOME is not set")
	}
	// The error makes editScope leave the file as it is.
	there := errors.New("it is there")
	err = editScope(file, scope, func(text []byte) ([]byte, error) {
		if len(text) > 0 {
			return nil, there
		}
		return []byte(emptyFile), nil
	})
	switch {
	// With --json both outcomes are one object, and exit code 0: the file is there.
	case (err == nil || errors.Is(err, there)) && o.JSON:
		if err == nil && scope == messages.ScopeLocal {
			keepOutOfGit(file)
		}
		return terminal.PrintJSON(o.Out, initReport{file, scope, err == nil})
	case errors.Is(err, there):
		fmt.Fprintf(o.Out, "%s is there already, and was left as it is. What is in it: mcpvisor list\n", messages.Line(file, 0))
		return nil
	case err != nil:
		return exit.With(exit.Failed, messages.Line(err.Error(), 300))
	}
	fmt.Fprintf(o.Out, "Made %s.\n", messages.Line(file, 0))
	if scope == messages.ScopeLocal && keepOutOfGit(file) {
		fmt.Fprintln(o.Out, "It is kept out of git by a .gitignore beside it.")
	}
	if o.Quiet {
		return nil
	}
	fmt.Fprintf(o.Out, `
Add a server:                        mcpvisor add NAME --scope %s COMMAND ARGUMENT…
Copy those of other programs:        mcpvisor import
See whether this machine is fit:     mcpvisor doctor
Connect them and keep them so:       mcpvisor up
`, scope)
	return nil
}
