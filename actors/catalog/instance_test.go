package catalog

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAnInstanceIsInNoList: it is found by its own name, with its server's names and, where they are the same, definitions; nothing
// that is said of it changes what is said of its server, and its changes are changes of the content.
func TestAnInstanceIsInNoList(t *testing.T) {
	tools := func(names ...string) (all []messages.Tool) {
		for _, n := range names {
			all = append(all, messages.Tool{Name: n})
		}
		return all
	}
	s := Empty(messages.Naming{})
	apply := func(wantChange bool, c Change) {
		t.Helper()
		next, changed := s.Apply(c)
		if err := next.Check(); err != nil || changed != wantChange || changed != (next.Generation() > s.Generation()) {
			t.Fatalf("%v of %s: changed is %v, %v", c.Kind, c.Server, changed, err)
		}
		s = next
	}
	apply(true, Change{Kind: Announce, Server: "box", Epoch: 1, Rev: 1, Tools: tools("a", "b"), Route: "server"})
	announce := Change{Kind: Announce, Server: "box@anna", Of: "box", Epoch: 2, Rev: 1, Tools: tools("b", "c"), Route: "instance"}
	apply(true, announce)
	announce.Rev++
	apply(false, announce)
	own, ok := s.LookupTool("box@anna", "b")
	shared, _ := s.LookupTool("box", "b")
	if !ok || own.Name != "mcp__box__b" || own.Route != "instance" || own.Tool != shared.Tool || own.Tool.Server != "box" {
		t.Errorf("the instance's entry is %+v", own)
	}
	if e, ok := s.Lookup("mcp__box__b"); !ok || e.Route != "server" {
		t.Errorf("by its qualified name the tool is %+v", e)
	}
	if _, ok := s.Lookup("mcp__box__c"); ok || s.Len() != 2 || len(s.Servers()) != 1 || len(s.Server("box@anna")) != 2 {
		t.Errorf("the lists have %d tools of %v", s.Len(), s.Servers())
	}
	apply(true, Change{Kind: Lose, Server: "box@anna", Of: "box", Epoch: 2, Rev: 3})
	apply(true, Change{Kind: Expire, Server: "box@anna", Of: "box", Epoch: 2, Rev: 3})
	apply(false, Change{Kind: Forget, Server: "box@anna"})
	if s.Len() != 2 || len(s.Remembered()) != 1 {
		t.Errorf("of the instance is left: %v", s.Remembered())
	}
}
