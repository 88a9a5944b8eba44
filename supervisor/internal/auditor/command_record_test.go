package auditor_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
)

// The audit names each command of an owner, and no event that commands nothing.
func TestEachCommandHasItsWordInTheAudit(t *testing.T) {
	for _, c := range []struct {
		event          lifecycle.Event
		change, detail string
	}{
		{lifecycle.Enable{}, "enable", ""},
		{lifecycle.Disable{}, "disable", ""},
		{lifecycle.Disable{Cold: true}, "disable", "its connection ends"},
		{lifecycle.Reconnect{}, "reconnect", ""},
		{lifecycle.Wake{}, "", ""},
	} {
		if r := auditor.CommandRecord("s", c.event); r.Server != "s" || r.Change != c.change || r.Detail != c.detail {
			t.Errorf("%#v: %+v", c.event, r)
		}
	}
}
