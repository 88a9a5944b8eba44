package bugs

// catalogBugs are in the catalog's edits: the order of changes by epoch and revision, and the state of each server's tools. The
// registry applies one edit after the other, so each slip shows in the published snapshots.
var catalogBugs = inPackage("actors/catalog",
	// The timer of a loss may fire after a later connection or a later loss; only the mark of its own loss may expire.
	Bug{
		Name: "stale-expiry", In: "edit.applyChange",
		Old: "old != nil && old.state == Lost && old.lost.epoch == at.epoch && !old.lost.after(at)", New: "old != nil && old.state == Lost",
		Finds: []string{"I1"}, Why: "the timer of an earlier loss takes the tools of a later one away",
	},
	Bug{
		Name: "expiry-takes-all", In: "edit.applyChange",
		Old: "old != nil && old.state == Lost && old.lost.epoch == at.epoch && !old.lost.after(at)", New: "old != nil && old.state != Cached",
		Finds: []string{"I14", "I1"}, Why: "a server that came back loses its tools a few seconds later",
	},
	Bug{
		// A tool is live only while its connection stands: a resting server's tools are cached, and those of a lost connection
		// are lost.
		Name: "cached-seems-live", In: "edit.successorOf", Old: "e.buildServer(c, Cached)", New: "e.buildServer(c, Live)",
		Finds: []string{"I1"}, Why: "the tools of a server that rests are offered as live",
	},
	Bug{
		Name: "lost-seems-live", In: "loseServer", Old: "State: Lost", New: "State: Live",
		Finds: []string{"I1"}, Why: "tools are offered as live without a connection",
	},
	Bug{
		Name: "generation-stands", In: "edit.buildSnapshot", Old: "next.generation++", New: "if len(changed) > 1 { next.generation++ }",
		// The generation tells readers that a snapshot differs from the one before.
		Finds: []string{"I5"}, Why: "whoever compares generations misses a change",
	},
	Bug{
		Name: "old-word-counts", In: "edit.applyChange", Old: "old == nil || at.after(old.mark)", New: "old == nil || at.epoch >= old.mark.epoch",
		// A change counts only if its epoch, then its revision, is newer than the last one.
		Finds: []string{"I1", "I14"}, Why: "after the registry was replaced, what was said before undoes what was said later",
	},
	Bug{
		Name: "epochs-ignored", In: "mark.after", Old: "m.epoch > o.epoch || m.epoch == o.epoch && m.rev > o.rev", New: "m.rev > o.rev",
		Finds: []string{"I14", "I1"}, Why: "a server whose actor was replaced has no tools until it has said more than its predecessor",
	},
	Bug{
		Name: "old-route-kept", In: "edit.buildServer", Old: "prev.State != state || prev.Epoch != c.Epoch || !sameRoute(prev.Route, c.Route)",
		New:   "prev.State != state",
		Finds: []string{"I1", "I3", "I2"}, Why: "the calls of a server that is back go to the connection that it lost",
	},
	Bug{
		Name: "lost-again-lasts", In: "loseServer", Old: "out.lost, out.entries = old.lost, old.entries", New: "out.entries = old.entries",
		Finds: []string{"I1"}, Why: "a server that fails again and again keeps the tools in sight that it lost long ago",
	},
	Bug{
		Name: "name-taken-over", In: "edit.buildServer", Old: "h != nil && h.Tool.Server != owner", New: "h != nil && h.Tool.Server == owner",
		// A lost server keeps the mark of its first loss, so that repeated failures do not extend the time for which its tools
		// stay.
		Finds: []string{"I14", "I5"}, Why: "a server whose tool has the qualified name of another's takes it over, and the calls with it",
	},
	Bug{
		Name: "dropped-tool-callable", In: "edit.putServer", Old: "e.names[entry.Name] = nil", New: "if now == nil { e.names[entry.Name] = nil }",
		// A qualified name belongs to the first server that has it, until that server gives it up.
		Finds: []string{"I14", "I1"}, Why: "a tool that its server dropped is offered until the server is forgotten",
	},
	Bug{
		Name: "second-of-a-name", In: "edit.buildServer", Old: "mine[name] = true",
		Finds: []string{"I14"}, Why: "two tools of one name are both listed, and which of them is called is chance",
	},
)
