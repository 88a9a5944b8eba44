package actors

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
)

// One event stands for the changes that are published together. It names their server only if it is the same for all: a watcher of one server looks
// when an event names that server, or none.
func TestAnEventOfSeveralServersNamesNone(t *testing.T) {
	hub := NewHub()
	watcher := hub.Watch(10)
	r := NewRegistry(RegistryConfig{Catalog: NewCatalog(messages.Naming{}), Hub: hub})
	for _, c := range []struct {
		changed []string
		want    string
	}{
		{[]string{"a"}, "a"}, {[]string{"b", "b", "b"}, "b"}, {[]string{"a", "b"}, ""}, {[]string{"a", "b", "b"}, ""}, {[]string{"a", "b", "a"}, ""},
	} {
		var changes []catalog.Change
		for _, server := range c.changed {
			changes = append(changes, catalog.Change{Kind: catalog.Announce, Server: server})
		}
		r.publishEvent(r.cfg.Catalog.Snapshot(), changes)
		if e, err := watcher.Next(t.Context()); err != nil || e.Kind != messages.EventTools || e.Server != c.want {
			t.Errorf("changes of %q are told as a %s of %q, %v", c.changed, e.Kind, e.Server, err)
		}
	}
}
