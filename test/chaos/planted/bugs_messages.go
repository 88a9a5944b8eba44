package planted

var messageBugs = in("messages",
	Bug{
		Name: "secret-told", In: "Spec.Hider", Old: "text = strings.ReplaceAll(text, secret, redaction)",
		New:   "_ = strings.ReplaceAll(text, secret, redaction)",
		Finds: []string{"I10"}, Why: "the token of a server stands in the status that is shared in a bug report",
	},
)
