package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// listNews maps the notification of a changed list to the event of the manager.
var listNews = map[string]messages.EventKind{
	"notifications/resources/list_changed": messages.EventResources, "notifications/prompts/list_changed": messages.EventPrompts,
}

// readNews maps the read of a list to the event that tells of its change: the protocol has one notification for resources and their templates.
var readNews = map[string]messages.EventKind{
	"resources": messages.EventResources, "templates": messages.EventResources, "prompts": messages.EventPrompts,
}

// listAnnouncements maps the read of a list to what a server has that announces its changes.
var listAnnouncements = map[string]string{
	"resources": scenario.HasResourceChanges, "templates": scenario.HasResourceChanges, "prompts": scenario.HasPromptChanges,
}

// checkListsTold judges that the change of a list of resources or prompts which a server announces, over a connection that stands, is published
// to watchers. Agents are told by the gateway, which compares what they were served: that is in no history.
func (c *checker) checkListsTold(server string) {
	if c.real || !c.serverSpec(server).Offers {
		return
	}
	spans := connectedSpans(c.phaseSpans(server))
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		kind, due := listNews[e.Method], e.T+updateBound
		if e.Kind != history.Notified || kind == "" || c.hasEnded(server, e.Conn, e.T) || c.isDisturbed(server, spans, e.T, due) {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(c.x.ServerEvents(server), func(n int) bool {
			o := c.x.Event(n)
			return o.Kind == history.ListTold && o.Method == string(kind) && o.T >= e.T-c.instantBound() && o.T <= due
		}) {
			c.reportViolationAt(due, server, i, nil, "The server said at %s that its list of %s has changed, and no watcher was told of it by %s.",
				timeText(e.T), kind, timeText(due))
			return
		}
	}
}
