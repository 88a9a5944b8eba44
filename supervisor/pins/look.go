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

// Look compares the tools of a server with their pins, and pins those that are new. list identifies the list, the zero value
// does not: of an equal one nothing is learned, and it costs nothing if the pins are as they were. The result must not be
// changed, nor the tools.
func (s *Store) Look(key string, list [sha256.Size]byte, tools []messages.Tool) Findings {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.looks[key]
	same := known && list != [sha256.Size]byte{} && l.list == list
	switch {
	case same && l.turn == s.turn:
		return l.answer
	case s.unread != nil:
		f := Findings{Err: s.unread}
		for i := range tools {
			f.Unkept = append(f.Unkept, tools[i].Name)
		}
		s.looks[key] = look{turn: s.turn, answer: f} // of no list: it is learned from when the file can be read
		return f
	case !same:
		l = s.learn(key, tools)
		l.list = list
	}
	l.turn, l.answer = s.turn, s.findings(key, l, tools)
	s.looks[key] = l
	return l.answer
}

// learn takes in a list that was not seen before.
func (s *Store) learn(key string, tools []messages.Tool) look {
	all := make([]sighting, len(tools))
	l := look{hashes: make(map[string]string, len(tools))}
	for i := range tools {
		all[i].tool = &tools[i]
		if raw := tools[i].Raw; len(raw) > 0 {
			sum := sha256.Sum256(raw)
			all[i].raw = hex.EncodeToString(sum[:16])
		}
	}
	changed, full := s.now.take(key, all, l.hashes)
	l.full = full
	if changed && s.path != "" {
		s.waiting = append(s.waiting, func(b book) { b.take(key, all, nil) })
		s.begin()
	}
	return l
}

var (
	errFull = &messages.Error{Op: "pins", Class: messages.ClassExhausted, Text: "the pins of 1,024 servers are kept already",
		Fix: "remove servers that you do not use any more: mcpvisor remove"}
	errMany = &messages.Error{Op: "pins", Class: messages.ClassExhausted,
		Text: "of one server the pins of 16,384 tools are kept, and it has more"}
)

// findings are what the pins say of a list. What another process has seen of the same server meanwhile does not count: only what
// was approved does.
func (s *Store) findings(key string, l look, tools []messages.Tool) (f Findings) {
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
				d := Of(&tools[i])
				c.New = &d
			}
			f.Changes = append(f.Changes, c)
		case s.unwritten != nil && s.saved[key][name] == nil:
			f.Unkept, f.Err = append(f.Unkept, name), s.unwritten
		}
	}
	if p, hash := k[beyond], l.hashes[beyond]; p != nil && hash != "" && !slices.Contains(p.Approved, hash) {
		f.Changes = append(f.Changes, Change{Tool: beyond, Hash: hash})
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
	s.awaited = s.awaited || len(names) > 0
	return names
}

func sortChanges(all []Change) {
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
}

// Changes are those of a server that wait for an approval, sorted by tool.
func (s *Store) Changes(key string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes(key)
}

func (s *Store) changes(key string) (all []Change) {
	for name, p := range s.now[key] {
		if p.Now != "" && !p.Gone {
			all = append(all, p.change(name))
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
	gone := map[string]string{}
	k := s.now[key]
	for _, name := range sortedNames(k) {
		if p := k[name]; p.Gone && !p.Noted && len(p.Approved) > 0 {
			gone[p.Approved[len(p.Approved)-1]] = name
			t.Removed = append(t.Removed, name)
		}
	}
	for _, name := range sortedNames(k) {
		p := k[name]
		if !p.Later || p.Gone {
			continue
		}
		old, same := gone[p.Means]
		if !same {
			t.Added = append(t.Added, name)
			continue
		}
		delete(gone, p.Means)
		if t.Renamed == nil {
			t.Renamed = map[string]string{}
		}
		t.Renamed[old] = name
		t.Removed = slices.DeleteFunc(t.Removed, func(r string) bool { return r == old })
	}
	return t
}

func sortedNames(k known) []string {
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
	all := s.changes(key)
	s.change(func(b book) {
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
	for _, c := range s.changes(key) {
		if slices.ContainsFunc(seen, func(o Change) bool { return o.Tool == c.Tool && o.Hash == c.Hash }) {
			accepted, approved = append(accepted, c), append(approved, c.Tool)
		} else {
			unseen = append(unseen, c.Tool)
		}
	}
	s.change(func(b book) {
		for _, c := range accepted {
			b.approve(key, c.Tool, c.Hash, c.New)
		}
		if k := b[key]; k != nil && len(unseen) == 0 { // and what came and went is known
			for _, p := range k {
				p.Later, p.Noted = false, p.Gone
			}
		}
	})
	if len(accepted) > 0 {
		s.turn++
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
	s.change(func(b book) { delete(b, key) })
	delete(s.looks, key)
	s.turn++
	s.mu.Unlock()
	return s.Flush()
}

// Fault is why the pins cannot be read or written; nil if they can.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.unread, s.unwritten)
}
