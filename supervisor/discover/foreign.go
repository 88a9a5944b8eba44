package discover

import (
	"io"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// ForeignFile is a file of another program with its entries.
type ForeignFile struct {
	foreign.Location
	config.Parsed
	// Text is the content; nil if the file could not be read.
	Text []byte
}

// ReadForeign reads the files of other programs at these places; missing ones are left out. dir is the directory in
// which the person works, by which some programs sort their servers.
func ReadForeign(locations []foreign.Location, dir string) []ForeignFile {
	var found []ForeignFile
	for _, p := range locations {
		f, ok := readOptional(p.Path)
		if !ok {
			continue
		}
		f.Scope = messages.ScopeUser
		if p.Project {
			f.Scope, f.Dir = messages.ScopeProject, dir
		}
		found = append(found, ForeignFile{p, foreign.Parse(f, foreign.Context{Dir: dir, Format: p.Format}), f.Data})
	}
	return found
}

// ReadNamed reads files that the person named for an import. With an empty format the program is recognised by the
// content. dir is the directory in which the person works.
func ReadNamed(paths []string, stdin io.Reader, format foreign.Format, dir string) []ForeignFile {
	var found []ForeignFile
	for _, path := range paths {
		f, _ := Options{Stdin: stdin}.readNamed(path)
		f.Scope = messages.ScopeUser
		parsed := foreign.Parse(f, foreign.Context{Dir: dir, Format: format})
		found = append(found, ForeignFile{foreign.Location{Format: foreign.Titled(parsed.Program), Path: f.Path}, parsed, f.Data})
	}
	return found
}

// FileOf returns mcpvisor's file for the servers of a scope: user, project or local. It is empty for other scopes, and
// if there is no place.
func FileOf(scope messages.Scope, paths Paths, projectDir string) string {
	switch scope {
	case messages.ScopeUser:
		return paths.User
	case messages.ScopeProject:
		return filepath.Join(projectDir, ".mcp.json")
	case messages.ScopeLocal:
		return filepath.Join(projectDir, ".mcpvisor", "mcp.local.json")
	default:
		return ""
	}
}
