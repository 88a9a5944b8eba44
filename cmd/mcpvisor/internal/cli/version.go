package cli

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// NewVersion returns the command "version". It reads no configuration, so that it works in a broken project.
func NewVersion(o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  mcpvisor version
  mcpvisor version --json | jq -r .version`,
		Args: NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.JSON {
				_, revision, _ := strings.Cut(supervisor.Version(), "+")
				return terminal.PrintJSON(o.Out, versionReport{supervisor.Version(), revision, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			fmt.Fprintln(o.Out, VersionText())
			return nil
		},
	}
	o.AddJSONFlag(cmd, "print a JSON object")
	return cmd
}

// versionReport is the JSON object that version --json prints.
type versionReport struct {
	Version string `json:"version"`
	// Revision is the commit, if the Go tool recorded it, with ".modified" if files were changed after it.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// VersionText returns the line that "mcpvisor version" and --version print.
func VersionText() string {
	return fmt.Sprintf("mcpvisor %s (%s %s/%s)", supervisor.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
