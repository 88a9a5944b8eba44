package faults

// trustFaults are the faults of a server that cannot be trusted: it changes tools under their names, deceives readers, or leaks
// secrets.
var trustFaults = []Kind{
	{
		Name: "rug-pull", ID: "X1", Kinds: allKinds, Eras: bothEras, Tiers: tiers, Instant: true,
		Description: "a tool's definition changes under its name, and the server says that its list has changed",
		Params:      []Param{{"tool", "write", Text, "which tool", nil}},
	},
	{
		Name: "control-characters", ID: "X2", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "names, descriptions, results and error texts hold characters that act on a terminal or deceive a reader",
		Params: []Param{
			{"errors", "0.1", Chance, "of each call, to be refused with such an error", nil},
		},
	},
	{
		Name: "leak-canary", ID: "X4", Also: []string{"X3"}, Kinds: outOfProcess, Eras: bothEras, Tiers: tiers,
		Description: "the server writes the secrets that it was given into descriptions, results, error texts, log messages and its " +
			"standard error",
		Params: []Param{
			{"errors", "0.2", Chance, "of each call, to be refused with a secret in the error's text", nil},
			{"stderr", "true", Bool, "into standard error, when it starts", nil},
			{"logs", "true", Bool, "into a log message with each call, if the client takes any", nil},
			{"descriptions", "false", Bool, "into the description of a tool, which belongs to whoever asks for the tools", nil},
			{"results", "false", Bool, "into results, which belong to whoever calls", nil},
		},
	},
}
