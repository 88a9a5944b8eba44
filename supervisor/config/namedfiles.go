package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// NamedFiles returns the paths inside dir that a spec's command, arguments, directory and credentials may name, relative to
// dir, with slashes and sorted. It does not look whether they exist; bindCandidate keeps the ones that do. An argument counts
// whole, and so does each part of it between signs that join paths with something else: "--config=./a.js", "src:/dst".
func NamedFiles(s messages.Spec, dir string) []string {
	if dir == "" {
		return nil
	}
	// Relative words count from the directory in which the process runs.
	at := dir
	if s.Cwd != "" {
		at = s.Cwd
	}
	var names []string
	// look adds one word if it names a path below dir. URLs and texts of several lines are no paths, and no system accepts a
	// path of more than 4096 bytes.
	look := func(base, word string) {
		if word == "" || len(word) > 4096 || strings.Contains(word, "://") || strings.ContainsAny(word, "\x00\n") {
			return
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(base, word)
		}
		// Only files inside the project are bound: the approval shows where they lie, and others are not the
		// repository's.
		rel, err := filepath.Rel(dir, filepath.Clean(word))
		if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return
		}
		names = append(names, filepath.ToSlash(rel))
	}
	// words tries each text as a whole, because a path may hold spaces, and then its parts.
	words := func(base string, all ...string) {
		for _, word := range all {
			look(base, word)
			for _, part := range strings.FieldsFunc(word, func(c rune) bool { return strings.ContainsRune("@:=,; \t'\"()|&<>", c) }) {
				look(base, part)
			}
		}
	}
	if s.Kind() == messages.Stdio {
		// A program without a slash comes from PATH and is no file of the project.
		if strings.ContainsAny(s.Command, `/\`) {
			words(at, s.Command)
		}
		words(at, s.Args...)
		words(at, s.Cwd)
	}
	if a := s.Auth; a != nil {
		// Commands and files of auth count from the project, whatever cwd is.
		words(dir, a.Command)
		words(dir, a.Args...)
		words(dir, a.TokenPath, a.ClientKeyFile)
	}
	if t := s.TLS; t != nil {
		words(dir, t.CAFile, t.CertFile, t.KeyFile)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
