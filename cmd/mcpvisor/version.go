package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

func newVersion(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  mcpvisor version
  mcpvisor version --json | jq -r .version`,
		Args: none,
		RunE: func(*cobra.Command, []string) error {
			if o.json {
				return printJSON(o.out, versionShown{supervisor.Version(), revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			fmt.Fprintln(o.out, version())
			return nil
		},
	}
	o.jsonFlag(cmd, "print a JSON object")
	return cmd
}

// versionShown is what "version --json" prints.
type versionShown struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// version is what "mcpvisor version" and --version print.
func version() string {
	text := "mcpvisor " + supervisor.Version()
	if revision := revision(); revision != "" {
		text += " " + revision
	}
	return fmt.Sprintf("%s (%s %s/%s)", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revision is the commit that the program was built from, if the Go tool recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			text = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+modified"
			}
		}
	}
	if text == "" {
		return ""
	}
	return text + modified
}
