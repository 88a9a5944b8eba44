package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// NewGet returns the command "get", which runs showServer. It starts nothing and needs no running up.
func NewGet(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "get SERVER",
		Short: "Show how a server is configured, and where",
		Long: `Shows the entry of a server that counts, with its scope, file and line, the entries of the same name that it hides, and
what the server is in the running "mcpvisor up". Values of env and headers, and what looks like a secret, are not shown.
Nothing is started.`,
		Example: `  mcpvisor get files
  mcpvisor get files --json | jq -r .file`,
		Args:              cli.OneServer,
		ValidArgsFunction: project.CompleteWith(o, project.CompleteServer),
		RunE:              func(cmd *cobra.Command, args []string) error { return showServer(cmd.Context(), o, args[0], asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON object")
	return cmd
}

// serverEntry is the JSON object that get --json prints.
type serverEntry struct {
	Name string `json:"name"`
	entryLocation
	// Config is the entry that counts, with its variables replaced and without its secrets.
	Config messages.Spec   `json:"config"`
	Hidden []entryLocation `json:"hidden,omitempty"`
	// Up is the status of the server in the running mcpvisor up; nil if none runs or it does not have the server.
	Up *messages.Status `json:"up,omitempty"`
}

// entryLocation says where an entry stands.
type entryLocation struct {
	Scope messages.Scope `json:"scope,omitempty"`
	File  string         `json:"file,omitempty"`
	Line  int            `json:"line,omitempty"`
	// Program names the program whose file it is; empty for files of mcpvisor.
	Program string `json:"program,omitempty"`
}

// toLocation returns the location for a report.
func (e fileEntry) toLocation() entryLocation {
	return entryLocation{e.scope, e.file, e.entry.Pos.Line, e.program}
}

// String returns the location for a line of text.
func (w entryLocation) String() string {
	text := string(w.Scope) + " scope · " + messages.Line(w.File, 0)
	if w.Line > 0 {
		text += fmt.Sprintf(":%d", w.Line)
	}
	if w.Program != "" {
		text += " (a file of " + w.Program + ")"
	}
	return text
}

// showServer prints the entry of a server, from the files or, for a server that only the running up has, from up.
func showServer(ctx context.Context, o *cli.Options, name string, asJSON bool) error {
	p, err := project.Open(ctx, o)
	if err != nil {
		return err
	}
	defer p.Close()
	out := serverEntry{Name: name}
	if p.Up != nil {
		all, err := p.Status(ctx, control.StatusQuery{Servers: []string{name}})
		// An error means that up does not have the server, which the files may still name.
		if err == nil {
			out.Up = &all[0]
		}
	}
	spec, here := p.Setup.Specs[name]
	switch {
	case here:
		out.Config = spec.Redacted()
		for i, e := range entriesOf(p.Setup, name) {
			if i == 0 {
				out.entryLocation = e.toLocation()
			} else {
				out.Hidden = append(out.Hidden, e.toLocation())
			}
		}
	case out.Up != nil && out.Up.Config != nil:
		out.Config = out.Up.Config.Redacted()
		out.entryLocation = entryLocation{Scope: out.Config.Scope, File: out.Config.Source}
	default:
		return project.UnknownServerError("get", name, p.Setup.ServerNames(), p.Setup)
	}
	if asJSON {
		return terminal.PrintJSON(o.Out, out)
	}
	printEntry(o, out)
	return nil
}

// printEntry prints the entry for people: what it starts, where it stands, what it hides, and its JSON without secrets.
func printEntry(o *cli.Options, out serverEntry) {
	fmt.Fprintf(o.Out, "%s: %s\n", messages.Line(out.Name, 60), status.StartText(out.Config))
	fmt.Fprintf(o.Out, "  from    %s\n", out.entryLocation)
	for _, h := range out.Hidden {
		fmt.Fprintf(o.Out, "  hides   %s\n", h)
	}
	if text := plannedIsolation(o, out); text != "" {
		fmt.Fprintf(o.Out, "  %s\n", text)
	}
	if out.Config.Disabled {
		fmt.Fprintf(o.Out, "  wanted  disabled; mcpvisor enable %s\n", terminal.ShellWord(out.Name))
	}
	if out.Config.Hold != "" {
		fmt.Fprintf(o.Out, "  held    %s\n", messages.Line(out.Config.Hold, 0))
	}
	if out.Up != nil {
		text, _ := status.PhaseOf(*out.Up)
		if detail := status.DetailOf(*out.Up, time.Now()); detail != "" {
			text += "  " + detail
		}
		fmt.Fprintf(o.Out, "  now     %s\n", text)
	}
	// These fields are not part of what the person wrote, and were printed above.
	entry := out.Config
	entry.Scope, entry.Source, entry.Hold, entry.Invalid = "", "", "", ""
	text, err := json.Marshal(entry)
	_ = terminal.PrintIndented(o.Out, text, err) // a failed write to standard output is remembered by CheckedWriter
}
