package plan

import (
	"maps"
	"reflect"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Decision is the configuration that should be in force, and how it differs from the one before.
type Decision struct {
	// Set is the whole of it: servers, policies, what hides what. Its problems are those of the files as they are now, also of
	// files whose earlier content still counts.
	config.Set
	// Changes lead here from the decision before.
	config.Changes
	// Remarks say, by server, why it keeps a spec that its file does not have any more.
	Remarks map[string]string
	// Held are the servers that wait for the person's approval, sorted.
	Held []string
	// Rules says that the rules about calls, the policies, or the treatment of changed tools differ from before.
	Rules bool
	// Restart are the keys beside the servers that differ from the beginning and that a running manager cannot apply, sorted.
	Restart []string
}

// makeDecision merges the contents that count, and compares the result with the decision before.
func (b Tracker) makeDecision(approve func(config.Set) config.Set) Decision {
	var files []config.Parsed
	for _, p := range b.files {
		if p.inForce != nil {
			files = append(files, *p.inForce)
		}
	}
	files = append(files, b.rules.Fixed...)
	d := Decision{Set: config.Merge(files, b.rules.Context), Remarks: map[string]string{}}
	if approve != nil {
		d.Set = approve(d.Set)
	}
	d.Specs = maps.Clone(d.Specs)
	if b.rules.Omit != nil {
		b.rules.Omit(files, d.Specs)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Specs)) {
		if kept, remark := b.keptSpec(name, d.Specs[name], files); remark != "" {
			kept.Remark = remark
			d.Specs[name], d.Remarks[name] = kept, remark
		} else if d.Specs[name].Hold != "" && d.Specs[name].Invalid == "" {
			d.Held = append(d.Held, name)
		}
	}
	d.Problems = b.currentProblems(d.Problems)
	d.Changes = config.Compare(b.decision.Specs, d.Specs)
	d.Rules = !reflect.DeepEqual(d.Policies, b.decision.Policies) || !sameRules(d.Permissions, b.decision.Permissions) ||
		d.Pin != b.decision.Pin
	d.Restart = b.restartKeys(d.Set)
	return d
}

// sameRules reports whether rules decide the same, wherever they are written: a moved line is no change.
func sameRules(a, b access.Rules) bool {
	for _, set := range []*access.Set{&a.Managed, &a.Own, &b.Managed, &b.Own} {
		set.DefaultSource, set.Rules = access.Source{}, slices.Clone(set.Rules)
		for i := range set.Rules {
			set.Rules[i].Source = access.Source{}
		}
	}
	return reflect.DeepEqual(a, b)
}

// restartKeys names the keys that differ from the beginning and cannot be followed: the audit log stays where it is, an address is
// taken once, and the ability to sample was announced to the servers that are connected.
func (b Tracker) restartKeys(now config.Set) (keys []string) {
	if b.initial == nil {
		return nil
	}
	if !reflect.DeepEqual(now.Audit, b.initial.Audit) {
		keys = append(keys, "audit")
	}
	if !slices.Equal(now.SamplingCommand, b.initial.SamplingCommand) {
		keys = append(keys, "samplingCommand")
	}
	if a, b := addressOf(now.Gateway), addressOf(b.initial.Gateway); a != b {
		keys = append(keys, "gateway.listen")
	}
	return keys
}

// addressOf returns what a gateway listens with, which it takes at its beginning.
func addressOf(g *config.Gateway) (address [3]string) {
	if g != nil {
		address = [3]string{g.Listen, g.CertFile, g.KeyFile}
	}
	return address
}

// keptSpec returns the spec that a server keeps because its new one cannot be used, and the remark about it; without a remark the
// new one counts. A broken edit must not stop a server that runs.
func (b Tracker) keptSpec(name string, next messages.Spec, files []config.Parsed) (messages.Spec, string) {
	was, known := b.decision.Specs[name]
	if !known || isUnusable(was) || !isUnusable(next) {
		return next, ""
	}
	managed := func(s messages.Spec) bool { return s.Scope == messages.ScopeManaged }
	// The old spec is kept only while its file still has an entry of this name; a removed entry ends the server.
	still := slices.ContainsFunc(files, func(f config.Parsed) bool {
		_, ok := f.Servers[name]
		return ok && f.Path == was.Source && f.Scope == was.Scope
	})
	if !still || managed(next) != managed(was) {
		return next, ""
	}
	was.Disabled = was.Disabled || next.Disabled
	if next.Invalid != "" {
		return was, "its entry cannot be used: " + next.Invalid + "; it goes on as it was"
	}
	return was, "its entry is not applied: " + next.Hold + "; it goes on as it was"
}

// isUnusable reports whether a spec cannot start its server, by what its files say.
func isUnusable(s messages.Spec) bool { return s.Invalid != "" || s.Hold != "" }

// currentProblems returns the problems of the contents that count; for a file that is broken or gone, its present problems.
// A file that may be half-written is not reported yet.
func (b Tracker) currentProblems(all []config.Problem) []config.Problem {
	var now []config.Problem
	for _, p := range b.files {
		switch {
		case !p.since.IsZero():
			all = slices.DeleteFunc(slices.Clone(all), func(q config.Problem) bool { return q.File == p.path })
			if p.graceOver {
				now = append(now, p.latest.Problems...)
			}
		case p.inForce == nil:
			now = append(now, p.latest.Problems...)
		}
	}
	return append(now, all...)
}

// Quiet reports whether a decision changes and reports nothing new.
func (d Decision) Quiet(before Decision) bool {
	return d.Changes.None() && slices.Equal(d.Problems, before.Problems) && maps.Equal(d.Remarks, before.Remarks) &&
		slices.Equal(d.Held, before.Held) && slices.Equal(d.Restart, before.Restart) && !d.Rules &&
		reflect.DeepEqual(d.Gateway, before.Gateway)
}
