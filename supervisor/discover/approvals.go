package discover

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Approvals remembers which servers of which files the person approved, by the hash of the whole config.Binding of
// each. It is not safe for concurrent use; processes that write the store at the same time do not lose each other's
// approvals.
type Approvals struct {
	// path is the file of the store; empty if there is no place for one.
	path string
	// store is the content as it was last read or written.
	store approvalStore
}

// LoadApprovals reads the store at path. A missing file and an empty path give an empty store. An unreadable one, and
// one that other users may write, comes with an error and approves nothing; the result is usable all the same.
func LoadApprovals(path string) (*Approvals, error) {
	s, err := readStore(path)
	return &Approvals{path: path, store: s}, err
}

// merelyFound reports whether specs of a scope come from files that were merely found in the project. Local files are
// among them, because a repository can carry one.
func merelyFound(s messages.Scope) bool {
	return s == messages.ScopeProject || s == messages.ScopeLocal
}

// Apply returns the set with Hold set on every server that was merely found and is not approved as it stands. Where the
// person has an own entry of that name below, that entry counts in its place. From an approved server it removes what
// the approval does not cover: variables that its envFile got since, and trusted, unless the person wrote the entry
// through mcpvisor. The argument is not changed.
func (a *Approvals) Apply(set config.Set) config.Set {
	set = cloneSet(set)
	for _, name := range slices.Sorted(maps.Keys(set.Found)) {
		all := set.Found[name]
		// The first candidate that needs no approval, or has one, starts. The last candidate is the person's own if
		// there is one.
		i := slices.IndexFunc(all, func(c config.Candidate) bool { return c.Binding == nil || a.holdReason(c) == "" })
		// The top entry is not the one that starts, so that it waits.
		if i != 0 {
			set.Waiting[name] = all[0]
		}
		// No entry of the name may start. The held one stays in the set, so that the status shows it.
		if i < 0 {
			spec := all[0].Spec
			spec.Hold = a.holdReason(all[0]) + "; look at " + spec.Source + " and run `mcpvisor approve " + quoteArgument(name) + "`"
			set.Specs[name] = spec
			continue
		}
		if i > 0 {
			set = useInstead(set, name, all[i])
		}
		if c := all[i]; c.Binding != nil {
			set = a.admitApproved(set, name, c)
		}
	}
	return markTakenNames(set)
}

// cloneSet returns the set with copies of the maps and lists that Apply changes.
func cloneSet(set config.Set) config.Set {
	set.Specs, set.Shadowed = maps.Clone(set.Specs), slices.Clone(set.Shadowed)
	set.Waiting, set.Stale = map[string]config.Candidate{}, map[string][]string{}
	return set
}

// useInstead makes a lower entry of a server count in the place of the one that waits, and turns their Shadow around.
func useInstead(set config.Set, name string, c config.Candidate) config.Set {
	waitingSource := set.Found[name][0].Spec.Source
	set.Specs[name] = c.Spec
	set.Problems = slices.Concat(set.Problems, c.Problems)
	for i, s := range set.Shadowed {
		if s.Server == name && s.Winner == waitingSource && s.Loser == c.Spec.Source {
			set.Shadowed[i] = config.Shadow{Server: name, Winner: s.Loser, Loser: waitingSource, Reason: "it waits for an approval"}
		}
	}
	return set
}

// admitApproved returns the set with an approved entry, without the parts that the approval does not cover. It records
// the changes since the approval in Stale and in the Remark of the spec.
func (a *Approvals) admitApproved(set config.Set, name string, c config.Candidate) config.Set {
	spec, r := c.Spec, a.recordOf(*c.Binding)
	var stale []string
	var dropped []string
	// The binding holds the names of the variables; one that came later was never shown to the person.
	for _, v := range c.FromFile {
		if !slices.Contains(r.Variables, v) {
			dropped = append(dropped, v)
		}
	}
	if len(dropped) > 0 {
		spec.Env = maps.Clone(spec.Env)
		for _, v := range dropped {
			delete(spec.Env, v)
		}
		stale = append(stale, "its envFile has variables since that it does not get: "+messages.Line(strings.Join(dropped, ", "), 200))
	}
	// The server starts all the same, unless the entry asks for files: holdReason has decided that.
	if changed := changedFiles(r.Sums, c.Sums); len(changed) > 0 {
		stale = append(stale, messages.Line(strings.Join(changed, ", "), 200)+" changed since it was approved")
	}
	// Approving an entry means that it may start, and no more. Trust needs the person's own hand.
	if spec.Trusted && !r.Own {
		spec.Trusted = false
		set.Problems = append(slices.Clone(set.Problems), trustedProblem(name, spec))
	}
	if len(stale) > 0 {
		set.Stale[name] = stale
		spec.Remark = strings.Join(stale, "; ") + "; see: mcpvisor approve " + quoteArgument(name)
	}
	// The person approved this entry over their own one, and should not forget it.
	if hidesOwnEntry(set.Found[name]) {
		text := "it takes the place of your own server of this name, and your allow rules do not count for it"
		if spec.Remark != "" {
			text = spec.Remark + "; " + text
		}
		spec.Remark = text
	}
	set.Specs[name] = spec
	return set
}

// trustedProblem returns the warning about the key trusted in a file that may not have it.
func trustedProblem(name string, spec messages.Spec) config.Problem {
	return config.Problem{File: spec.Source, Server: name, Key: "trusted", Warning: true,
		Text: "a file that was merely found cannot make a server trusted; the key is dropped",
		Fix:  "set it in your own file, or write the entry with mcpvisor add-json --replace"}
}

// hidesOwnEntry reports whether the person has an own entry below those of merely found files.
func hidesOwnEntry(all []config.Candidate) bool {
	return len(all) > 0 && all[len(all)-1].Binding == nil
}

// markTakenNames lists in Permissions.Taken the servers of a project that have the name of one of the person's own. The
// access rules then ignore allow rules for those names, which the person wrote for the other server.
func markTakenNames(set config.Set) config.Set {
	set.Permissions.Taken = nil
	for _, name := range slices.Sorted(maps.Keys(set.Found)) {
		if hidesOwnEntry(set.Found[name]) && merelyFound(set.Specs[name].Scope) {
			set.Permissions.Taken = append(set.Permissions.Taken, name)
		}
	}
	return set
}

// trustNobody returns the set for ApproveAll: servers without an approval start, and trusted is dropped from all of
// them.
func trustNobody(set config.Set) config.Set {
	set = cloneSet(set)
	for name := range set.Found {
		if spec := set.Specs[name]; spec.Trusted && merelyFound(spec.Scope) {
			spec.Trusted = false
			set.Specs[name] = spec
			set.Problems = append(slices.Clone(set.Problems), trustedProblem(name, spec))
		}
	}
	return markTakenNames(set)
}

// recordOf returns the approval of the entry of a binding; the zero record if there is none.
func (a *Approvals) recordOf(b config.Binding) approvalRecord {
	if r, ok := a.store.Files[b.Path][b.Server]; ok {
		return r
	}
	// Version 1 of the store knew files by their path without links.
	if real, err := filepath.EvalSymlinks(b.Path); err == nil {
		// Only a record of version 1 can stand under this path legitimately.
		if r := a.store.Files[real][b.Server]; r.Old {
			return r
		}
	}
	return approvalRecord{}
}

// holdReason returns why a candidate waits, as a clause; empty if it is approved as it stands. The candidate must have
// a Binding.
func (a *Approvals) holdReason(c config.Candidate) string {
	r := a.recordOf(*c.Binding)
	switch {
	case r.Old:
		return "approved by an older mcpvisor, which did not bind the whole entry, its directory, the names in its envFile and its files"
	case r.Hash == "":
		return "found in the project and not approved yet"
	// The hash is compared with the lists of the approval, because changed lists alone do not make the entry wait.
	case c.Binding.WithLists(r.Variables, slices.Collect(maps.Keys(r.Sums))).Hash() != r.Hash:
		return "changed since it was approved"
	}
	if changed := changedFiles(r.Sums, c.Sums); c.Asks && len(changed) > 0 {
		return messages.Line(strings.Join(changed, ", "), 200) + " changed since it was approved"
	}
	return ""
}

// changedFiles returns the names of the files whose sums differ, that are new, or that are gone, sorted and escaped.
func changedFiles(before, now map[string]string) (names []string) {
	for name, sum := range now {
		if old, ok := before[name]; !ok || old != sum {
			names = append(names, messages.Escaped(name))
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			names = append(names, messages.Escaped(name))
		}
	}
	slices.Sort(names)
	return names
}

// AwaitingApproval returns the servers of a set that wait for an approval, sorted. It includes those in whose place one
// of the person's own counts.
func AwaitingApproval(set config.Set) []string { return slices.Sorted(maps.Keys(set.Waiting)) }

// Stale returns the approved servers of a set, sorted, of which something besides the entry has changed: a file, or the
// variables of an envFile.
func Stale(set config.Set) []string { return slices.Sorted(maps.Keys(set.Stale)) }

// ApprovalCandidate returns the entry that an approval of a server would cover: the one that waits, or the one that
// counts. ok is false if the server needs no approval.
func ApprovalCandidate(set config.Set, name string) (c config.Candidate, ok bool) {
	if c, ok := set.Waiting[name]; ok {
		return c, true
	}
	spec := set.Specs[name]
	for _, c := range set.Found[name] {
		if c.Binding != nil && c.Spec.Source == spec.Source && c.Spec.Scope == spec.Scope {
			return c, true
		}
	}
	return c, false
}

// Approve remembers the named servers of the set as they stand in it, and writes the store. The set is what the person
// was shown: if the files have changed since, the servers wait again. A server that needs no approval is skipped.
// Nothing is remembered if a name is unknown (messages.ErrUnknownServer) or the store cannot be written.
func (a *Approvals) Approve(set config.Set, names ...string) error {
	return a.approveServers(set, false, names)
}

// ApproveOwn does the work of Approve for entries that the person has just written through mcpvisor. They may have the
// key trusted.
func (a *Approvals) ApproveOwn(set config.Set, names ...string) error {
	return a.approveServers(set, true, names)
}

// approveServers writes the records of the named servers; own marks them as the person's work.
func (a *Approvals) approveServers(set config.Set, own bool, names []string) error {
	// All names are checked before the store is touched.
	for _, name := range names {
		if _, ok := set.Specs[name]; !ok {
			return &messages.Error{Op: "approve", Class: messages.ClassInvalid, Server: name, Text: "no such server",
				Fix: "`mcpvisor config check` shows what is configured", Err: messages.ErrUnknownServer}
		}
	}
	if a.path == "" {
		return a.approveError("there is no place to remember it", "set HOME", nil)
	}
	return a.updateStore(func(now *approvalStore) {
		for _, name := range names {
			c, ok := ApprovalCandidate(set, name)
			if !ok {
				continue
			}
			b := *c.Binding
			previous := now.Files[b.Path][b.Server]
			// A renewed approval keeps the mark if the entry is unchanged and only its files differ.
			stillOwn := previous.Own && b.WithLists(previous.Variables, slices.Collect(maps.Keys(previous.Sums))).Hash() == previous.Hash
			setEntry(&now.Files, b.Path, b.Server, approvalRecord{Hash: b.Hash(), Variables: b.Variables, Sums: c.Sums, Own: own || stillOwn})
			// The mark belongs to the time before the approval.
			deleteEntry(now.Shown, b.Path, b.Server)
		}
	})
}

// MarkShown remembers that the person was shown the named servers. If that cannot be written, the next approval shows
// them again.
func (a *Approvals) MarkShown(set config.Set, names ...string) {
	if a.path == "" {
		return
	}
	_ = a.updateStore(func(now *approvalStore) {
		for _, name := range names {
			if c, ok := ApprovalCandidate(set, name); ok {
				setEntry(&now.Shown, c.Binding.Path, c.Binding.Server, c.Binding.Hash())
			}
		}
	})
}

// WasShown reports whether the person was shown a server as it is now, and whether it was shown at all since its last
// approval.
func (a *Approvals) WasShown(set config.Set, name string) (now, ever bool) {
	c, ok := ApprovalCandidate(set, name)
	if !ok {
		return false, false
	}
	hash := a.store.Shown[c.Binding.Path][c.Binding.Server]
	return hash == c.Binding.Hash(), hash != ""
}

// Owns reports whether the person wrote the entry of a server through mcpvisor, and it is approved as it stands.
func (a *Approvals) Owns(set config.Set, name string) bool {
	c, ok := ApprovalCandidate(set, name)
	return ok && a.holdReason(c) == "" && a.recordOf(*c.Binding).Own
}

// Forget removes the approval of a server of a file, and writes the store if there was one.
func (a *Approvals) Forget(file, name string) error {
	_, hasRecord := a.store.Files[file][name]
	_, hasShown := a.store.Shown[file][name]
	if !hasRecord && !hasShown {
		return nil
	}
	return a.updateStore(func(now *approvalStore) {
		deleteEntry(now.Files, file, name)
		deleteEntry(now.Shown, file, name)
	})
}

// approveError returns an error of the store with a fix.
func (a *Approvals) approveError(text, fix string, err error) error {
	return &messages.Error{Op: "approve", Class: messages.ClassConfig, Text: text, Fix: fix, Err: err}
}

// plainName matches names that need no quotes in a shell.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`) })

// quoteArgument returns a name as a person can type it after a command.
func quoteArgument(name string) string {
	if plainName().MatchString(name) {
		return name
	}
	return strconv.Quote(messages.Printable(name))
}

// filesSignature returns a text that changes when a bound file of the project may have changed. It reads directory
// entries only, because a reload asks for it often.
func (a *Approvals) filesSignature(project string) string {
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(a.store.Files)) {
		dir := filepath.Dir(file)
		// Files of an entry count from the project, and not from .mcpvisor.
		if filepath.Base(dir) == ".mcpvisor" {
			dir = filepath.Dir(dir)
		}
		// The store also holds approvals of other projects.
		if !isBelow(file, project) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(a.store.Files[file])) {
			for _, path := range slices.Sorted(maps.Keys(a.store.Files[file][name].Sums)) {
				fmt.Fprintf(&b, "%s %s\n", path, fileStamp(filepath.Join(dir, filepath.FromSlash(path))))
			}
		}
	}
	return b.String()
}
