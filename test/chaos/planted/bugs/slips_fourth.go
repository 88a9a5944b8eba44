package bugs

import "slices"

// fourthSlipBugs were written as slipBugs were, or drawn by lot among the statements that days run, and no day found them then: lazy servers were never
// watched in silence, no call was lost after a question about it was answered, and nothing judged what a handshake declares.
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
