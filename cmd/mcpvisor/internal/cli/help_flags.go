package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commonFlags names the persistent flags that every help shows. The topic "flags" explains the others: on one screen they would
// leave no room for what a command does.
var commonFlags = []string{"config", "dir", "quiet"}

// usageTemplate is cobra's own template, except for the flags. OF-ROOT and OF-ALL stand for texts that ShortenFlags fills in.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Available Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}

Flags:
{{if .HasParent}}{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{else}}OF-ROOT{{end}}

Flags of every command (all of them: mcpvisor help flags):
OF-ALL{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
`

// ShortenFlags makes the help of every command show only commonFlags of the persistent flags.
func ShortenFlags(root *cobra.Command) {
	few, own := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(commonFlags, f.Name) {
			few.AddFlag(f)
		}
	})
	// cobra adds these two to the root after this function has run.
	own.BoolP("help", "h", false, "help for mcpvisor")
	own.BoolP("version", "v", false, "version of mcpvisor")
	root.SetUsageTemplate(strings.NewReplacer("OF-ROOT", strings.TrimSuffix(own.FlagUsages(), "\n"),
		"OF-ALL", strings.TrimSuffix(few.FlagUsages(), "\n")).Replace(usageTemplate))
}
