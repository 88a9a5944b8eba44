package lifecycle

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestEdgesOfThePackageComment compares the list of edges in doc.go with those that the relation has.
func TestEdgesOfThePackageComment(t *testing.T) {
	type edge struct{ from, event string }
	to := map[edge][]string{}
	var froms []string
	reach(func(s reached) {
		for _, line := range alphabet {
			e := letter(s.State, line)
			switch e.(type) {
			case Disable, Respec, Remove:
				continue
			}
			after, _ := Step(s.State, e)
			from, there := node(s.State), node(after)
			if from == there {
				continue
			}
			k := edge{from, kindOf(e)}
			if !slices.Contains(to[k], there) {
				to[k] = append(to[k], there)
			}
			if !slices.Contains(froms, from) {
				froms = append(froms, from)
			}
		}
	})
	order := []string{"not begun", "disabled", "warm", "idle", "queued", "dialing", "handshaking", "installing", "listing", "restarting",
		"closing", "connected", "failed", "needs-auth"}
	for _, from := range froms {
		if !slices.Contains(order, from) {
			t.Fatalf("%q is not in the order", from)
		}
	}
	b := new(strings.Builder)
	for _, from := range order {
		outs := map[string][]string{}
		var targets []string
		for _, kind := range kinds {
			there := to[edge{from, kindOf(kind)}]
			if len(there) == 0 {
				continue
			}
			slices.SortFunc(there, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
			key := strings.Join(there, ", ")
			if outs[key] == nil {
				targets = append(targets, key)
			}
			outs[key] = append(outs[key], kindOf(kind))
		}
		for i, target := range targets {
			label := from
			if i > 0 {
				label = ""
			}
			pad := strings.Repeat(" ", 12-len(label))
			b.WriteString("//\t" + label + pad + strings.Join(outs[target], ", ") + " → " + target + "\n")
		}
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.ReplaceAll(string(doc), "\r\n", "\n"), "//\n"+b.String()+"//\n") {
		t.Errorf("doc.go must list\n%s", b)
	}
}

// node is the diagram's word for a state: the step of a pending server, else its phase.
func node(s State) string {
	switch {
	case s.Phase == "":
		return "not begun"
	case s.Phase == messages.Pending:
		return string(s.Step)
	case s.Warm():
		return "warm"
	}
	return string(s.Phase)
}
