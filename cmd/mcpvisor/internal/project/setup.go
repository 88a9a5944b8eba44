package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// Setup holds everything that the command line and the files of a project say. It is read once at the start of a command; only
// up reads again, through supervisor.
type Setup struct {
	discover.Configuration
	// Pins remembers the definitions of tools as they were first seen. It is never nil, even if its file cannot be opened.
	Pins *pins.Store
	// Origin is a hash of what --config and --mcp-server named; empty if neither was given. A running up with another origin
	// has other servers and cannot answer.
	Origin string
}

// LoadSetup reads the configuration. It returns an error only if nothing is left to work with: a wrong flag, a named file that
// cannot be read, or files of which none can. Every other problem stays in the setup, whose servers exist and say what is
// wrong. The setup is nil only if the command line itself is wrong; otherwise a caller that finds a running up may go on with
// it in spite of the error.
func LoadSetup(o *cli.Options) (*Setup, error) { return LoadSetupOf(o, Selection{}) }

// Selection says for which directory and variables a setup is, for a process that has the servers of several. The zero value means the
// working directory and the variables of this process.
type Selection struct {
	Dir    string
	Lookup func(string) (string, bool)
	// MayBeGone, UserOnly and Omit are those of discover.Options.
	MayBeGone, UserOnly bool
	Omit                func(files []config.Parsed, specs map[string]messages.Spec, ctx config.Context)
}

// LoadSetupOf does the work of LoadSetup for a selection.
func LoadSetupOf(o *cli.Options, chosen Selection) (*Setup, error) {
	found, err := readFiles(o.Ctx, discover.Options{
		Dir: chosen.Dir, MayBeGone: chosen.MayBeGone, Lookup: chosen.Lookup, UserOnly: chosen.UserOnly, Omit: chosen.Omit,
		Files: o.Configs, Servers: o.Servers, Only: o.Only, Stdin: o.In, ApproveAll: o.Approve,
	})
	if err != nil {
		return nil, err
	}
	s := &Setup{Configuration: found, Origin: originOf(o)}
	if err := o.Audit.CheckConflicts(s.Audit); err != nil {
		return nil, err
	}
	// A pin store that cannot be opened must not keep servers from starting; the command goes on without the memory.
	if s.Pins, err = pins.Open(control.PinsPath()); err != nil {
		o.WarnFailure(err)
	}
	// A file that the person named (dynamic scope) must be readable. Any other broken file is fatal only if all files are.
	var broken []string
	for _, f := range s.Files {
		if f.Broken && (f.Scope == messages.ScopeDynamic || s.Unreadable()) {
			broken = append(broken, problemsOf(found, f.Path)...)
		}
	}
	if len(broken) > 0 {
		return s, exit.With(exit.Usage, strings.Join(broken, "\nmcpvisor: "))
	}
	return s, nil
}

// readFiles reads the configuration until the command is interrupted. Reading can block for ever: standard input may stay open,
// a file may lie on a network disk that does not answer. The goroutine cannot be cancelled then and ends with the process; it
// holds nothing but the answer channel, which has room for its one value.
func readFiles(ctx context.Context, o discover.Options) (discover.Configuration, error) {
	if ctx == nil {
		return discover.Load(o)
	}
	type answer struct {
		found discover.Configuration
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("reading the configuration has failed")}
		defer func() {
			if p := recover(); p != nil {
				a.err = fmt.Errorf("reading the configuration has failed: %v", p)
			}
			done <- a
		}()
		a.found, a.err = discover.Load(o)
	}()
	select {
	case a := <-done:
		return a.found, a.err
	case <-ctx.Done():
		return discover.Configuration{}, exit.With(exit.Interrupted, "interrupted while the configuration was read")
	}
}

// UnreadableError returns the error about configuration files that cannot be read although others can, or nil if there are
// none. Commands about all servers end with it, because their answer may be incomplete.
func (s *Setup) UnreadableError() error {
	faults := UnreadableFiles(s.Configuration)
	if len(faults) == 0 {
		return nil
	}
	return exit.With(exit.Usage, strings.Join(faults, "\nmcpvisor: "))
}

// UnreadableFiles returns why files of a configuration cannot be read, as sentences; nothing if all can.
func UnreadableFiles(found discover.Configuration) (faults []string) {
	for _, f := range found.Files {
		if f.Broken {
			faults = append(faults, problemsOf(found, f.Path)...)
		}
	}
	return faults
}

// problemsOf returns the errors of one file as sentences, without its warnings.
func problemsOf(found discover.Configuration, path string) []string {
	var out []string
	for _, p := range found.Problems {
		if p.File == path && !p.Warning {
			out = append(out, p.Error())
		}
	}
	return out
}

// originOf returns a hash that tells command lines apart that name other servers: Open compares it with the running
// up's. It is a hash because --mcp-server values may hold tokens and the origin is readable on the control socket.
func originOf(o *cli.Options) string {
	if len(o.Configs)+len(o.Servers) == 0 {
		return ""
	}
	h := sha256.New()
	for _, path := range o.Configs {
		// Two commands may name the same file from different directories.
		if abs, err := filepath.Abs(path); err == nil && path != "-" {
			path = abs
		}
		fmt.Fprintf(h, "config %q\n", path)
	}
	for _, server := range o.Servers {
		fmt.Fprintf(h, "server %q\n", server)
	}
	if o.Only {
		fmt.Fprintln(h, "only")
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// ManagerConfig returns the configuration to start a manager of these servers with. The logger and the guardian are missing;
// StartManager adds them. The map of servers is a copy, so that the caller may remove or tune entries.
func (s *Setup) ManagerConfig(o *cli.Options) supervisor.Config {
	cfg := supervisor.Config{Servers: maps.Clone(s.Specs), Managed: s.Policies, Access: s.Permissions, InheritEnv: o.InheritEnv}
	// Without a cache directory the manager runs all the same; it only forgets catalogs between runs.
	if dir, err := os.UserCacheDir(); err == nil {
		cfg.CacheDir = filepath.Join(dir, "mcpvisor", "tools")
	}
	cfg.Pins, cfg.Pin, cfg.LeastPin = s.Pins, s.Pin.Own, s.Pin.Least
	s.enableAudit(o, &cfg)
	if o.Prompter != nil { // tests that ask nothing have none
		o.Prompter.SetRequestHandlers(&cfg, &o.AskFlags, s.SamplingCommand)
	}
	return cfg
}

// ServerNames returns the names of the configured servers, sorted.
func (s *Setup) ServerNames() []string { return slices.Sorted(maps.Keys(s.Specs)) }

// PrintProblems prints the problems of entries and files to standard error, where they stop no command. With --json errors go
// through WarnFailure into the one object at the end; with --quiet warnings are left out.
func (s *Setup) PrintProblems(o *cli.Options) {
	for _, p := range s.Problems {
		switch {
		case p.Warning && o.Quiet:
		case !p.Warning && o.JSON:
			o.WarnFailure(p)
		default:
			fmt.Fprintln(o.Err, p.Error())
		}
	}
}

// NoServersText says where servers could be configured, for a project that has none; it returns "" if there are some.
func (s *Setup) NoServersText() string {
	if len(s.Specs) > 0 {
		return ""
	}
	text := "no MCP server is configured: there is no .mcp.json in " + s.ProjectDir
	if user := discover.DefaultPaths().User; len(s.Files) > 0 {
		paths := make([]string, len(s.Files))
		for i, f := range s.Files {
			paths[i] = f.Path
		}
		text = "no MCP server is configured in " + strings.Join(paths, ", ")
	} else if user != "" {
		text += ", and no " + user
	}
	// A configuration file in a parent directory is a common surprise: it does not count unless one git repository holds both.
	if above := discover.FileAbove(s.ProjectDir); above != "" {
		text += "; " + above + " does not count here, because no git repository holds both: mcpvisor --dir " +
			terminal.ShellWord(filepath.Dir(above)) + " uses it"
	}
	return text
}

// AddServerHint follows the error where nothing is configured, and names the two ways to get a server.
const AddServerHint = "; add one with mcpvisor add NAME COMMAND…, or see which ones other programs have with mcpvisor import --dry-run"

// UnknownServerError returns the error about a server that is not configured: its Fix is the nearest configured name, else the
// list of names, else where a configuration could be. s may be nil if no setup was read.
func UnknownServerError(op, server string, names []string, s *Setup) error {
	e := &messages.Error{Op: op, Class: messages.ClassInvalid, Err: messages.ErrUnknownServer,
		Text: fmt.Sprintf("no server is configured as %q", messages.Line(server, 80))}
	switch near := messages.Nearest(server, names); {
	case near != "":
		e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(near, 80))
	case len(names) > 0:
		e.Fix = "configured are " + terminal.JoinNames(names)
	case s != nil && s.NoServersText() != "":
		e.Fix = s.NoServersText()
	}
	return e
}
