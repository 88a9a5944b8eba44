// Package clients holds the commands that show which agents of this machine use mcpvisor, and that make them use it: clients,
// clients connect and clients disconnect.
//
// How it fits: package foreign knows where each program keeps its servers and how it writes one, discover reads and replaces
// files, and edit changes one entry of a text. This package decides which file is meant, shows what would change, asks, and
// remembers what it changed.
//
//	clients.go     finds the programs and prints them
//	connect.go     puts the entry into a file
//	disconnect.go  takes it out
//	change.go      the change of one file: refused, shown, asked about, written
//	splice.go      the difference of two texts, which can be undone
//	store.go       what was changed, in a file of mcpvisor
//
// Guarantees: nothing is written that was not shown, or that --yes did not agree to unseen. A file that is as connect left it gets
// the bytes back that it had; in any other the entry alone is taken out. A file that another user could have written, that is no
// configuration of its program, or that changes meanwhile is refused. The store holds the bytes that were added and removed, and
// nothing else of the file, which may have secrets.
//
// Not promised: that the program reads its file again before it is started anew, or that it does not write back an older content.
package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// NewClients returns the command "clients" with the commands below it.
func NewClients(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clients",
		Short: "Show which agents of this machine use mcpvisor, and make them use it",
		Long: `Looks where other MCP clients keep their servers, and shows for each file which servers it starts by itself and
whether it uses mcpvisor. Nothing is started, and no file is changed.

An agent that is connected has one entry, "mcpvisor connect", and all servers of mcpvisor behind it.`,
		Example: `  mcpvisor clients
  mcpvisor clients connect cursor
  mcpvisor clients disconnect cursor`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error { return listClients(o) },
	}
	o.AddJSONFlag(cmd, "print a JSON array, one object for each file")
	cmd.AddCommand(newConnect(o), newDisconnect(o))
	return cmd
}

// clientReport is one file of a program, as clients --json prints it.
type clientReport struct {
	Program foreign.Format `json:"program"`
	Title   string         `json:"title"`
	File    string         `json:"file"`
	// Project says that the file lies in the working directory.
	Project bool `json:"project,omitempty"`
	// Connected holds the names of the entries that are mcpvisor itself.
	Connected []string       `json:"connected"`
	Servers   []serverReport `json:"servers"`
	// Problem says why nothing is known of the file.
	Problem string `json:"problem,omitempty"`
}

// serverReport is one server that a program starts by itself.
type serverReport struct {
	Name string `json:"name"`
	// Starts says what it starts or dials, without secrets; empty if its entry is invalid.
	Starts string `json:"starts"`
}

// listClients prints every file of another program that there is.
func listClients(o *cli.Options) error {
	m, err := thisMachine()
	if err != nil {
		return err
	}
	places := foreign.Locations(m)
	reports := []clientReport{}
	for _, f := range discover.ReadForeign(places, m.Dir) {
		reports = append(reports, reportFile(f))
	}
	if o.JSON {
		return terminal.PrintJSON(o.Out, reports)
	}
	if len(reports) == 0 {
		fmt.Fprintf(o.Out, "no file of another program was found in %s\n", terminal.CountOf(len(places), "place"))
		return nil
	}
	unconnected := false
	for _, r := range reports {
		use := "does not use mcpvisor"
		switch {
		case r.Problem != "":
			use = "! " + r.Problem
		case len(r.Connected) > 0:
			use = "uses mcpvisor, as " + messages.Line(strings.Join(r.Connected, ", "), 60)
		case !r.Project:
			unconnected = true
		}
		fmt.Fprintf(o.Out, "%s (%s) · %s · %s\n", r.Title, r.Program, messages.Line(r.File, 0), use)
		for _, s := range r.Servers {
			fmt.Fprintf(o.Out, "  %s  %s\n", messages.Line(s.Name, 60), s.Starts)
		}
	}
	if unconnected {
		o.PrintRemark("make one use mcpvisor with: mcpvisor clients connect PROGRAM")
	}
	return nil
}

// reportFile returns what is known of one file.
func reportFile(f discover.ForeignFile) clientReport {
	r := clientReport{Program: f.Format, Title: f.Format.Title(), File: filepath.FromSlash(f.Location.Path), Project: f.Project,
		Connected: []string{}, Servers: []serverReport{}}
	if f.Broken {
		r.Problem = brokenText(f)
		return r
	}
	for _, name := range serverNames(f) {
		spec := f.Servers[name].Spec
		if startsMcpvisor(spec) {
			r.Connected = append(r.Connected, name)
			continue
		}
		s := serverReport{Name: name, Starts: status.StartText(spec)}
		switch {
		case spec.Invalid != "":
			s.Starts = "! " + spec.Invalid
		case spec.Disabled:
			s.Starts += " · disabled"
		}
		r.Servers = append(r.Servers, s)
	}
	return r
}

// brokenText says as a clause why a file cannot be understood.
func brokenText(f discover.ForeignFile) string {
	if len(f.Problems) == 0 {
		return "it cannot be read"
	}
	p := f.Problems[0]
	p.File = ""
	return p.Error()
}

// serverNames returns the names of a file's servers in the order of its lines.
func serverNames(f discover.ForeignFile) (names []string) {
	for name := range f.Servers {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := f.Servers[a].Pos, f.Servers[b].Pos
		if x.Line != y.Line {
			return x.Line - y.Line
		}
		if x.Col != y.Col {
			return x.Col - y.Col
		}
		return strings.Compare(a, b)
	})
	return names
}

// startsMcpvisor reports whether an entry is the endpoint of mcpvisor: the command, of any version and place, with "connect".
func startsMcpvisor(spec messages.Spec) bool {
	base := strings.ToLower(spec.Command[strings.LastIndexAny(spec.Command, `/\`)+1:])
	return (base == "mcpvisor" || base == "mcpvisor.exe") && slices.Contains(spec.Args, "connect")
}

// thisMachine returns what the places of files depend on.
func thisMachine() (foreign.Machine, error) {
	dir, err := os.Getwd()
	if err != nil {
		return foreign.Machine{}, exit.With(exit.Usage, "the working directory is not known; change to another one")
	}
	return foreign.Machine{OS: runtime.GOOS, Home: discover.DefaultPaths().Home, Dir: dir, Lookup: os.LookupEnv}, nil
}

// programNamed returns the program of a word, or a usage error with the nearest.
func programNamed(cmd *cobra.Command, word string) (foreign.Format, error) {
	if f := foreign.Format(word); slices.Contains(foreign.Formats, f) {
		return f, nil
	}
	names := programNames()
	if near := messages.Nearest(word, names); near != "" {
		return "", exit.UsageError(cmd, "%q is no program known here; did you mean %q?", messages.Line(word, 40), near)
	}
	return "", exit.UsageError(cmd, "%q is no program known here; known are %s", messages.Line(word, 40), strings.Join(names, ", "))
}

// programNames returns the words for all programs.
func programNames() (names []string) {
	for _, f := range foreign.Formats {
		names = append(names, string(f))
	}
	return names
}

// completeProgram offers the programs to the shell.
func completeProgram(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return programNames(), cobra.ShellCompDirectiveNoFileComp
}

// oneProgram refuses all but one argument.
func oneProgram(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.UsageError(cmd, "name one program: %s", strings.Join(programNames(), ", "))
	}
	return nil
}
