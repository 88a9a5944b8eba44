package invariant

// rested is I8 for lazy servers: one is let go when nobody uses it, and not while a call that it has received is under way.
func (c *court) rested(server string, stays []stay, commands []asked) {
	if !c.isLazy(server, 0, c.end()) {
		return
	}
	for i := 1; i < len(stays); i++ {
		s := &stays[i]
		if nodeOf(s) != resting || stays[i-1].next != s.at || nodeOf(&stays[i-1]) != isConnected {
			continue
		}
		if _, found := c.askedIn(commands, s.T-c.late, s.T); found {
			continue
		}
		if !c.isLazy(server, s.T-c.late, s.T) {
			c.violated(server, s.at, []int{stays[i-1].at}, "The server was let go at %s, and by its owner's last word it is not lazy.", clock(s.T))
			return
		}
		for _, call := range c.x.Calls() {
			if call.Server != server || len(call.Received) == 0 || len(call.Ends) == 0 {
				continue
			}
			received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
			if received.T >= stays[i-1].T && received.T < s.T-c.slower() && end.T > s.T+c.slower() {
				c.violated(server, s.at, []int{call.Begin, call.Received[0], call.Ends[0]}, "The server was let go at %s because nobody used "+
					"it, and call %s was under way from %s to %s.", clock(s.T), call.ID, clock(received.T), clock(end.T))
				return
			}
		}
	}
}
