package pins

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Findings are what Look finds.
type Findings struct {
	// Changes are the tools with a definition that waits for an approval, sorted by tool.
	Changes []Change
	// Unkept are the tools of which nothing is remembered, and Err why. Whether they have changed cannot be said, now or later.
	Unkept []string
	Err    error
}

// Compare compares the tools of a server with their pins, and pins those that are new. list identifies the list, the zero value
// does not: of an equal one nothing is learned, and it costs nothing if the pins are as they were. The result must not be
// changed, nor the tools.
func (s *Store) Compare(key string, list [sha256.Size]byte, tools []messages.Tool) Findings {
	s.mu.Lock()
	defer s.mu.Unlock()
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
		s.compared[key] = comparedList{revision: s.revision, answer: f} // of no list: it is learned from when the file can be read
		return f
	case !same:
		l = s.learnList(key, tools)
		l.list = list
	}
	l.revision, l.answer = s.revision, s.findingsOf(key, l, tools)
	s.compared[key] = l
	return l.answer
}

// learnList takes in a list that was not seen before.
func (s *Store) learnList(key string, tools []messages.Tool) comparedList {
	all := make([]offeredTool, len(tools))
	l := comparedList{hashes: make(map[string]string, len(tools))}
	for i := range tools {
		all[i].tool = &tools[i]
		if raw := tools[i].Raw; len(raw) > 0 {
			sum := sha256.Sum256(raw)
			all[i].raw = hex.EncodeToString(sum[:16])
		}
	}
	changed, full := s.now.updatePins(key, all, l.hashes)
	l.full = full
	if changed && s.path != "" {
		s.waiting = append(s.waiting, func(b pinsByServer) { b.updatePins(key, all, nil) })
		s.startWriting()
	}
	return l
}

var (
	errFull = &messages.Error{Op: "pins", Class: messages.ClassExhausted, Text: "the pins of 1,024 servers are kept already",
		Fix: "remove servers that you do not use any more: mcpvisor remove"}
	errMany = &messages.Error{Op: "pins", Class: messages.ClassExhausted,
		Text: "of one server the pins of 16,384 tools are kept, and it has more"}
)

// findingsOf are what the pins say of a list. What another process has seen of the same server meanwhile does not count: only what
// was approved does.
func (s *Store) findingsOf(key string, l comparedList, tools []messages.Tool) (f Findings) {
	k := s.now[key]
	for i := range tools {
		name := tools[i].Name
		p, hash := k[name], l.hashes[name]
		switch {
		case p == nil:
			f.Unkept, f.Err = append(f.Unkept, name), errMany
			if l.full {
				f.Err = errFull
			}
		case !slices.Contains(p.Approved, hash):
			c := Change{Tool: name, Old: p.Old, New: p.New, Hash: hash}
			if p.Now != hash {
				d := DefinitionOf(&tools[i])
				c.New = &d
			}
			f.Changes = append(f.Changes, c)
		case s.unwritten != nil && s.saved[key][name] == nil:
			f.Unkept, f.Err = append(f.Unkept, name), s.unwritten
		}
	}
	if p, hash := k[beyondLimit], l.hashes[beyondLimit]; p != nil && hash != "" && !slices.Contains(p.Approved, hash) {
		f.Changes = append(f.Changes, Change{Tool: beyondLimit, Hash: hash})
	}
	sortChanges(f.Changes)
	return f
}

// Unsaved are those of the tools that the file does not hold yet: if the process ends now, nobody knows of them. When they are
// written, Reread says so. None are without a file.
func (s *Store) Unsaved(key string, tools []messages.Tool) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return nil
	}
	for i := range tools {
		if name := tools[i].Name; s.saved[key][name] == nil {
			names = append(names, name)
		}
	}
	s.awaitingSave = s.awaitingSave || len(names) > 0
	return names
}

func sortChanges(all []Change) {
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
}

// Changes are those of a server that wait for an approval, sorted by tool.
func (s *Store) Changes(key string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pendingChanges(key)
}

func (s *Store) pendingChanges(key string) (all []Change) {
	for name, p := range s.now[key] {
		if p.Now != "" && !p.Gone {
			all = append(all, p.pendingChange(name))
		}
	}
	sortChanges(all)
	return all
}

// Turnover is what came and went among the tools of a server since somebody was shown it last, sorted. What went under one
// name and came under another with the same definition is renamed, from the old name to the new one.
type Turnover struct {
	Added   []string          `json:"added,omitempty"`
	Removed []string          `json:"removed,omitempty"`
	Renamed map[string]string `json:"renamed,omitempty"`
}

// Turnover finds it.
func (s *Store) Turnover(key string) (t Turnover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := map[string]string{}
	k := s.now[key]
	for _, name := range sortedNames(k) {
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

func sortedNames(k serverPins) []string {
	names := make([]string, 0, len(k))
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Show is Changes for a person who looks at them now: Approve accepts these.
func (s *Store) Show(key string) ([]Change, error) {
	s.mu.Lock()
	all := s.pendingChanges(key)
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

// Shown are the changes of a server as Show has shown them last, for Approve in another process.
func (s *Store) Shown(key string) (all []Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.now[key] {
		if p.Shown != "" {
			all = append(all, Change{Tool: name, Hash: p.Shown})
		}
	}
	return all
}

// Approve accepts the changes of a server that somebody has seen. unseen are the tools that changed again since then, or
// that are not among them: they go on waiting. With an error nothing is certain: it may not be written.
func (s *Store) Approve(key string, seen []Change) (approved, unseen []string, err error) {
	s.mu.Lock()
	if s.unread != nil {
		defer s.mu.Unlock()
		return nil, nil, s.unread
	}
	var accepted []Change
	for _, c := range s.pendingChanges(key) {
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
		if k := b[key]; k != nil && len(unseen) == 0 { // and what came and went is known
			for _, p := range k {
				p.Later, p.Noted = false, p.Gone
			}
		}
	})
	if len(accepted) > 0 {
		s.revision++
	}
	s.mu.Unlock()
	return approved, unseen, s.Flush()
}

// Forget forgets a server: whoever bears its name next is seen for the first time.
func (s *Store) Forget(key string) error {
	s.mu.Lock()
	if s.now[key] == nil {
		s.mu.Unlock()
		return nil
	}
	s.applyChange(func(b pinsByServer) { delete(b, key) })
	delete(s.compared, key)
	s.revision++
	s.mu.Unlock()
	return s.Flush()
}

// Problem is why the pins cannot be read or written; nil if they can.
func (s *Store) Problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.unread, s.unwritten)
}
