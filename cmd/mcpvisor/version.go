package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// newVersion returns the command "version". It reads no configuration, so that it works in a broken project.
func newVersion(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  mcpvisor version
  mcpvisor version --json | jq -r .version`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.json {
				_, revision, _ := strings.Cut(supervisor.Version(), "+")
				return printJSON(o.out, versionReport{supervisor.Version(), revision, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			fmt.Fprintln(o.out, versionText())
			return nil
		},
	}
	o.addJSONFlag(cmd, "print a JSON object")
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

// versionText returns the line that "mcpvisor version" and --version print.
func versionText() string {
	return fmt.Sprintf("mcpvisor %s (%s %s/%s)", supervisor.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
