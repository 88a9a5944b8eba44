package bugs

// taskInputBugs are in what a manager does about tasks that ask for input more than once, updates of parts of resources, and credentials that
// appear by themselves.
var taskInputBugs = []Bug{
	{
		Name: "second-question-unheard", Package: sessionParts + "tasks", In: "Poller.newInputRequests", Old: "if _, done := p.answeredInputs[key]; done { continue }",
		New: "if len(p.answeredInputs) > 0 { continue }", Finds: []string{"I20", "I2"}, Why: "a task that asks for input twice waits for the second answer for ever",
	},
	{
		Name: "working-is-not-asked-again", Package: sessionParts + "tasks", In: "Poller.provideInput", Old: "if !p.detailed { return nil }",
		New: "if !p.detailed || p.rounds > 0 { return nil }", Finds: []string{"I20", "I2"}, Why: "only the first round of a task's questions is answered",
	},
	{
		Name: "appeared-credentials-unused", Package: "actors", In: "Server.retryCredentials", Old: "s.applyEvent(lifecycle.Reconnect{})",
		Finds: []string{"I18", "I16"}, Why: "a server whose credentials came by themselves waits for a command all the same",
	},
	{
		Name: "part-of-a-resource-untold", Package: "supervisor/gateway", In: "watches.tellUpdated", Old: `to.uri == uri || strings.HasPrefix(uri, strings.TrimSuffix(to.uri, "/")+"/")`,
		New: `to.uri == uri || to.uri == "" && strings.HasPrefix(uri, to.uri)`, Finds: []string{"I28"}, Why: "an agent that watches a resource hears nothing of its parts",
	},
	{
		Name: "part-told-as-unwanted", Package: "actors", In: "Server.hookNotifications", Old: "if some, this := cell.Subscriptions.hasURI(uri); some { notifier.noteUpdated(uri, this) }",
		New: "if _, this := cell.Subscriptions.hasURI(uri); this { notifier.noteUpdated(uri, this) }", Finds: []string{"I20", "I28"},
		Why: "who watches a resource hears nothing of its parts",
	},
}
