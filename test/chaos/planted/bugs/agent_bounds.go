package bugs

import "slices"

// agentBoundBugs are in what bounds agents, and in what one agent does twice: sessions beyond those that a principal may have, more tasks at once than it
// may have, a stream that breaks again, a resource that is watched again. The last ones are in the watches and the idleness of instances.
var agentBoundBugs = slices.Concat(
	inPackage("transports/serve",
		Bug{Name: "first-opened-is-displaced", In: "sessions.findSession", Old: "t.orders[p.Name].MoveToFront(s.place)", New: "{}",
			Finds: []string{"I28"}, Why: "an agent that works all day loses its session to one that came after it and has gone"},
		Bug{Name: "last-used-is-displaced", In: "oldestIdle", Old: "e, n := order.Back(), 0", New: "e, n := order.Front(), 0",
			Finds: []string{"I28"}, Why: "the session that was used a moment ago is ended for a new one"},
		Bug{Name: "streaming-is-displaced", In: "oldestIdle", Old: "!s.isBusy()", New: "s != nil",
			Finds: []string{"I28"}, Why: "an agent that listens loses its session to a new one"},
		Bug{Name: "one-session-more", In: "sessions.addSession", Old: "order.Len() >= most", New: "order.Len() > most",
			Finds: []string{"I28"}, Why: "a principal has one session more than it may"},
		Bug{Name: "principal-unbounded", In: "sessions.addSession", Old: "s.Principal.MaxSessions > 0", New: "s.Principal.MaxSessions > t.most",
			Finds: []string{"I28"}, Why: "a bound of one principal's sessions bounds nothing"},
		Bug{Name: "rest-of-what-is-over", In: "Handler.serveStream", Old: "resumes && s.replay.isOver(missed, number)", New: "resumes && missed == 0 && s.replay.isOver(missed, number)",
			Finds: []string{"I28"}, Why: "an agent that asks for the rest of an answer which is over asks for it for ever"},
		Bug{Name: "follower-of-before", In: "replayLog.unfollow", Old: "l.open[stream] == to", New: "l.open[stream] != nil",
			Finds: []string{"I2", "I25"}, Why: "an agent whose connection breaks a second time never gets its answer"},
	),
	inPackage("supervisor/gateway",
		Bug{Name: "ended-takes-room", In: "tasks.keepResult", Old: "t.over, t.size = true, size", New: "t.size = size",
			Finds: []string{"I25"}, Why: "after 64 tasks an agent is refused every further one"},
		Bug{Name: "tasks-unbounded", In: "Gateway.addTask", Old: "len(mine) >= maxTasksOf || g.tasks.count >= maxTasks", New: "g.tasks.count >= maxTasks",
			Finds: []string{"I28"}, Why: "one principal takes the room for the tasks of all"},
		Bug{Name: "second-watch-refused", In: "watches.addWatch", Old: "agent.asking++", New: "if agent.agreed {\nw.mu.Unlock()\nreturn context.Canceled\n}\nagent.asking++",
			Finds: []string{"I28"}, Why: "an agent that asks once more to watch a resource is told that it does not"},
	),
	inPackage("actors",
		Bug{Name: "instance-watched-for-none", In: "Calls.Subscribe", Old: "cell := c.Cell(own.target())", New: "cell := c.Cell(own.Server)",
			Finds: []string{"I20", "I3", "I12"}, Why: "who watches a resource of its own instance is told of nothing once that has a new connection"},
	),
	inPackage("supervisor/internal/core",
		Bug{Name: "watched-is-idle", In: "supervisor.idleEnd", Old: "unused == 0 || i.cell.Subscriptions.Any()", New: "unused == 0",
			Finds: []string{"I12"}, Why: "an instance ends whose caller waits for the updates of a resource"},
	),
)
