package bugs

// entryBugs are in the message front of the supervisor, through which other actors use the manager.
var entryBugs = inPackage("supervisor",
	// A message may arrive twice, so a call with a known id is answered from the first one, and its timeout comes with the
	// message.
	Bug{
		Name: "call-sent-twice-runs-twice", In: "entryActor.runCall", Old: "id != \"\" && known != nil", New: "id != \"\" && known != nil && to.pid == nil",
		Finds: []string{"I3"}, Why: "a call whose message was sent again because its reply was lost runs twice",
	},
	Bug{
		Name: "message-without-deadline", In: "entryActor.runCall", Old: "wait, cancel := timeoutContext(m.GetTimeoutMs())", New: "wait, cancel := timeoutContext(0 * m.GetTimeoutMs())",
		Finds: []string{"I2"}, Why: "a call by message goes on after the time that its caller gave it",
	},
	Bug{
		// The reply to a command over messages has to mean the same as the facade's return.
		Name: "removal-told-too-early", In: "entryActor.publishedReplier", Old: "err != nil || cell == nil", New: "err != nil || cell != nil",
		Finds: []string{"I16", "I1"}, Why: "another actor that removed a server still finds its tools",
	},
	Bug{
		Name: "cold-kept-warm", In: "entryActor.Receive", Old: "lifecycle.Disable{Cold: m.GetDisconnect(), Ticket: ticket}",
		New:   "lifecycle.Disable{Ticket: ticket}",
		Finds: []string{"I8", "I16", "I17"}, Why: "a server that another actor disconnects goes on running",
	},
	Bug{
		// The front tells other actors what watchers and the catalog show.
		Name: "watch-by-message-ends", In: "entryActor.addWatch", Old: "root.Send(to, event.ToProto())",
		New:   "if event.Seq%50 != 0 { root.Send(to, event.ToProto()) }",
		Finds: []string{"I19"}, Why: "an actor that watches misses events and is not told so",
	},
	Bug{
		Name: "tools-of-the-last-list", In: "entryActor.toolsReply", Old: "t.State.String()", New: "\"live\"",
		Finds: []string{"I20"}, Why: "an actor takes tools for callable whose server is away",
	},
)
