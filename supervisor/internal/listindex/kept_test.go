package listindex

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// sizedList is a list of a test: another one of the same id is the same.
type sizedList struct{ id, size int }

func (l sizedList) IsSame(other List) bool { return l.id == other.(sizedList).id }
func (l sizedList) Size() int              { return l.size }

// The lists of one server have a bound together, and none of another one's. What is too long is not kept, and then the one before does
// not stand for it.
func TestKeptListsAreBoundedPerServer(t *testing.T) {
	var x Index
	keep := func(server, method string, id, size int) { x.KeepList(server, method, Owner{}, sizedList{id, size}) }
	wantKept := func(server, method string, id int) {
		t.Helper()
		list, _ := x.KeptList(server, method, Owner{}).(sizedList)
		if list.id != id {
			t.Errorf("%s of %s is %d", method, server, list.id)
		}
	}
	keep("a", "prompts", 1, maxIndexBytes)
	keep("b", "prompts", 2, maxIndexBytes)
	keep("a", "resources", 3, 1)
	wantKept("a", "prompts", 1)
	wantKept("a", "resources", 0)
	wantKept("b", "prompts", 2)
	keep("a", "prompts", 4, maxIndexBytes+1)
	wantKept("a", "prompts", 0)
	keep("a", "resources", 3, maxIndexBytes)
	wantKept("a", "resources", 3)
	keep("a", "resources", 3, maxIndexBytes+1) // it is the same list: it is not weighed once more
	wantKept("a", "resources", 3)
	x.ForgetServer("a")
	wantKept("a", "resources", 0)
	wantKept("b", "prompts", 2)
}

// A list of one account, or of another spec, is given to no other, and takes no room of what comes after it.
func TestKeptListsBelongToTheCredentials(t *testing.T) {
	var x Index
	ann := Owner{Spec: &messages.Spec{URL: "https://example.com"}, Account: "ann"}
	for what, other := range map[string]Owner{
		"another account": {Spec: ann.Spec, Account: "bob"},
		"another spec":    {Spec: &messages.Spec{URL: "https://example.org"}, Account: "ann"},
	} {
		x.KeepList("s", "prompts", ann, sizedList{1, maxIndexBytes})
		if x.KeptList("s", "prompts", ann) == nil {
			t.Fatal("it is not kept")
		}
		if x.KeptList("s", "prompts", other) != nil || x.KeptList("s", "prompts", ann) != nil {
			t.Errorf("%s gets it", what)
		}
		x.KeepList("s", "prompts", ann, sizedList{1, maxIndexBytes})
		x.KeepList("s", "resources", other, sizedList{2, maxIndexBytes})
		if x.KeptList("s", "resources", other) == nil || x.KeptList("s", "prompts", other) != nil {
			t.Errorf("%s has not the place of the one before", what)
		}
		x.ForgetServer("s")
	}
}
