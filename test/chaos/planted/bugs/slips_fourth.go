package bugs

import "slices"

// fourthSlipBugs were written as slipBugs were, or drawn by lot among the statements that days run, and no day found them then: lazy servers were never
// watched in silence, no call was lost after a question about it was answered, callers had no persons of their own, and nothing judged what a handshake
// declares.
var fourthSlipBugs = slices.Concat(
	inPackage("actors",
		Bug{
			Name: "watched-server-rests", In: "Server.idleDue", Old: "s.cfg.Cell.Subscriptions.Any()", New: "false",
			Finds: []string{"I17"}, Why: "a lazy server is let go while a caller watches a resource of it, and no update comes any more",
		},
		Bug{
			Name: "answered-and-repeated", In: "Calls.Repeat", Old: "r.isRepeatable(link.Spec) && !bounded.Answered()", New: "r.isRepeatable(link.Spec)",
			Finds: []string{"I3"}, Why: "a person who has answered a question about a call is asked again when the connection of the call is lost",
		},
		Bug{
			Name: "reads-wake-nothing", In: "Calls.Repeat", Old: "r.Entry == nil && !r.AwakeOnly", New: "r.Entry == nil && r.AwakeOnly",
			Finds: []string{"I20"}, Why: "a prompt of a lazy server that rests cannot be read until a call has woken it",
		},
		Bug{
			Name: "one-refused-all-refused", In: "Link.noteResult", Old: "!errors.Is(err, messages.ErrCallerRefused)", New: "!errors.Is(err, messages.ErrCallerRefused) || err != nil",
			Finds: []string{"I20", "I8"}, Why: "a server that refuses the credentials of one caller counts as one that needs other credentials, for all",
		},
	),
	inPackage("transports/session",
		Bug{
			Name: "task-of-any-tool", In: "Session.augmentWithTask", Old: "(word != taskOptional || !wanted.Want)", New: "!wanted.Want",
			Finds: []string{"I23"}, Why: "a tool that does not run as a task is called as one, because its caller wanted that",
		},
	),
	inPackage("supervisor/internal/asker",
		Bug{
			Name: "allowed-to-all", In: "Asker.putQuestion", Old: "a.granted[grant{key.caller, r.Server, r.Tool}] = true", New: `a.granted[grant{"", r.Server, r.Tool}] = true`,
			Finds: []string{"I20"}, Why: "what the person of one caller allows until the end is allowed to every caller",
		},
		Bug{
			Name: "allowed-and-asked-again", In: "Asker.joinQuestion", Old: `a.granted[grant{"", r.Server, r.Tool}] || a.granted[grant{caller, r.Server, r.Tool}]`,
			New:   `a.granted[grant{"", r.Server, r.Tool}] && caller == ""`,
			Finds: []string{"I20"}, Why: "a person is asked about each call of a tool that they have allowed until the end",
		},
	),
	inPackage("supervisor/internal/requests",
		Bug{
			Name: "model-asked-twice", In: "Handler.sampleFunc", Old: "if err == nil { actors.NoteAnswer(ctx) }",
			Finds: []string{"I3"}, Why: "a model that has answered about a call is asked again when the connection of the call is lost",
		},
		Bug{
			Name: "sampling-undeclared", In: "Handler.HandlersFor", Old: "h.Sample, h.SampleTools = d.sampleFunc(server, a.Sample), a.SampleTools",
			Finds: []string{"I23"}, Why: "servers are never told that the program has a model, and ask it nothing",
		},
	),
)
