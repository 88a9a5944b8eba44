package catalog

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func tools(names ...string) (out []messages.Tool) {
	for _, n := range names {
		out = append(out, messages.Tool{Name: n})
	}
	return out
}

func apply(t *testing.T, s *Snapshot, changes ...Change) *Snapshot {
	t.Helper()
	next, changed := s.Apply(changes...)
	if err := next.Check(); err != nil {
		t.Fatal(err)
	}
	if changed != (next.Generation() != s.Generation()) {
		t.Fatalf("changed is %v, the generation goes from %d to %d", changed, s.Generation(), next.Generation())
	}
	return next
}

// seen is the catalog in one line: "a:t live 1, b:u lost 2".
func seen(s *Snapshot) string {
	var out []string
	for e := range s.All() {
		out = append(out, messages.DisplayName(e.Tool.Server, e.Tool.Name)+" "+e.State.String()+" "+string('0'+rune(e.Epoch)))
	}
	return strings.Join(out, ", ")
}

// TestLateWordsAreDropped tells the stories in which a word overtakes another. Each ends in the same state whatever
// comes late, because what is over is over.
func TestLateWordsAreDropped(t *testing.T) {
	announce := func(epoch, rev uint64, names ...string) Change {
		return Change{Kind: Announce, Server: "a", Epoch: epoch, Rev: rev, Tools: tools(names...), Route: 1}
	}
	say := func(k Kind, epoch, rev uint64) Change { return Change{Kind: k, Server: "a", Epoch: epoch, Rev: rev} }
	for _, c := range []struct {
		name    string
		changes []Change
		want    string
	}{
		{"a late list cannot revive what was withdrawn",
			[]Change{announce(1, 1, "t"), say(Withdraw, 1, 3), announce(1, 2, "t", "u")}, ""},
		{"nor what was withdrawn before it was ever announced",
			[]Change{say(Withdraw, 1, 3), announce(1, 2, "t")}, ""},
		{"a later connection brings them back",
			[]Change{announce(1, 1, "t"), say(Withdraw, 1, 3), announce(2, 1, "t")}, "a:t live 2"},
		{"and so does the same connection when it is enabled again",
			[]Change{announce(1, 1, "t"), say(Withdraw, 1, 2), announce(1, 3, "t")}, "a:t live 1"},
		{"lists that overtake each other: the newest wins",
			[]Change{announce(1, 1, "t"), announce(1, 3, "v"), announce(1, 2, "u")}, "a:v live 1"},
		{"lost tools stay in sight",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2)}, "a:t lost 1"},
		{"until they expire",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), say(Expire, 1, 2)}, ""},
		{"or are announced again, and then the timer that still runs does nothing",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), announce(2, 1, "t"), say(Expire, 1, 2)}, "a:t live 2"},
		{"also when they are lost again meanwhile: each loss has its own time",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), announce(2, 1, "t"), say(Lose, 2, 2), say(Expire, 1, 2)},
			"a:t lost 2"},
		{"an attempt that fails does not prolong the time",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), say(Lose, 2, 1), say(Expire, 1, 2)}, ""},
		{"nor does its end make a late word of the time before count",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), say(Lose, 2, 1), say(Expire, 1, 2), announce(1, 3, "t")}, ""},
		{"a timer of the same epoch that came before the loss does nothing",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 3), say(Expire, 1, 2)}, "a:t lost 1"},
		{"what was lost and then withdrawn has no time left to run",
			[]Change{announce(1, 1, "t"), say(Lose, 1, 2), say(Withdraw, 1, 3), announce(1, 4, "u"), say(Expire, 1, 5)},
			"a:u live 1"},
		{"somebody speaks for a dead actor: the epoch is over, whatever the actor's last words were",
			[]Change{announce(1, 7, "t"), say(Lose, 1, math.MaxUint64), announce(1, 8, "t"), say(Expire, 1, math.MaxUint64)},
			""},
		{"a lazy server rests, wakes, and rests",
			[]Change{{Kind: Cache, Server: "a", Rev: 1, Tools: tools("t")}, announce(1, 1, "t"),
				{Kind: Cache, Server: "a", Epoch: 1, Rev: 2, Tools: tools("t")}}, "a:t cached 1"},
		{"a forgotten server starts afresh",
			[]Change{announce(9, 9, "t"), say(Forget, 0, 0), {Kind: Cache, Server: "a", Rev: 1, Tools: tools("u")}},
			"a:u cached 0"},
		{"an unknown kind does nothing",
			[]Change{announce(1, 1, "t"), say(Kind(99), 2, 1)}, "a:t live 1"},
	} {
		one := Empty(messages.Naming{})
		for _, change := range c.changes {
			one = apply(t, one, change)
		}
		if got := seen(one); got != c.want {
			t.Errorf("%s: one by one gives %q, want %q", c.name, got, c.want)
		}
		if got := seen(apply(t, Empty(messages.Naming{}), c.changes...)); got != c.want {
			t.Errorf("%s: in one batch gives %q, want %q", c.name, got, c.want)
		}
	}
}

func TestGenerations(t *testing.T) {
	s0 := Empty(messages.Naming{})
	list := Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: tools("t", "u"), Route: 1}
	s1 := apply(t, s0, list)
	if s1.Generation() != 1 {
		t.Errorf("the first change makes generation %d", s1.Generation())
	}
	if second := apply(t, s1, list); second != s1 {
		t.Error("the same change again gives another snapshot")
	}

	// The same list with a newer mark: nothing to publish, and still an older list must not come through afterwards.
	same := list
	same.Rev, same.Tools = 3, tools("u", "t")
	marked := apply(t, s1, same)
	if marked.Generation() != 1 || !Diff(s1, marked).Empty() {
		t.Errorf("the same list makes generation %d", marked.Generation())
	}
	late := list
	late.Rev, late.Tools = 2, tools("v")
	if after := apply(t, marked, late); after != marked {
		t.Errorf("a list older than the mark is applied: %s", seen(after))
	}

	// There and back inside one batch is nothing.
	back := same
	back.Rev = 5
	if got := apply(t, marked, Change{Kind: Withdraw, Server: "a", Epoch: 1, Rev: 4}, back); got.Generation() != 1 {
		t.Errorf("withdrawn and announced in one batch makes generation %d", got.Generation())
	}
	if got := apply(t, s0, Change{Kind: Cache, Server: "x", Rev: 1}, Change{Kind: Forget, Server: "x"}); got != s0 {
		t.Error("a server that comes and goes in one batch leaves a trace")
	}
	if got := apply(t, s0, Change{Kind: Forget, Server: "x"}, Change{Kind: Expire, Server: "x", Epoch: 1}); got != s0 {
		t.Error("words about an unknown server leave a trace")
	}

	// One batch, one generation.
	other := list
	other.Server = "b"
	if got := apply(t, s0, list, other); got.Generation() != 1 || got.Len() != 4 {
		t.Errorf("two servers in one batch make generation %d with %d tools", got.Generation(), got.Len())
	}
}

func TestSharing(t *testing.T) {
	s1 := apply(t, Empty(messages.Naming{}),
		Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: tools("t", "u"), Route: 1},
		Change{Kind: Announce, Server: "b", Epoch: 2, Rev: 1, Tools: tools("t")})
	changed := tools("t", "u")
	changed[1].Description = "new"
	s2 := apply(t, s1, Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 2, Tools: changed, Route: 1})
	at, _ := s1.LookupTool("a", "t")
	if now, _ := s2.LookupTool("a", "t"); now != at {
		t.Error("an unchanged tool of a changed list is copied")
	}
	bt, _ := s1.LookupTool("b", "t")
	if now, _ := s2.LookupTool("b", "t"); now != bt {
		t.Error("a tool of an unchanged server is copied")
	}
	s3 := apply(t, s2, Change{Kind: Announce, Server: "a", Epoch: 3, Rev: 1, Tools: changed, Route: 2})
	if now, _ := s3.LookupTool("a", "t"); now == at || now.Tool != at.Tool {
		t.Error("a reconnect must make a new entry around the old definition")
	}

	// The caller's slice stays the caller's.
	changed[0].Name = "gone"
	if _, ok := s3.LookupTool("a", "t"); !ok {
		t.Error("the snapshot changes with the caller's slice")
	}
	if got := append(s3.Server("a"), nil); len(got) != 3 || len(s3.Server("a")) != 2 {
		t.Error("appending to the list of a server changes it")
	}
}

func TestDuplicateNamesInOneServer(t *testing.T) {
	list := tools("t", "u", "t")
	list[0].Description, list[2].Description = "first", "second"
	s := apply(t, Empty(messages.Naming{}), Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: list})
	if e, ok := s.LookupTool("a", "t"); !ok || e.Tool.Description != "first" || s.Len() != 2 {
		t.Errorf("%s, %+v", seen(s), e)
	}
	if r := s.Refused("a"); len(r) != 1 || r[0].Name != "t" || !strings.Contains(r[0].Reason, "two tools") {
		t.Errorf("refused: %v", r)
	}
	s2 := apply(t, s, Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 2, Tools: list[:2]})
	if s2.Refused("a") != nil || s2.Generation() != 2 {
		t.Errorf("the repaired list: refused %v, generation %d", s2.Refused("a"), s2.Generation())
	}
}

// TestNamesThatMeet uses a naming that no configuration can ask for: the real one makes two equal names once in 10¹⁴.
func TestNamesThatMeet(t *testing.T) {
	s := Empty(messages.Naming{})
	s.name = func(_, tool string) string { return tool }
	s = apply(t, s,
		Change{Kind: Announce, Server: "b", Epoch: 1, Rev: 1, Tools: tools("t")},
		Change{Kind: Announce, Server: "a", Epoch: 2, Rev: 1, Tools: tools("t", "u")})
	if got := seen(s); got != "b:t live 1, a:u live 2" {
		t.Error(got)
	}
	want := []messages.QuarantinedTool{{Name: "t", Reason: `its qualified name t is that of server "b", tool "t"`}}
	if got := s.Refused("a"); !slices.Equal(got, want) {
		t.Errorf("refused: %q", got)
	}
	if s.Refused("b") != nil || s.Refused("nobody") != nil {
		t.Error("somebody else is refused")
	}
	// The name is free again for the next word of the one that was refused, also in the same batch.
	s = apply(t, s,
		Change{Kind: Withdraw, Server: "b", Epoch: 1, Rev: 2},
		Change{Kind: Announce, Server: "a", Epoch: 2, Rev: 2, Tools: tools("t", "u")})
	if got := seen(s); got != "a:t live 2, a:u live 2" || s.Refused("a") != nil {
		t.Errorf("%s, %v", got, s.Refused("a"))
	}
}

func TestRoutesThatCannotBeCompared(t *testing.T) {
	c := Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: tools("t", "u"), Route: func() {}}
	s := apply(t, Empty(messages.Naming{}), c)
	c.Rev = 2
	if s = apply(t, s, c); s.Generation() != 2 {
		t.Errorf("generation %d: a route that cannot be compared is a new one", s.Generation())
	}
	c.Rev, c.Route = 3, struct{ f any }{[]int{1}}
	if s = apply(t, s, c); s.Generation() != 3 {
		t.Errorf("generation %d", s.Generation())
	}
}

// TestSameToolSeesEveryField sets one field after another: a field that is added later and that the comparison does not
// see would keep an outdated definition in the catalog.
func TestSameToolSeesEveryField(t *testing.T) {
	yes := true
	set := func(v reflect.Value) {
		switch v.Interface().(type) {
		case *bool:
			v.Set(reflect.ValueOf(&yes))
		case *messages.Annotations:
			v.Set(reflect.ValueOf(&messages.Annotations{}))
		case []messages.Icon:
			v.Set(reflect.ValueOf([]messages.Icon{{Src: "data:x", Sizes: []string{"any"}}}))
		default:
			switch v.Kind() {
			case reflect.String:
				v.SetString("x")
			case reflect.Slice:
				v.SetBytes([]byte("x"))
			default:
				t.Fatalf("a field of kind %s that this test does not know", v.Type())
			}
		}
	}
	typ := reflect.TypeFor[messages.Tool]()
	for i := range typ.NumField() {
		var a messages.Tool
		set(reflect.ValueOf(&a).Elem().Field(i))
		if name := typ.Field(i).Name; sameTool(&a, &messages.Tool{}) != (name == "Server") {
			t.Errorf("%s does not count as it should", name)
		}
		if field := reflect.ValueOf(&a).Elem().Field(i); field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Uint8 {
			b := a
			reflect.ValueOf(&b).Elem().Field(i).SetBytes([]byte("y"))
			if sameTool(&a, &b) {
				t.Errorf("of %s only the length counts", typ.Field(i).Name)
			}
		}
	}
	typ = reflect.TypeFor[messages.Annotations]()
	for i := range typ.NumField() {
		a := &messages.Annotations{}
		set(reflect.ValueOf(a).Elem().Field(i))
		if sameTool(&messages.Tool{Annotations: a}, &messages.Tool{Annotations: &messages.Annotations{}}) {
			t.Errorf("annotation %s does not count", typ.Field(i).Name)
		}
		b := *a
		if !sameTool(&messages.Tool{Annotations: a}, &messages.Tool{Annotations: &b}) {
			t.Errorf("annotation %s differs from itself", typ.Field(i).Name)
		}
	}
}

func TestStringsOfEnums(t *testing.T) {
	kinds := []string{"announce", "cache", "lose", "expire", "withdraw", "forget", "invalid"}
	for i, want := range kinds {
		if got := Kind(i).String(); got != want {
			t.Errorf("kind %d is %q, want %q", i, got, want)
		}
	}
	for i, want := range []string{"live", "cached", "lost", "invalid"} {
		if got := State(i).String(); got != want {
			t.Errorf("state %d is %q, want %q", i, got, want)
		}
	}
}

func dropKey[V any](t *table[V], key string) { delete(t.parts[partOf(key)], key) }

// TestCheckFindsFaults breaks each invariant by hand: a check that finds nothing proves nothing.
func TestCheckFindsFaults(t *testing.T) {
	fresh := func() *Snapshot {
		return apply(t, Empty(messages.Naming{}),
			Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: tools("t", "u")},
			Change{Kind: Announce, Server: "b", Epoch: 2, Rev: 1, Tools: tools("t")})
	}
	for number, breaks := range map[string][]func(s *Snapshot){
		"C1": {
			func(s *Snapshot) { dropKey(s.byName, s.sorted[0].Name) },
			func(s *Snapshot) { s.sorted = s.sorted[1:] },
			func(s *Snapshot) { s.servers.get("a").entries = s.servers.get("a").entries[1:] },
			func(s *Snapshot) { e := *s.sorted[0]; s.sorted[0] = &e },
		},
		"C2": {
			func(s *Snapshot) { slices.Reverse(s.sorted) },
			func(s *Snapshot) { slices.Reverse(s.servers.get("a").entries) },
		},
		"C3": {func(s *Snapshot) { s.name = func(_, tool string) string { return tool } }},
		"C4": {
			func(s *Snapshot) { dropKey(s.servers, "b") },
			func(s *Snapshot) { s.servers.get("b").entries[0].Tool.Server = "a" },
		},
		"C5": {
			func(s *Snapshot) { s.servers.get("a").entries[1].Epoch = 0 },
			func(s *Snapshot) { s.servers.get("a").entries[1].State = Cached },
			func(s *Snapshot) { s.servers.get("a").entries[1].Route = 7 },
			func(s *Snapshot) {
				e := s.servers.get("b").entries[0]
				e.State, e.Route, s.servers.get("b").state = Lost, 7, Lost
			},
		},
		"C6": {func(s *Snapshot) { s.servers.get("b").mark = mark{} }},
	} {
		for i, b := range breaks {
			s := fresh()
			b(s)
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), number+": ") {
				t.Errorf("%s, fault %d: Check says %v", number, i, err)
			}
		}
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	s := apply(t, Empty(messages.Naming{}),
		Change{Kind: Announce, Server: "a", Epoch: 1, Rev: 1, Tools: tools("t", "u", "v")})
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := s.Lookup("mcp__a__u"); !ok {
			t.Error("not found")
		}
		if _, ok := s.LookupTool("a", "v"); !ok {
			t.Error("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
