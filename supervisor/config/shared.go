package config

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// This file tells the servers that several projects can share from those that belong to one: a server of the user's files, or of the
// organisation's, is shared if it means the same everywhere.

// OmitShared removes from specs, which come from files, the servers that a manager of the user's files has: those whose entry means
// under elsewhere, the context of that manager, exactly what it means here, that of the specs. Servers of a project's files stay, and so do those with
// another value of a variable, whose command is another program, or that name the project's folder.
func OmitShared(files []Parsed, specs map[string]messages.Spec, here, elsewhere Context) {
	there := SharedSpecs(files, elsewhere)
	for name, spec := range specs {
		if other, ok := there[name]; ok && sameServer(other, spec) && sameCredential(spec, here, elsewhere) && programOf(spec, here) == programOf(spec, elsewhere) {
			delete(specs, name)
		}
	}
}

// sameCredential reports whether the variable that a spec names under auth has one value under both contexts.
func sameCredential(spec messages.Spec, a, b Context) bool {
	if spec.Auth == nil || spec.Auth.FromEnv == "" {
		return true
	}
	value, ok := a.lookup(spec.Auth.FromEnv)
	other, there := b.lookup(spec.Auth.FromEnv)
	return ok == there && value == other
}

// programOf returns the file that is the program of a spec, as the context finds it; "" where the entry alone decides.
func programOf(spec messages.Spec, ctx Context) string {
	if command := CommandToFind(spec); command != "" && ctx.Program != nil {
		return ctx.Program(command)
	}
	return ""
}

// CommandToFind returns the command of a spec that is looked for in the directories of PATH; "" if it has none, names a file, or has
// a PATH of its own.
func CommandToFind(spec messages.Spec) string {
	if _, own := spec.Env["PATH"]; own || spec.Kind() != messages.Stdio || strings.ContainsAny(spec.Command, `/\`) {
		return ""
	}
	return spec.Command
}

// lookup returns a variable; without Lookup none is set.
func (c Context) lookup(name string) (string, bool) {
	if c.Lookup == nil {
		return "", false
	}
	return c.Lookup(name)
}

// OmitProjectBound removes from specs, which come from files, the servers that mean something else in each project: those that name its
// folder. ctx is the context of the specs, without a project.
func OmitProjectBound(files []Parsed, specs map[string]messages.Spec, ctx Context) {
	ctx.ProjectDir = someProject
	bound := SharedSpecs(files, ctx)
	for name, spec := range specs {
		if other, ok := bound[name]; !ok || !sameServer(other, spec) {
			delete(specs, name)
		}
	}
}

// someProject stands for the folder of any project.
const someProject = "/\u0001project"

// SharedSpecs returns the servers of the files that belong to no project, as they are under a context.
func SharedSpecs(files []Parsed, ctx Context) map[string]messages.Spec {
	files = slices.DeleteFunc(slices.Clone(files), func(p Parsed) bool {
		return p.Scope != messages.ScopeUser && p.Scope != messages.ScopeManaged
	})
	return Merge(files, ctx).Specs
}

// sameServer reports whether two specs are one server: the same entry with the same values.
func sameServer(a, b messages.Spec) bool {
	return a.Scope == b.Scope && a.Source == b.Source && a.Disabled == b.Disabled && a.Invalid == b.Invalid && a.Equal(b)
}

// VariablesOf returns the names of the variables that an entry of a file mentions, in the order of their first use, whether they are
// set or not.
func VariablesOf(p Parsed, name string, ctx Context) (names []string) {
	entry, ok := p.Servers[name]
	if !ok {
		return nil
	}
	ctx.Lookup = func(variable string) (string, bool) {
		if !slices.Contains(names, variable) {
			names = append(names, variable)
		}
		return "", false
	}
	p.Servers = map[string]Entry{name: entry}
	spec := Merge([]Parsed{p}, ctx).Specs[name]
	if spec.Auth != nil && spec.Auth.FromEnv != "" {
		ctx.Lookup(spec.Auth.FromEnv)
	}
	return names
}
