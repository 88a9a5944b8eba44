package bugs

import "slices"

// offerBugs are in resources and prompts, in the requests of servers to the owner, and in the reading of results.
var offerBugs = slices.Concat(
	inPackage("transports/session",
		// The session caches lists until the server announces a change; a list that was fetched during a change must not be
		// kept.
		Bug{
			Name: "old-list-on-the-shelf", Package: sessionParts + "lists", In: "Cache.MarkChanged", Old: "h.dropCached()",
			Finds: []string{"I20"}, Why: "a resource that came while a list is kept is not seen until the connection ends",
		},
		Bug{
			Name: "list-of-a-change-kept", Package: sessionParts + "lists", In: "Cache.runFetch", Old: "f.err == nil && f.changes == h.changes", New: "f.err == nil",
			Finds: []string{"I20"}, Why: "a list that was fetched while it changed is kept as if it were the new one",
		},
		Bug{
			Name: "update-told-once", In: "Session.publishUpdates", Old: "u.order, u.waiting = nil, nil", New: "u.order = nil",
			Finds: []string{"I20"}, Why: "of the updates of a resource only the first is told",
		},
		// A server may ask for input in the middle of a call. The next round carries the answers and the server's own state
		// back.
		Bug{
			Name: "state-of-a-round-lost", In: "Session.nextRoundParams", Old: "extra = append(extra, state...)", New: "extra = append(extra, `\"\"`...)",
			Finds: []string{"I20"}, Why: "a server that asks for input does not know to what the answer belongs",
		},
		Bug{
			Name: "round-without-input", In: "Session.answerInputRequests", Old: "b = jsonrpc.AppendOneLine(b, result)", New: "b = jsonrpc.AppendOneLine(b, append([]byte(`{}`), result[:0]...))",
			Finds: []string{"I20"}, Why: "what a person answered never reaches the server that asked",
		},
		Bug{
			Name: "accept-is-decline", Package: sessionParts + "questions", In: "encodeElicitResult", Old: "case messages.ElicitAccept:",
			New:   "case messages.ElicitAccept:\nreturn []byte(`{\"action\":\"decline\"}`), nil",
			Finds: []string{"I20"}, Why: "a person says yes and the server is told no",
		},
	),
	inPackage("supervisor",
		// The facade joins the parts of a result for callers that want one text.
		Bug{
			Name: "answer-without-text", In: "Result.Text", Old: "b.WriteString(p.Text)", New: "b.WriteString(p.Type)",
			Finds: []string{"I20"}, Why: "of an answer with several parts the words are lost",
		},
		Bug{
			Name: "part-without-text", In: "contentOf", Old: "c.Text, _ = rawjson.Text(value)", New: "_ = value",
			Finds: []string{"I20"}, Why: "a program that reads the parts of an answer finds them empty",
		},
		Bug{
			Name: "text-of-the-last-part", In: "ResourceResult.Text", Old: "texts = append(texts, c.Text)", New: "texts = []string{c.Text}",
			Finds: []string{"I20"}, Why: "of a resource with several parts only the last is shown",
		},
	),
	inPackage("actors",
		Bug{
			Name: "update-untold", In: "Server.hookNotifications", Old: "notifier.noteUpdated(uri, this)", New: "if !this { notifier.noteUpdated(uri, this) }",
			Finds: []string{"I20"}, Why: "who has subscribed to a resource is never told that it changed",
		},
	),
)
