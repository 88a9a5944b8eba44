package pins

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Findings are the result of Compare.
type Findings struct {
	// Changes are the tools whose definition waits for an approval, sorted by tool.
	Changes []Change
	// Unkept are the tools that have no pin, and Err the reason. Whether they have changed cannot be said, now or later.
	Unkept []string
	Err    error
}

// Compare compares the tools of a server with their pins, and pins those that are new. list identifies the list; the zero value
// identifies none. Of a list that was compared before nothing is learned, and the answer costs nothing if the pins are as they
// were. The caller must change neither the result nor the tools. It reads no file.
func (s *Store) Compare(key string, list [sha256.Size]byte, tools []messages.Tool) Findings {
	s.mu.Lock()
	defer s.mu.Unlock()
	// An equal list under equal pins has an equal answer: nearly every call ends here.
	// The last list of each server is kept with its answer.
	l, known := s.compared[key]
	same := known && list != [sha256.Size]byte{} && l.list == list
	switch {
	case same && l.revision == s.revision:
		return l.answer
	case s.unread != nil:
		f := Findings{Err: s.unread}
		for i := range tools {
			f.Unkept = append(f.Unkept, tools[i].Name)
		}
		// The answer is kept without the list's identity: the list is learned from when the file can be read.
		s.compared[key] = comparedList{revision: s.revision, answer: f}
		return f
	case !same:
		l = s.learnList(key, tools)
		l.list = list
	}
	l.revision, l.answer = s.revision, s.findingsOf(key, l, tools)
	s.compared[key] = l
	return l.answer
}

// learnList updates the pins from a list that was not compared before, and has the changes written in the background.
func (s *Store) learnList(key string, tools []messages.Tool) comparedList {
	// Only the digest of a tool's bytes is computed here; its definition is parsed if the digest is new.
	all := make([]offeredTool, len(tools))
	l := comparedList{hashes: make(map[string]string, len(tools))}
	for i := range tools {
		all[i].tool = &tools[i]
		if raw := tools[i].Raw; len(raw) > 0 {
			sum := sha256.Sum256(raw)
			all[i].raw = hex.EncodeToString(sum[:16])
		}
	}
	// The pins in memory are updated at once; the file follows in the background.
	changed, full := s.now.updatePins(key, all, l.hashes)
	l.full = full
	if changed && s.path != "" {
		s.waiting = append(s.waiting, func(b pinsByServer) { b.updatePins(key, all, nil) })
		s.startWriting()
	}
	return l
}

// errFull and errMany are the reasons for which tools have no pin.
var (
	errFull = &messages.Error{Op: "pins", Class: messages.ClassExhausted, Text: "the pins of 1,024 servers are kept already",
		Fix: "remove servers that you do not use any more: mcpvisor remove"}
	errMany = &messages.Error{Op: "pins", Class: messages.ClassExhausted,
		Text: "of one server the pins of 16,384 tools are kept, and it has more"}
)

// findingsOf compares a list with its pins. Another process may have seen other definitions of the same server meanwhile; only
// approvals of it count here.
func (s *Store) findingsOf(key string, l comparedList, tools []messages.Tool) (f Findings) {
	// A server without a place has no pins, so each of its tools is unkept.
	k := s.now[key]
	for i := range tools {
		name := tools[i].Name
		p, hash := k[name], l.hashes[name]
		switch {
		// No pin: the tool is beyond a bound, and nothing can be said about it.
		case p == nil:
			f.Unkept, f.Err = append(f.Unkept, name), errMany
			if l.full {
				f.Err = errFull
			}
		case !slices.Contains(p.Approved, hash):
			// If another process has seen yet another definition, this process shows its own.
			c := Change{Tool: name, Old: p.Old, New: p.New, Hash: hash}
			if p.Now != hash {
				d := DefinitionOf(&tools[i])
				c.New = &d
			}
			f.Changes = append(f.Changes, c)
		// The definition could not be written, so no later run could compare it.
		// The pin exists in memory only, and the file cannot be written.
		case s.unwritten != nil && s.saved[key][name] == nil:
			f.Unkept, f.Err = append(f.Unkept, name), s.unwritten
		}
	}
	// A change among the tools without pins of their own is one change without definitions.
	if p, hash := k[beyondLimit], l.hashes[beyondLimit]; p != nil && hash != "" && !slices.Contains(p.Approved, hash) {
		f.Changes = append(f.Changes, Change{Tool: beyondLimit, Hash: hash})
	}
	sortChanges(f.Changes)
	return f
}

// Unsaved returns those of the tools that the file does not have yet: if the process ends now, they are unknown to the next one.
// Reread reports true when they are written. Without a file it returns none.
func (s *Store) Unsaved(key string, tools []messages.Tool) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A store in memory has no later run that could compare.
	if s.path == "" {
		return nil
	}
	for i := range tools {
		if name := tools[i].Name; s.saved[key][name] == nil {
			names = append(names, name)
		}
	}
	// The answer changes when they are written, so the next write is reported by Reread.
	s.awaitingSave = s.awaitingSave || len(names) > 0
	return names
}

// sortChanges sorts by tool, for people and for tests.
func sortChanges(all []Change) {
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
}

// Changes returns the definitions of a server's tools that wait for an approval, sorted by tool.
func (s *Store) Changes(key string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pendingChanges(key)
}

// pendingChanges leaves out tools that the server no longer offers. The caller holds mu.
func (s *Store) pendingChanges(key string) (all []Change) {
	for name, p := range s.now[key] {
		// A tool that is gone needs no approval before it returns.
		if p.Now != "" && !p.Gone {
			all = append(all, p.pendingChange(name))
		}
	}
	sortChanges(all)
	return all
}

// Turnover describes which tools of a server came and went since the person was last shown them, sorted. A tool that went under one
// name while one with the same definition came under another is renamed, from the old name to the new one.
type Turnover struct {
	Added   []string          `json:"added,omitempty"`
	Removed []string          `json:"removed,omitempty"`
	Renamed map[string]string `json:"renamed,omitempty"`
}

// Turnover compares what the pins know of new and missing tools.
func (s *Store) Turnover(key string) (t Turnover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A removed tool is found by the hash of its definition, which a renamed tool shares.
	// Renaming is only reported, never approved: the new name has a pin of its own.
	removed := map[string]string{}
	k := s.now[key]
	for _, name := range sortedNames(k) {
		// Only an approved tool whose removal the person has not seen yet counts as removed.
		if p := k[name]; p.Gone && !p.Noted && len(p.Approved) > 0 {
			removed[p.Approved[len(p.Approved)-1]] = name
			t.Removed = append(t.Removed, name)
		}
	}
	for _, name := range sortedNames(k) {
		p := k[name]
		if !p.Later || p.Gone {
			continue
		}
		// Each removed tool explains one new one.
		old, same := removed[p.Means]
		if !same {
			t.Added = append(t.Added, name)
			continue
		}
		delete(removed, p.Means)
		if t.Renamed == nil {
			t.Renamed = map[string]string{}
		}
		t.Renamed[old] = name
		t.Removed = slices.DeleteFunc(t.Removed, func(r string) bool { return r == old })
	}
	return t
}

// sortedNames returns the tools in order, so that the result does not depend on the map.
func sortedNames(k serverPins) []string {
	names := make([]string, 0, len(k))
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Show returns Changes for a person who looks at them now, and notes which definitions the person has seen, so that a later process
// can approve exactly these.
func (s *Store) Show(key string) ([]Change, error) {
	s.mu.Lock()
	// What is noted is exactly what is returned.
	all := s.pendingChanges(key)
	// The hash is compared again when the change is made on the file, since another process may have seen a newer definition.
	s.applyChange(func(b pinsByServer) {
		for _, c := range all {
			if p := b[key][c.Tool]; p != nil && p.Now == c.Hash {
				p.Shown = c.Hash
			}
		}
	})
	s.mu.Unlock()
	return all, s.Flush()
}

// Shown returns the changes of a server as Show last returned them, for Approve in another process.
func (s *Store) Shown(key string) (all []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Definitions that were never shown cannot be approved from another process.
	for name, p := range s.now[key] {
		if p.Shown != "" {
			all = append(all, Change{Tool: name, Hash: p.Shown})
		}
	}
	return all
}

// Approve accepts changes that the person has seen. unseen are the tools that have changed again since, or
// that are not among the given changes: they still wait. With an error it is not certain that the approval was written.
func (s *Store) Approve(key string, seen []Change) (approved, unseen []string, err error) {
	s.mu.Lock()
	// Without the file's content no approval can be recorded.
	if s.unread != nil {
		defer s.mu.Unlock()
		return nil, nil, s.unread
	}
	var accepted []Change
	for _, c := range s.pendingChanges(key) {
		// Tool and hash must both be those that the person saw.
		if slices.ContainsFunc(seen, func(o Change) bool { return o.Tool == c.Tool && o.Hash == c.Hash }) {
			accepted, approved = append(accepted, c), append(approved, c.Tool)
		} else {
			unseen = append(unseen, c.Tool)
		}
	}
	s.applyChange(func(b pinsByServer) {
		for _, c := range accepted {
			b.approveTool(key, c.Tool, c.Hash, c.New)
		}
		// If the person has seen all, also the tools that came and went are known now.
		if k := b[key]; k != nil && len(unseen) == 0 {
			for _, p := range k {
				p.Later, p.Noted = false, p.Gone
			}
		}
	})
	// The answers of Compare change with an approval.
	if len(accepted) > 0 {
		s.revision++
	}
	s.mu.Unlock()
	return approved, unseen, s.Flush()
}

// Forget forgets a server: a server that gets its name later is seen for the first time.
func (s *Store) Forget(key string) error {
	s.mu.Lock()
	if s.now[key] == nil {
		s.mu.Unlock()
		return nil
	}
	// A running manager compares the list again and pins it anew.
	s.applyChange(func(b pinsByServer) { delete(b, key) })
	delete(s.compared, key)
	s.revision++
	s.mu.Unlock()
	return s.Flush()
}

// Problem returns why the pins cannot be read or written; nil if they can.
func (s *Store) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.unread, s.unwritten)
}
