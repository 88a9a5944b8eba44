package gateway

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// The change that a server announces concerns the views that show it, that of an instance the views of its principal, and a gap all views.
func TestWhomAChangeConcerns(t *testing.T) {
	everything := changes{toolsNotice: true, promptsNotice: true, resourcesNotice: true}
	for _, c := range []struct {
		what  string
		from  whose
		kinds []messages.EventKind
		key   viewKey
		shown config.View
		want  changes
	}{
		{"tools of a server", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{}, config.View{}, changes{toolsNotice: true}},
		{"prompts of a server", whose{server: "one"}, []messages.EventKind{messages.EventPrompts}, viewKey{}, config.View{}, changes{promptsNotice: true}},
		{"resources of a server", whose{server: "one"}, []messages.EventKind{messages.EventResources}, viewKey{}, config.View{}, changes{resourcesNotice: true}},
		{"two lists of a server", whose{server: "one"}, []messages.EventKind{messages.EventTools, messages.EventPrompts}, viewKey{}, config.View{},
			changes{toolsNotice: true, promptsNotice: true}},
		{"its phase", whose{server: "one"}, []messages.EventKind{messages.EventPhase}, viewKey{}, config.View{}, changes{}},
		{"a gap", whose{server: "one"}, []messages.EventKind{messages.EventGap}, viewKey{}, config.View{}, everything},
		{"a gap, for another server's path", whose{server: "one"}, []messages.EventKind{messages.EventGap}, viewKey{server: "two"}, config.View{}, everything},
		{"on its own path", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{server: "one"}, config.View{}, changes{toolsNotice: true}},
		{"on another server's path", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{server: "two"}, config.View{}, changes{}},
		{"in a view that lists it", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{}, config.View{Servers: []string{"one"}}, changes{toolsNotice: true}},
		{"in a view that does not", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{}, config.View{Servers: []string{"two"}}, changes{}},
		{"in a view whose rules hide it", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{},
			config.View{Rules: access.Set{Default: access.Deny}}, changes{}},
		{"an instance, for its principal", whose{"one", "anna"}, []messages.EventKind{messages.EventTools}, viewKey{principal: "anna"}, config.View{}, changes{toolsNotice: true}},
		{"an instance, for another", whose{"one", "anna"}, []messages.EventKind{messages.EventTools}, viewKey{principal: "bert"}, config.View{}, changes{}},
		{"a server, for a principal", whose{server: "one"}, []messages.EventKind{messages.EventTools}, viewKey{principal: "anna"}, config.View{}, changes{toolsNotice: true}},
	} {
		var said saidChanges
		for _, kind := range c.kinds {
			said.addEvent(c.from, kind)
		}
		v := &view{viewKey: c.key}
		v.scope.Store(&scope{parts: []*filter{newFilter(c.shown)}})
		if got := said.changesFor(v); got != c.want {
			t.Errorf("%s: %v, not %v", c.what, got, c.want)
		}
	}
}
