package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// NamedFiles are the paths in dir that a spec's command, arguments, directory and credentials may name, relative to it and with
// slashes, sorted. Whether they are there is not looked at. An argument counts whole, and each part that follows one of @ : = and
// comma: "--config=./a.js", "src:/dst".
func NamedFiles(s messages.Spec, dir string) []string {
	if dir == "" {
		return nil
	}
	at := dir
	if s.Cwd != "" {
		at = s.Cwd
	}
	var names []string
	look := func(base, word string) {
		if word == "" || len(word) > 4096 || strings.Contains(word, "://") || strings.ContainsAny(word, "\x00\n") {
			return
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(base, word)
		}
		rel, err := filepath.Rel(dir, filepath.Clean(word))
		if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return
		}
		names = append(names, filepath.ToSlash(rel))
	}
	words := func(base string, all ...string) {
		for _, word := range all {
			look(base, word)
			for _, part := range strings.FieldsFunc(word, func(c rune) bool { return strings.ContainsRune("@:=,; \t'\"()|&<>", c) }) {
				look(base, part)
			}
		}
	}
	if s.Kind() == messages.Stdio {
		if strings.ContainsAny(s.Command, `/\`) {
			words(at, s.Command)
		}
		words(at, s.Args...)
		words(at, s.Cwd)
	}
	if a := s.Auth; a != nil {
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
