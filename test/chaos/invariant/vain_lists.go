package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// A server may announce a change whenever it is listed, and a client that listed it 50 ms later would list it for ever, twenty times a
// second. So the client waits twice as long for quiet after each list in a row that brought nothing new.

// countVain returns how many of the lists up to the newest brought nothing new, in a row, where that is sure. vain is the number for the
// lists before it. A list counts for nothing if the client may have missed it, if a command made the client take it for new, or if a
// pause before it made the client count anew.
func (c *checker) countVain(server string, lists []listRequest, vain int, commands []ownerCommand) int {
	if len(lists) < 2 {
		return 0
	}
	newest, before := lists[len(lists)-1], lists[len(lists)-2]
	switch _, found := c.anyCommandIn(commands, before.from, newest.to); {
	case found, newest.rev == 0, newest.rev != before.rev, !newest.done, newest.failed, before.failed:
		return 0
	case c.wasOfferedAnew(before.from, newest.to):
		return 0 // every server is offered anew then, and its lists are counted anew (seeds 30100120 and 30402237)
	case newest.from > before.to+c.plan.MaxWait/2, c.isHindered(server, before.from, newest.to), c.calledForHeaders(server, before.from, newest.to):
		return 0
	}
	return min(vain+1, 16)
}

// wasOfferedAnew reports whether the owner approved changed definitions, or set other rules, between two times: both go to every server.
func (c *checker) wasOfferedAnew(from, to time.Duration) bool {
	if c.offerings == nil {
		c.offerings = []time.Duration{}
		for i := range c.h.Events {
			if e := &c.h.Events[i]; e.Kind == history.Command && (e.Method == "approve" || e.Method == "permit") {
				c.offerings = append(c.offerings, e.T)
			}
		}
	}
	return slices.ContainsFunc(c.offerings, func(t time.Duration) bool { return t >= from-c.skew && t <= to+c.skew })
}

// quietAfter is the quiet that the client waits for after so many lists that brought nothing new.
func (c *checker) quietAfter(vain int) time.Duration {
	quiet := c.plan.Quiet
	for range vain {
		quiet = min(2*quiet, max(quiet, c.plan.MaxWait))
	}
	return quiet
}
