package supervisor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/listindex"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// TestARemovedServerIsForgotten: what a server listed is remembered while it is configured, and no longer. A program that added and
// removed servers under other names kept the lists of all of them.
func TestARemovedServerIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Start(t.Context(), Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": echoServer}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond) // see CloseAll
		}()
		if err := m.Connect(t.Context(), "a", Spec{Type: messages.SDK}); err != nil {
			t.Fatal(err)
		}
		prompt := messages.Prompt{Server: "a", Name: "p", Qualified: "a_name_that_hides_its_server"}
		m.index.AddPrompts([]messages.Prompt{prompt}, m.cfg.Naming)
		m.index.SetResources("a", listindex.Owner{}, []messages.Resource{{Server: "a", URI: "file:///r"}}, nil)
		everyOwner := func(string) (listindex.Owner, bool) { return listindex.Owner{}, true }
		_, _, remembered := m.index.FindPrompt(prompt.Qualified)
		if !remembered || len(m.index.ServersListing("file:///r", everyOwner)) != 1 {
			t.Fatal("nothing is remembered")
		}
		if err := m.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, _, found := m.index.FindPrompt(prompt.Qualified); found {
			t.Error("its prompt is remembered")
		}
		if servers := m.index.ServersListing("file:///r", everyOwner); len(servers) > 0 {
			t.Errorf("its resource is remembered: %v", servers)
		}
	})
}

// TestWhatIsListedDuringARemovalIsForgotten: a search asks two servers, and one of them is removed while the other one takes its time. What the
// first had listed was remembered for ever (seeds 20900646 and 20900775).
func TestWhatIsListedDuringARemovalIsForgotten(t *testing.T) {
	for what, search := range map[string]func(*Manager){
		"resources": func(m *Manager) { _, _ = m.ReadResource(context.Background(), "file:///r") },
		"prompts":   func(m *Manager) { _, _ = m.Prompts(context.Background()) },
	} {
		t.Run(what, func(t *testing.T) { searchDuringRemoval(t, search) })
	}
}

func searchDuringRemoval(t *testing.T, search func(*Manager)) {
	synctest.Test(t, func(t *testing.T) {
		listing := func(takes time.Duration) func(context.Context, inprocess.Peer) error {
			return func(ctx context.Context, peer inprocess.Peer) error {
				return answerRequests(ctx, peer, func(method string) string {
					switch method {
					case "initialize":
						return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"n","version":"1"}}`
					case "tools/list":
						return `{"tools":[]}`
					case "resources/list":
						time.Sleep(takes)
						return `{"resources":[{"uri":"file:///r","name":"r"}]}`
					case "prompts/list":
						time.Sleep(takes)
						return `{"prompts":[{"name":"` + strings.Repeat("p", 100) + `"}]}`
					}
					return "{}"
				})
			}
		}
		m, err := Start(t.Context(), Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{"a": listing(0), "b": listing(4 * time.Second)}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = m.Close(context.Background())
			time.Sleep(time.Millisecond) // see CloseAll
		}()
		for _, server := range []string{"a", "b"} {
			if err := m.Connect(t.Context(), server, Spec{Type: messages.SDK}); err != nil {
				t.Fatal(err)
			}
		}
		go search(m)
		time.Sleep(time.Second)
		if err := m.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		owner := func(string) (listindex.Owner, bool) { return listindex.Owner{Spec: &Spec{Type: messages.SDK}}, true }
		if servers := m.index.ServersListing("file:///r", owner); slices.Contains(servers, "a") {
			t.Errorf("the servers whose resource is remembered are %v", servers)
		}
		prompt := func(server string) string { return m.cfg.Naming.Prompt(server, strings.Repeat("p", 100)) }
		if _, _, found := m.index.FindPrompt(prompt("a")); found {
			t.Error("the prompt of the removed server is remembered")
		}
		_, _, found := m.index.FindPrompt(prompt("b"))
		if len(m.index.ServersListing("file:///r", owner)) == 0 && !found {
			t.Error("nothing of the other server is remembered")
		}
	})
}
