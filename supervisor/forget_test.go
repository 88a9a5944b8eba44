package supervisor

import (
	"context"
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
