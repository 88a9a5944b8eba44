package catalog_test

import (
	"fmt"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Example follows two servers through a drop and a removal. An epoch is one connection of a server, a revision one change within
// it: what carries an older one than the catalog has seen changes nothing.
func Example() {
	show := func(what string, s *catalog.Snapshot) {
		fmt.Printf("%-28s generation %d:", what, s.Generation())
		for e := range s.All() {
			fmt.Printf(" %s(%v)", e.Name, e.State)
		}
		fmt.Println()
	}
	s := catalog.Empty(messages.Naming{})
	show("nothing yet", s)

	// Changes that wait together become one snapshot.
	s, _ = s.Apply(
		catalog.Change{Kind: catalog.Announce, Server: "git", Epoch: 1, Rev: 1, Tools: []messages.Tool{{Name: "log"}}},
		catalog.Change{Kind: catalog.Announce, Server: "my db", Epoch: 2, Rev: 1, Tools: []messages.Tool{{Name: "query"}}})
	show("two servers connect", s)

	s, _ = s.Apply(catalog.Change{Kind: catalog.Lose, Server: "git", Epoch: 1, Rev: 2})
	show("git's connection drops", s)

	s, _ = s.Apply(catalog.Change{Kind: catalog.Announce, Server: "git", Epoch: 3, Rev: 1,
		Tools: []messages.Tool{{Name: "log"}}})
	show("it is back in time", s)

	s, changed := s.Apply(catalog.Change{Kind: catalog.Expire, Server: "git", Epoch: 1, Rev: 2})
	show(fmt.Sprintf("the old timer (%v)", changed), s)

	s, _ = s.Apply(catalog.Change{Kind: catalog.Withdraw, Server: "my db", Epoch: 2, Rev: 2})
	show("my db is disabled", s)

	s, changed = s.Apply(catalog.Change{Kind: catalog.Announce, Server: "my db", Epoch: 2, Rev: 1,
		Tools: []messages.Tool{{Name: "x"}}})
	show(fmt.Sprintf("a late list (%v)", changed), s)
	// Output:
	// nothing yet                  generation 0:
	// two servers connect          generation 1: mcp__git__log(live) mcp__my_db__query_4j7ts8xq1z(live)
	// git's connection drops       generation 2: mcp__git__log(lost) mcp__my_db__query_4j7ts8xq1z(live)
	// it is back in time           generation 3: mcp__git__log(live) mcp__my_db__query_4j7ts8xq1z(live)
	// the old timer (false)        generation 3: mcp__git__log(live) mcp__my_db__query_4j7ts8xq1z(live)
	// my db is disabled            generation 4: mcp__git__log(live)
	// a late list (false)          generation 4: mcp__git__log(live)
}

// A snapshot finds a tool by the name that models see, and by its server and the server's own name for it. The entry holds the route
// that the server's actor announced with the tool, by which a call reaches its connection.
func ExampleSnapshot_Lookup() {
	s, _ := catalog.Empty(messages.Naming{}).Apply(catalog.Change{
		Kind: catalog.Announce, Server: "git", Epoch: 7, Rev: 1, Tools: []messages.Tool{{Name: "log"}}, Route: "connection 7",
	})
	e, ok := s.Lookup("mcp__git__log")
	fmt.Println(ok, e.Tool.Server, e.Tool.Name, e.Epoch, e.Route)
	_, ok = s.LookupTool("git", "blame")
	fmt.Println(ok)
	// Output:
	// true git log 7 connection 7
	// false
}

// Two snapshots are compared by the names that models see: "log" has another description, and is the same tool.
func ExampleDiff() {
	list := func(rev uint64, tools ...messages.Tool) catalog.Change {
		return catalog.Change{Kind: catalog.Announce, Server: "git", Epoch: 1, Rev: rev, Tools: tools}
	}
	old, _ := catalog.Empty(messages.Naming{}).Apply(list(1,
		messages.Tool{Name: "add"}, messages.Tool{Name: "log"}, messages.Tool{Name: "show"}))
	now, _ := old.Apply(list(2,
		messages.Tool{Name: "blame"}, messages.Tool{Name: "log", Description: "newest first"}, messages.Tool{Name: "show"}))
	d := catalog.Diff(old, now)
	fmt.Println("added", d.Added, "removed", d.Removed, "changed", d.Changed, "moved", d.Moved)
	// Output:
	// added [mcp__git__blame] removed [mcp__git__add] changed [mcp__git__log] moved []
}
