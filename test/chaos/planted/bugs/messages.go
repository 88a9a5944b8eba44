package bugs

// messageBugs are in the types that all packages share. The canary of I10 finds them: the harness gives servers secrets and
// searches everything that the manager publishes for them.
var messageBugs = inPackage("messages",
	Bug{
		Name: "secret-told", In: "Spec.Redactor", Old: "text = strings.ReplaceAll(text, secret, redaction)",
		New:   "_ = strings.ReplaceAll(text, secret, redaction)",
		Finds: []string{"I10"}, Why: "the token of a server stands in the status that is shared in a bug report",
	},
)
