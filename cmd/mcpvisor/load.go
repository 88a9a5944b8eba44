package main

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

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// setup is everything that the command line and the files of a project say.
type setup struct {
	discover.Configuration
	// pins remember the definitions of tools; they are not nil.
	pins *pins.Store
	// origin identifies what was named with --config and --mcp-server; empty if nothing was.
	origin string
}

// loadSetup reads the configuration. The error is one that leaves nothing to work with: a wrong flag, a named file that
// cannot be read, or files of which none can. Everything else stands in the set: its servers exist and say what is
// wrong. The setup is nil only if the command line itself is wrong.
func loadSetup(o *options) (*setup, error) {
	found, err := readFiles(o.ctx, discover.Options{
		Files: o.configs, Servers: o.servers, Only: o.only, Stdin: o.in, ApproveAll: o.approve,
	})
	if err != nil {
		return nil, err
	}
	s := &setup{Configuration: found, origin: originOf(o)}
	if err := o.audit.checkConflicts(s.Audit); err != nil {
		return nil, err
	}
	if s.pins, err = pins.Open(control.PinsPath()); err != nil {
		o.warnFailure(err)
	}
	var broken []string
	for _, f := range s.Files {
		if f.Broken && (f.Scope == messages.ScopeDynamic || s.Unreadable()) {
			broken = append(broken, s.problemsOf(f.Path)...)
		}
	}
	if len(broken) > 0 {
		return s, &exitError{exitUsage, strings.Join(broken, "\nmcpvisor: ")}
	}
	return s, nil
}

// readFiles reads the files until the command is interrupted: standard input may say nothing, a file may lie on a disk that does
// not answer, and somebody else may have written what is slow to read. What still reads then ends with the program.
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
		return discover.Configuration{}, &exitError{exitInterrupted, "interrupted while the configuration was read"}
	}
}

// unreadableError is the error about files that cannot be read, though others can: whoever asks about all servers does not know of
// all. Nil if there is none.
func (s *setup) unreadableError() error {
	var faults []string
	for _, f := range s.Files {
		if f.Broken {
			faults = append(faults, s.problemsOf(f.Path)...)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &exitError{exitUsage, strings.Join(faults, "\nmcpvisor: ")}
}

// problemsOf are the problems of one file, in sentences.
func (s *setup) problemsOf(path string) []string {
	var out []string
	for _, p := range s.Problems {
		if p.File == path && !p.Warning {
			out = append(out, p.Error())
		}
	}
	return out
}

// originOf tells command lines apart that name other servers. The values may hold tokens, so that only a hash is
// shared.
func originOf(o *options) string {
	if len(o.configs)+len(o.servers) == 0 {
		return ""
	}
	h := sha256.New()
	for _, path := range o.configs {
		if abs, err := filepath.Abs(path); err == nil && path != "-" {
			path = abs
		}
		fmt.Fprintf(h, "config %q\n", path)
	}
	for _, server := range o.servers {
		fmt.Fprintf(h, "server %q\n", server)
	}
	if o.only {
		fmt.Fprintln(h, "only")
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// managerConfig is what a manager of these servers is started with. The logger and the guardian are the caller's.
func (s *setup) managerConfig(o *options) supervisor.Config {
	cfg := supervisor.Config{Servers: maps.Clone(s.Specs), Managed: s.Policies, Access: s.Permissions, InheritEnv: o.inheritEnv}
	if dir, err := os.UserCacheDir(); err == nil {
		cfg.CacheDir = filepath.Join(dir, "mcpvisor", "tools")
	}
	cfg.Pins, cfg.Pin, cfg.LeastPin = s.pins, s.Pin.Own, s.Pin.Least
	s.enableAudit(o, &cfg)
	o.setRequestHandlers(&cfg, s.SamplingCommand)
	return cfg
}

// serverNames are the configured servers, sorted.
func (s *setup) serverNames() []string { return slices.Sorted(maps.Keys(s.Specs)) }

// printProblems prints what is wrong without stopping anybody: problems of entries and files, to standard error.
func (s *setup) printProblems(o *options) {
	for _, p := range s.Problems {
		switch {
		case p.Warning && o.quiet:
		case !p.Warning && o.json:
			o.warnFailure(p)
		default:
			fmt.Fprintln(o.err, p.Error())
		}
	}
}

// noServersText says where servers could be configured, for a project that has none; empty if there are some.
func (s *setup) noServersText() string {
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
	if above := discover.FileAbove(s.ProjectDir); above != "" {
		text += "; " + above + " does not count here, because no git repository holds both: mcpvisor --dir " +
			shellWord(filepath.Dir(above)) + " uses it"
	}
	return text
}

// addServerHint is what to do where nothing is configured.
const addServerHint = "; add one with mcpvisor add NAME COMMAND…, or see which ones other programs have with mcpvisor import --dry-run"

// unknownServerError is the error about a server that nobody configured.
func unknownServerError(op, server string, names []string, s *setup) error {
	e := &messages.Error{Op: op, Class: messages.ClassInvalid, Err: messages.ErrUnknownServer,
		Text: fmt.Sprintf("no server is configured as %q", messages.Line(server, 80))}
	switch near := messages.Nearest(server, names); {
	case near != "":
		e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(near, 80))
	case len(names) > 0:
		e.Fix = "configured are " + joinNames(names)
	case s != nil && s.noServersText() != "":
		e.Fix = s.noServersText()
	}
	return e
}

// joinNames is a list of names for a sentence, cut when it is long.
func joinNames(names []string) string {
	const most = 8
	shown := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			shown = append(shown, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		shown = append(shown, messages.Line(name, 60))
	}
	return strings.Join(shown, ", ")
}
