package faults

// callFaults are the faults of tool calls. They act between the arrival of a request and its answer; a chance is drawn for each call
// by itself, so that one below 1 leaves some calls alone. Package peer has the hooks of the same names in call_faults.go.
var callFaults = []Kind{
	{
		Name: "hang-call", ID: "R1", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "calls wait until the end of the fault, and run then unless they were cancelled",
		Params: []Param{
			{"tool", "", Text, "only this tool", nil},
			chanceParam,
		},
	},
	{
		Name: "ignore-cancel", ID: "R2", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a call that was cancelled runs and is answered all the same",
		Params:      []Param{{"by", "90s", Duration, "how much longer calls take, so that there is time to cancel them; until the end of the fault at most", nil}},
	},
	{
		Name: "endless-progress", ID: "R3", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a call is told of progress for ever, whether it asked for that or not, and gets no answer until the end of the fault",
		Params: []Param{
			{"every", "1s", Duration, "time between two", nil},
			chanceParam,
		},
	},
	{
		Name: "bad-output", ID: "R11", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "a call's structured result contradicts the tool's output schema",
		Params:      []Param{chanceParam},
	},
	{
		Name: "tool-error", ID: "R12", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "calls fail: the tool runs and says so, or the server refuses the call",
		Params: []Param{
			{"rpc", "false", Bool, "the server refuses with a JSON-RPC error, and the tool does not run", nil},
			{"code", "32603", Count, "code of that error, without its minus", nil},
			chanceParam,
		},
	},
	{
		Name: "die-mid-call", ID: "R13", Kinds: allKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "the tool runs and the server ends before it has answered",
		Params: []Param{
			{"code", "1", Count, "exit code of the process", nil},
			chanceParam,
		},
	},
	{
		Name: "answer-and-die", ID: "R13", Also: []string{"P12"}, Kinds: allKinds, Eras: bothEras, Tiers: tiers, EndsConnections: true,
		Description: "the server answers a call and ends in the same moment",
		Params: []Param{
			{"code", "0", Count, "exit code of the process", nil},
			chanceParam,
		},
	},
	{
		Name: "latency", ID: "H11", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "everything but the handshake takes longer",
		Params: []Param{
			{"by", "200ms", Duration, "how much longer", nil},
			{"jitter", "0.5", Chance, "by how much of it that varies", nil},
		},
	},
	{
		Name: "big-result", ID: "P8", Kinds: allKinds, Eras: bothEras, Tiers: tiers,
		Description: "the results of calls are padded",
		Params:      []Param{{"size", "1MiB", Size, "to so many bytes at least", nil}, chanceParam},
	},
}
