package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
)

// model is the catalog as a beginner would write it: mutable maps, rebuilt and compared as a whole.
type model struct {
	generation uint64
	servers    map[string]*modelServer
}

type modelServer struct {
	mark, lost mark
	content    map[string]fact // by the tool's own name
	refused    []string        // names of tools that were listed twice
	isLost     bool
}

// fact is everything that a reader can see of an entry.
type fact struct {
	Description string
	State       State
	Epoch       uint64
	Route       any
}

func (m *model) content() map[string]any {
	all := map[string]any{}
	for id, s := range m.servers {
		for tool, f := range s.content {
			all["tool "+id+" "+tool] = f
		}
		if len(s.refused) > 0 {
			all["refused "+id] = fmt.Sprint(s.refused)
		}
	}
	return all
}

func (m *model) apply(changes []Change) {
	before := m.content()
	for _, c := range changes {
		m.one(c)
	}
	if !reflect.DeepEqual(before, m.content()) {
		m.generation++
	}
}

func (m *model) one(c Change) {
	s, at := m.servers[c.Server], mark{c.Epoch, c.Rev}
	if c.Kind == Forget {
		delete(m.servers, c.Server)
		return
	}
	if c.Kind == Expire {
		if s != nil && s.isLost && s.lost.epoch == c.Epoch && s.lost.rev <= c.Rev {
			s.content, s.refused, s.isLost = nil, nil, false
			if at.after(s.mark) {
				s.mark = at
			}
		}
		return
	}
	if s != nil && !at.after(s.mark) {
		return
	}
	if s == nil {
		s = &modelServer{}
		m.servers[c.Server] = s
	}
	s.mark = at
	switch c.Kind {
	case Announce, Cache:
		state := Live
		if c.Kind == Cache {
			state = Cached
		}
		s.isLost, s.content, s.refused = false, map[string]fact{}, nil
		for _, t := range c.Tools {
			if _, twice := s.content[t.Name]; twice {
				s.refused = append(s.refused, t.Name)
				continue
			}
			s.content[t.Name] = fact{t.Description, state, c.Epoch, c.Route}
		}
		slices.Sort(s.refused)
	case Lose:
		if s.isLost {
			return
		}
		s.isLost, s.lost = true, at
		for tool, f := range s.content {
			f.State, f.Route = Lost, nil
			s.content[tool] = f
		}
	default: // Withdraw
		s.content, s.refused, s.isLost = nil, nil, false
	}
}

// agree compares everything that a reader can see of the snapshot with the model.
func agree(t *rapid.T, s *Snapshot, m *model) {
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if s.Generation() != m.generation {
		t.Fatalf("generation is %d, the model's %d", s.Generation(), m.generation)
	}
	total, remembered := 0, []string{}
	for id, ms := range m.servers {
		remembered = append(remembered, id)
		total += len(ms.content)
		if got := s.servers.get(id).mark; got != ms.mark {
			t.Fatalf("mark of %s is %v, the model's %v", id, got, ms.mark)
		}
		if len(s.Server(id)) != len(ms.content) {
			t.Fatalf("%s has %d entries, the model %d", id, len(s.Server(id)), len(ms.content))
		}
		for tool, want := range ms.content {
			e, ok := s.LookupTool(id, tool)
			if !ok {
				t.Fatalf("%s:%s is missing", id, tool)
			}
			if got := (fact{e.Tool.Description, e.State, e.Epoch, e.Route}); got != want {
				t.Fatalf("%s:%s is %+v, the model's %+v", id, tool, got, want)
			}
			if q, ok := s.Lookup(e.Name); !ok || q != e {
				t.Fatalf("%s is not found by its name", e.Name)
			}
		}
		var refused []string
		for _, q := range s.Refused(id) {
			refused = append(refused, q.Name)
		}
		if !slices.Equal(refused, ms.refused) {
			t.Fatalf("%s refuses %q, the model %q", id, refused, ms.refused)
		}
	}
	slices.Sort(remembered)
	if s.Len() != total || !slices.Equal(s.Remembered(), remembered) {
		t.Fatalf("%d entries of %q, the model has %d of %q", s.Len(), s.Remembered(), total, remembered)
	}
}

func drawChange(t *rapid.T) Change {
	c := Change{
		Kind:   Kind(rapid.IntRange(int(Announce), int(Forget)).Draw(t, "kind")),
		Server: rapid.SampledFrom([]string{"a", "b", "a_", "a__b", "x.y"}).Draw(t, "server"),
		Epoch:  rapid.Uint64Range(0, 4).Draw(t, "epoch"), Rev: rapid.Uint64Range(0, 6).Draw(t, "rev"),
	}
	if c.Kind == Announce || c.Kind == Cache {
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"t", "_t", "u", "b__t", "ü", "v"}), 0, 5).Draw(t,
			"tools") {
			c.Tools = append(c.Tools, messages.Tool{
				Name: name, Description: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "description"),
			})
		}
		c.Route = rapid.SampledFrom([]any{nil, 1, 2}).Draw(t, "route")
	}
	return c
}

// TestRandomWalk applies batches and compares every step with the model; at the end it looks at every snapshot of the
// walk again, because none may have changed.
func TestRandomWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := Empty(messages.Naming{}), &model{servers: map[string]*modelServer{}}
		type moment struct {
			s    *Snapshot
			text string
		}
		var past []moment
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			changes := rapid.SliceOfN(rapid.Custom(drawChange), 0, 5).Draw(t, "changes")
			next, changed := s.Apply(changes...)
			m.apply(changes)
			agree(t, next, m)
			checkStep(t, s, next, changed, changes)
			s = next
			past = append(past, moment{s, dump(s)})
		}
		for _, p := range past {
			if now := dump(p.s); now != p.text {
				t.Fatalf("a snapshot was changed afterwards: it was\n%s\nand is\n%s", p.text, now)
			}
		}
	})
}

// checkStep verifies the invariants of a step, and Diff against sets.
func checkStep(t *rapid.T, old, now *Snapshot, changed bool, changes []Change) {
	d := Diff(old, now)
	switch {
	case changed != (now.Generation() == old.Generation()+1), !changed && now.Generation() != old.Generation():
		t.Fatalf("C7: changed is %v and the generation goes from %d to %d", changed, old.Generation(), now.Generation())
	case !changed && !d.Empty():
		t.Fatalf("C7: the content differs and changed is false: %+v", d)
	case len(changes) == 0 && now != old:
		t.Fatalf("no change at all gives another snapshot")
	}
	touched, forgotten := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		touched[c.Server] = true
		forgotten[c.Server] = forgotten[c.Server] || c.Kind == Forget
	}
	for id, before := range old.servers.all {
		if after := now.servers.get(id); !forgotten[id] && (after == nil || before.mark.after(after.mark)) {
			t.Fatalf("C8: the mark of %s fell", id)
		}
		if !touched[id] && now.servers.get(id) != before {
			t.Fatalf("C9: %s was not mentioned and is not shared", id)
		}
	}
	names := func(s *Snapshot) map[string]*Entry {
		out := map[string]*Entry{}
		for e := range s.All() {
			out[e.Name] = e
		}
		return out
	}
	a, b := names(old), names(now)
	var want Delta
	for e := range old.All() {
		if b[e.Name] == nil {
			want.Removed = append(want.Removed, e.Name)
		}
	}
	for e := range now.All() {
		prev := a[e.Name]
		switch {
		case prev == nil:
			want.Added = append(want.Added, e.Name)
		case prev.Tool.Description != e.Tool.Description:
			want.Changed = append(want.Changed, e.Name)
		case prev.State != e.State || prev.Epoch != e.Epoch || prev.Route != e.Route:
			want.Moved = append(want.Moved, e.Name)
		case prev != e:
			t.Fatalf("C9: %s is the same and was copied", e.Name)
		}
	}
	if !reflect.DeepEqual(d, want) {
		t.Fatalf("Diff is %+v, want %+v", d, want)
	}
}

func dump(s *Snapshot) string {
	out := fmt.Sprintf("generation %d\n", s.Generation())
	for e := range s.All() {
		out += fmt.Sprintf("%s %s:%s %q %v epoch %d route %v\n",
			e.Name, e.Tool.Server, e.Tool.Name, e.Tool.Description, e.State, e.Epoch, e.Route)
	}
	for _, id := range s.Remembered() {
		out += fmt.Sprintf("server %s %v %v\n", id, s.servers.get(id).mark, s.Refused(id))
	}
	return out
}
